#include "fused/operators.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "fused/rounds.h"

namespace perf::fused {
namespace {

struct Operator {
  const char* name;
  ncclResult_t (*run)(tsrGemm_t, const tsrGemmProblem_t*);
};
constexpr std::array kOperators = {
    Operator{"reduce-scatter", tsrGemmReduceScatter}, Operator{"all-reduce", tsrGemmAllReduce},
    Operator{"all-to-all", tsrGemmAllToAll}, Operator{"all-gather", tsrAllGatherGemm}};

enum Mode : size_t { kUnfusedMode, kFusedMode, kChosenMode, kModes };
constexpr tsrGemmFusing_t kFusing[kModes] = {tsrGemmDoNotFuse, tsrGemmFuse, tsrGemmChoose};

size_t bytes_of(ncclDataType_t type) { return type == ncclFloat ? 4 : 2; }

// Matrices of ones: sums stay finite in every type.
std::vector<std::byte> ones(int64_t elements, ncclDataType_t type) {
  const uint32_t one = type == ncclFloat ? 0x3f800000 : type == ncclHalf ? 0x3c00 : 0x3f80;
  const size_t bytes = bytes_of(type);
  std::vector<std::byte> all(static_cast<size_t>(elements) * bytes);
  for (size_t at = 0; at < all.size(); at += bytes) std::memcpy(&all[at], &one, bytes);
  return all;
}

// One rank's matrices, large enough for every operator.
class Matrices {
 public:
  Matrices(ncclComm_t comm, const Product& p, ncclDataType_t type)
      : p_(p),
        type_(type),
        a_(ones(p.m * p.k, type)),
        b_(ones(p.k * p.n, type)),
        c_(ones(p.m * p.n, type)) {
    check_gemm(tsrGemmCreate(comm, 1, &gemm_));
  }
  ~Matrices() { check_gemm(tsrGemmDestroy(gemm_)); }
  Matrices(const Matrices&) = delete;
  Matrices& operator=(const Matrices&) = delete;

  void run(const Operator& op, Mode mode) {
    check_gemm(tsrGemmSetFusing(gemm_, kFusing[mode]));
    const tsrGemmProblem_t problem = problem_of(p_, type_, a_.data(), b_.data(), c_.data());
    check_gemm(op.run(gemm_, &problem));
  }
  bool fused() const {
    int fused = 0;
    check_gemm(tsrGemmFused(gemm_, &fused));
    return fused != 0;
  }

 private:
  const Product p_;
  const ncclDataType_t type_;
  std::vector<std::byte> a_, b_, c_;
  tsrGemm_t gemm_ = nullptr;
};

size_t way(size_t op, Mode mode) { return op * kModes + mode; }

}  // namespace

ncclDataType_t type_named(const std::string& name) {
  return name == "half" ? ncclHalf : name == "bfloat16" ? ncclBfloat16 : ncclFloat;
}

std::vector<Row> measure_operators(const Setup& setup, const CellOptions& options,
                                   const std::string& type) {
  const ncclDataType_t element = type_named(type);
  if (options.ratio > 0) emulate(setup, options, bytes_of(element));
  Rounds rounds(setup.ranks);
  std::array<bool, kOperators.size()> chose{};
  with_communicators(setup.ranks, options.hosts, [&](ncclComm_t comm, int rank) {
    Matrices matrices(comm, setup.product, element);
    for (size_t op = 0; op < kOperators.size(); ++op) {
      for (int i = 0; i < kTrials; ++i) matrices.run(kOperators[op], kChosenMode);
      if (rank == 0) chose[op] = matrices.fused();
    }
    for (int i = -1; i < options.repetitions; ++i) {
      for (size_t op = 0; op < kOperators.size(); ++op) {
        for (const Mode mode : {kUnfusedMode, kFusedMode, kChosenMode})
          rounds.run(rank, {{way(op, mode), [&] { matrices.run(kOperators[op], mode); }}}, i >= 0);
      }
    }
  });
  std::vector<Row> rows;
  for (size_t op = 0; op < kOperators.size(); ++op) {
    Row row;
    row.product = setup.product.name;
    row.what = std::string(kOperators[op].name) + " " + type;
    row.ranks = setup.ranks;
    row.ratio = options.ratio;
    row.unfused = rounds.result(way(op, kUnfusedMode));
    row.fused = rounds.result(way(op, kFusedMode));
    rows.push_back(row);
    row.what = kDecided;
    row.best = std::min(row.unfused, row.fused);
    row.fused = rounds.result(way(op, kChosenMode));
    row.judged = true;
    row.advised = chose[op];
    rows.push_back(row);
  }
  return rows;
}

}  // namespace perf::fused
