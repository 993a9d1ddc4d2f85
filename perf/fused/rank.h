// One rank of a cell: its matrices, its operators, and the ways to run a product and what follows.
//
//   unfused   product | reduce-scatter | all-gather | second product
//   fused     product and reduce-scatter at once | all-gather
//   chain     product, sum of all ranks and second product at once
//
// Thread safety: one thread at a time; all ranks call the same.
#pragma once

#include <nccl.h>
#include <tessera/fused.h>
#include <tessera/gemm.h>
#include <tessera/stream.h>

#include <memory>
#include <vector>

#include "fused/compute.h"
#include "fused/sublayers.h"

namespace perf::fused {

struct Setup {
  Product product;  // m divides by the ranks
  int ranks = 2;
  Engine engine = Engine::kBlas;
  double compute_us = 0;  // of a timer
  tsrFusedMap_t map = tsrMapRing;
  int chunks = 0;         // per rank; 0: the library chooses
  bool drive = true;      // a thread besides moves data; else those that report and wait do
  bool onto = true;       // tiles are added onto the peer where they can be
  bool operators = true;  // the library's own fused product, too: needs OpenBLAS
};

// What is left out on purpose.
enum class Without { kNothing, kStagger, kArrival, kBudget };

// The product with dense row-major matrices.
tsrGemmProblem_t problem_of(const Product& product, ncclDataType_t type, const void* a,
                            const void* b, void* c);

class Rank {
 public:
  Rank(ncclComm_t comm, const Setup& setup);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void product();
  void reduce_scatter();
  void all_gather();
  void all_reduce();
  void second_product();
  void fused(Without without);
  void fused_all_reduce();
  void chain();
  // tsrGemmReduceScatter, which decides by itself whether to fuse.
  void library();
  bool library_fuses() const;

  // The model's costs of product and reduce-scatter, of the chain, and of product and all-reduce,
  // where each product takes so long.
  tsrFusedCosts_t scatter_costs(double product_us) const { return costs(scatter_, product_us, 0); }
  tsrFusedCosts_t chain_costs(double product_us) const {
    return costs(sum_, product_us, product_us);
  }

  tsrFusedCosts_t all_reduce_costs(double product_us) const { return costs(sum_, product_us, 0); }

 private:
  tsrFused_t create(tsrFusedCollective_t collective) const;
  tsrFused_t create(tsrFusedCollective_t collective, int64_t pieces) const;
  void sum(bool consumed);
  static tsrFusedCosts_t costs(tsrFused_t op, double produce_us, double consume_us);
  void produce(tsrFused_t op, const tsrTiles& tiles, Without without);
  void consume(const tsrTiles& tiles);
  void whole(Compute& compute, float* to, int64_t ld, int64_t cols);
  cudaStream_t stream_of(Without without) const {
    return without == Without::kBudget ? nullptr : stream_;
  }

  ncclComm_t comm_;
  Setup setup_;
  Product p_;
  std::vector<float> a_, b_, back_;             // m x k, k x n, n x k
  std::vector<float> parts_, own_, all_, end_;  // m x n, of a rank, m x n, m x k
  std::unique_ptr<Compute> first_, second_;
  tsrFused_t scatter_ = nullptr, sum_ = nullptr;
  tsrStream_t stream_ = nullptr;
  tsrGemm_t gemm_ = nullptr;
};

}  // namespace perf::fused
