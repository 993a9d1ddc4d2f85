// The fused operators of one communicator by shape, and the work space that goes with them. Knows
// the public interface only.
// Thread safety: one thread at a time.
#pragma once

#include <tessera/fused.h>

#include <list>
#include <vector>

#include "gemm/choice.h"

namespace tessera::gemm {

struct Operator {
  tsrFusedConfig_t config;
  tsrFused_t fused = nullptr;
  Choice choice = {};
  std::vector<char> space = {};  // as large as the matrix; empty until asked for
};

class Operators {
 public:
  // `threads`: that make tiles.
  Operators(ncclComm_t comm, int threads) : comm_(comm), threads_(threads) {}
  ~Operators();
  Operators(const Operators&) = delete;
  Operators& operator=(const Operators&) = delete;

  // Collective when the shape is new. `config`: made of TSR_FUSED_CONFIG_INITIALIZER.
  ncclResult_t find(const tsrFusedConfig_t& config, Operator** out);

 private:
  ncclResult_t create(const tsrFusedConfig_t& config, tsrFused_t* fused);
  ncclResult_t create_onto(tsrFusedConfig_t config, tsrFused_t* fused);
  void drop_oldest();
  ncclComm_t comm_;
  int threads_;
  std::list<Operator> operators_;  // latest used first
};

// Rows and columns of tiles that travel: enough rows of tiles for a rank's rows to travel in pieces,
// tiles large enough for OpenBLAS.
void choose_tiles(int64_t rows, int ranks, int64_t cols, tsrFusedConfig_t* config);

}  // namespace tessera::gemm
