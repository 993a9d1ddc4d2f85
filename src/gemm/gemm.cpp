// tsrGemm*: a product's tiles drive the collective that follows, or follow the one before.
#include <tessera/gemm.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <new>
#include <string>

#include "gemm/operators.h"
#include "gemm/product.h"
#include "gemm/unfused.h"

struct tsrGemm {
  tsrGemm(ncclComm_t the_comm, int the_ranks, int the_threads)
      : comm(the_comm), ranks(the_ranks), threads(the_threads), operators(the_comm, the_threads) {}
  ncclComm_t comm;
  int ranks;
  int threads;
  tessera::gemm::Operators operators;
  tsrGemmFusing_t fusing = tsrGemmChoose;
  bool fused = true;  // the latest product
};

namespace tessera::gemm {
namespace {

thread_local std::string g_last_error;

ncclResult_t bad(std::string text) {
  g_last_error = std::move(text);
  return ncclInvalidArgument;
}

// A failure of libnccl has its text there.
ncclResult_t passed_on(ncclResult_t result) {
  if (result != ncclSuccess) g_last_error = ncclGetLastError(nullptr);
  return result;
}

View view(const void* base, int64_t ld, const tsrGemmProblem_t& p) {
  return {static_cast<char*>(const_cast<void*>(base)), ld, p.column_major == 0, p.type};
}
View op_view(const void* base, int64_t ld, const tsrGemmProblem_t& p, int32_t transpose) {
  const View stored = view(base, ld, p);
  return transpose != 0 ? stored.transposed() : stored;
}

ncclResult_t check(const tsrGemm* gemm, const tsrGemmProblem_t* p, const char* function) {
  const std::string who = std::string(function) + ": ";
  if (gemm == nullptr || p == nullptr) return bad(who + "gemm or problem is NULL");
  if (p->size != sizeof(tsrGemmProblem_t))
    return bad(who + "begin with TSR_GEMM_PROBLEM_INITIALIZER");
  if (p->type != ncclFloat && p->type != ncclHalf && p->type != ncclBfloat16)
    return bad(who + "type " + std::to_string(p->type) + " is none of float, half and bfloat16");
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (const int64_t size : {p->m, p->n, p->k, p->lda, p->ldb, p->ldc}) {
    if (size < 1 || size > kMost)
      return bad(who + "m, n, k and the leading dimensions are to be 1 to 2^31 - 1, not " +
                 std::to_string(size));
  }
  return ncclSuccess;
}

// Least leading dimension of a rows x cols operand.
int64_t line(const tsrGemmProblem_t& p, int32_t transpose, int64_t rows, int64_t cols) {
  return (p.column_major != 0) == (transpose != 0) ? cols : rows;
}

ncclResult_t check_lines(const tsrGemmProblem_t& p, int64_t a_rows, int64_t c_rows) {
  if (p.lda < line(p, p.transpose_a, a_rows, p.k))
    return bad("lda " + std::to_string(p.lda) + " is less than a line of A");
  if (p.ldb < line(p, p.transpose_b, p.k, p.n))
    return bad("ldb " + std::to_string(p.ldb) + " is less than a line of B");
  if (p.ldc < line(p, 0, c_rows, p.n))
    return bad("ldc " + std::to_string(p.ldc) + " is less than a line of C");
  return ncclSuccess;
}

// body(i) for all i of a range on the threads of `gemm`; the first failure, after which the others
// are not begun.
template <class Body>
ncclResult_t for_each(const tsrGemm& gemm, int64_t count, const Body& body) {
  ncclResult_t result = ncclSuccess;
  std::string text;
#pragma omp parallel for schedule(dynamic, 1) num_threads(gemm.threads) if (gemm.threads > 1)
  for (int64_t i = 0; i < count; ++i) {
    ncclResult_t before = ncclSuccess;
#pragma omp atomic read
    before = result;
    if (before != ncclSuccess) continue;
    const ncclResult_t here = passed_on(body(i));
    if (here == ncclSuccess) continue;
#pragma omp critical
    {
      text = g_last_error;
#pragma omp atomic write
      result = here;
    }
  }
  if (result != ncclSuccess) g_last_error = text;
  return result;
}

// Makes a tile of what is to be sent. The owner of rows adds beta * C to its part of their sum.
class Producer {
 public:
  Producer(const tsrGemmProblem_t& p, const Product& product, const tsrTiles& tiles, const View& c,
           int64_t c_first)
      : p_(p), product_(product), tiles_(tiles), c_(c), c_first_(c_first) {
    tsrTileOwned(&tiles, tiles.rank, &own_first_, &own_rows_);
  }

  ncclResult_t make(int64_t i) const {
    int32_t row = 0, col = 0, rows = 0, cols = 0;
    tsrTileOrder(&tiles_, i, &row, &col);
    tsrTileSize(&tiles_, row, col, &rows, &cols);
    const int64_t top = int64_t{row} * tiles_.tile_rows, left = int64_t{col} * tiles_.tile_cols;
    int64_t ld = 0;
    int32_t add = 0;
    void* tile = nullptr;
    const ncclResult_t placed = tsrTileOnto(&tiles_, row, col, &tile, &ld, &add);
    if (placed != ncclSuccess) return placed;
    const Block block{top, rows, left, cols};
    const View to{static_cast<char*>(tile), ld, tiles_.column_major == 0, p_.type};
    if (tiles_.onto != 0)  // in C: the owner's, with its beta, then the other's
      product_.multiply(block, to, add != 0 ? 1 : p_.beta, to);
    else
      make(block, to);
    return tsrTileDone(&tiles_, row, col);
  }

  // A block of the product to where `to` begins.
  void make(const Block& block, const View& to) const {
    if (p_.beta == 0) return product_.multiply(block, to, 0, to);
    const int64_t top = block.row, end = block.row + block.rows;
    const int64_t cuts[] = {top, std::clamp(own_first_, top, end),
                            std::clamp(own_first_ + own_rows_, top, end), end};
    for (int part = 0; part < 3; ++part) {
      const Block rows{cuts[part], cuts[part + 1] - cuts[part], block.col, block.cols};
      const View here = to.from(rows.row - top, 0);
      const bool own = part == 1;
      const View prior = own ? c_.from(rows.row - c_first_, rows.col) : here;
      product_.multiply(rows, here, own ? p_.beta : 0, prior);
    }
  }

 private:
  const tsrGemmProblem_t& p_;
  const Product& product_;
  const tsrTiles& tiles_;
  View c_;
  int64_t c_first_;  // the row of the product that C begins with
  int64_t own_first_ = 0, own_rows_ = 0;
};

tsrFusedConfig_t config_of(const tsrGemm& gemm, const tsrGemmProblem_t& p,
                           tsrFusedCollective_t collective, int64_t cols) {
  tsrFusedConfig_t config = TSR_FUSED_CONFIG_INITIALIZER;
  config.collective = collective;
  config.type = p.type;
  config.column_major = p.column_major;
  config.rows = p.m;
  config.cols = cols;
  choose_tiles(p.m, gemm.ranks, cols, &config);
  return config;
}

int64_t own_rows(const tsrGemm& gemm, int64_t m) {
  int rank = 0;
  static_cast<void>(ncclCommUserRank(gemm.comm, &rank));
  const int64_t each = (m + gemm.ranks - 1) / gemm.ranks;
  return std::clamp<int64_t>(m - rank * each, 0, each);
}

// The operator of a shape, with the choice that goes with it.
ncclResult_t prepare(tsrGemm& gemm, const tsrGemmProblem_t& p, const tsrFusedConfig_t& config,
                     Operator** op) {
  if (const ncclResult_t r = gemm.operators.find(config, op); r != ncclSuccess) return r;
  Choice& choice = (*op)->choice;
  const bool suits = suits_unfused(p, config.collective, gemm.ranks);
  if (const ncclResult_t r = choice.open(gemm.comm, suits); r != ncclSuccess) return r;
  gemm.fused = gemm.fusing == tsrGemmChoose
                   ? choice.fuses()
                   : gemm.fusing == tsrGemmFuse || !choice.can_be_unfused();
  return ncclSuccess;
}

// The rows of a product in as many runs as there are threads.
template <class Body>
ncclResult_t for_rows(const tsrGemm& gemm, int64_t rows, const Body& body) {
  const int64_t each = (rows + gemm.threads - 1) / gemm.threads;
  return for_each(gemm, (rows + each - 1) / each, [&](int64_t i) {
    body(i * each, std::min(each, rows - i * each));
    return ncclSuccess;
  });
}

ncclResult_t record(tsrGemm& gemm, Operator& op, const CallTimes& times) {
  if (gemm.fusing != tsrGemmChoose) return ncclSuccess;
  const bool consumes = op.config.collective == tsrFusedAllGather;
  return passed_on(op.choice.record(gemm.comm, op.fused, consumes, times));
}

// From one line of the product to the next, where there are no gaps.
int64_t dense_line(const tsrGemmProblem_t& p) { return p.column_major == 0 ? p.n : p.m; }

ncclResult_t send_unfused(tsrGemm& gemm, const tsrGemmProblem_t& p, Operator& op,
                          const Producer& producer, void* parts, int rank, CallTimes* times) {
  const auto start = std::chrono::steady_clock::now();
  const View whole = view(parts, dense_line(p), p);
  const ncclResult_t made = for_rows(gemm, p.m, [&](int64_t row, int64_t rows) {
    producer.make({row, rows, 0, p.n}, whole.from(row, 0));
  });
  if (made != ncclSuccess) return made;
  times->product = us_since(start);
  return passed_on(send_parts({gemm.comm, rank, gemm.ranks}, p, op.config.collective, whole,
                              view(p.c, p.ldc, p)));
}

ncclResult_t send_fused(tsrGemm& gemm, const tsrGemmProblem_t& p, Operator& op,
                        const Producer& producer, const tsrTiles& tiles, void* parts) {
  if (const ncclResult_t r = tsrFusedLaunch(op.fused, parts, p.c, nullptr); r != ncclSuccess)
    return passed_on(r);
  const ncclResult_t made =
      for_each(gemm, tsrTileCount(&tiles), [&](int64_t i) { return producer.make(i); });
  return made != ncclSuccess ? made : passed_on(tsrFusedWait(op.fused));
}

// Reduce-scatter, all-reduce, all-to-all.
ncclResult_t send_product(tsrGemm& gemm, const tsrGemmProblem_t& p,
                          tsrFusedCollective_t collective) {
  const bool scatters = collective == tsrFusedReduceScatter;
  const ncclResult_t lines = check_lines(p, p.m, scatters ? own_rows(gemm, p.m) : p.m);
  if (lines != ncclSuccess) return lines;
  tsrFusedConfig_t config = config_of(gemm, p, collective, p.n);
  const bool sums_all = collective == tsrFusedAllReduce;
  config.input_ld = sums_all ? p.ldc : 0;
  config.output_ld = p.ldc;
  config.remote = 1;
  config.onto = p.type == ncclFloat ? tsrOntoAllow : tsrOntoOff;
  Operator* op = nullptr;
  if (const ncclResult_t r = prepare(gemm, p, config, &op); r != ncclSuccess) return passed_on(r);
  const View c = view(p.c, p.ldc, p);
  // The sum of an all-reduce takes the place of the parts; else, and where the NCCL call would meet
  // gaps, these have a place of their own.
  tsrTiles tiles;
  if (const ncclResult_t r = tsrFusedInput(op->fused, nullptr, &tiles); r != ncclSuccess)
    return passed_on(r);
  const bool in_place =
      gemm.fused ? sums_all || tiles.onto != 0 : sums_all && p.ldc == dense_line(p);
  if (!in_place) op->space.resize(static_cast<size_t>(p.m * p.n) * c.element_bytes());
  void* const parts = in_place ? p.c : op->space.data();
  tiles.matrix = parts;
  CallTimes times;
  const auto start = std::chrono::steady_clock::now();
  const Product product(op_view(p.a, p.lda, p, p.transpose_a),
                        op_view(p.b, p.ldb, p, p.transpose_b), p.m, p.n, p.k, p.alpha, false);
  const Producer producer(p, product, tiles, c, scatters ? tiles.rank * tiles.block_rows : 0);
  const ncclResult_t ran = gemm.fused
                               ? send_fused(gemm, p, *op, producer, tiles, parts)
                               : send_unfused(gemm, p, *op, producer, parts, tiles.rank, &times);
  times.total = us_since(start);
  return ran != ncclSuccess ? ran : record(gemm, *op, times);
}

// The product of what a fused all-gather brings, row of tiles by row of tiles.
ncclResult_t gather_fused(tsrGemm& gemm, const tsrGemmProblem_t& p, Operator& op,
                          const Product& product, const View& c, const tsrTiles& tiles) {
  if (const ncclResult_t r = tsrFusedLaunch(op.fused, p.a, op.space.data(), nullptr);
      r != ncclSuccess)
    return passed_on(r);
  const ncclResult_t made = for_each(gemm, tiles.down, [&](int64_t i) {
    int32_t row = 0, col = 0, rows = 0, cols = 0;
    tsrTileOrder(&tiles, i, &row, &col);
    tsrTileSize(&tiles, row, col, &rows, &cols);
    const int64_t top = int64_t{row} * tiles.tile_rows;
    const ncclResult_t here = tsrTileWait(&tiles, top, rows, nullptr);
    if (here != ncclSuccess) return here;
    product.multiply({top, rows, 0, p.n}, c.from(top, 0), p.beta, c.from(top, 0));
    return ncclSuccess;
  });
  return made != ncclSuccess ? made : passed_on(tsrFusedWait(op.fused));
}

ncclResult_t gather_unfused(tsrGemm& gemm, const tsrGemmProblem_t& p, Operator& op,
                            const Product& product, const View& c, int rank, CallTimes* times) {
  const ncclResult_t gathered = gather_rows({gemm.comm, rank, gemm.ranks}, p,
                                            op_view(p.a, p.lda, p, p.transpose_a), op.space.data());
  if (gathered != ncclSuccess) return passed_on(gathered);
  const auto start = std::chrono::steady_clock::now();
  const ncclResult_t made = for_rows(gemm, p.m, [&](int64_t row, int64_t rows) {
    product.multiply({row, rows, 0, p.n}, c.from(row, 0), p.beta, c.from(row, 0));
  });
  times->product = us_since(start);
  return made;
}

ncclResult_t gather_and_multiply(tsrGemm& gemm, const tsrGemmProblem_t& p) {
  const ncclResult_t lines = check_lines(p, own_rows(gemm, p.m), p.m);
  if (lines != ncclSuccess) return lines;
  tsrFusedConfig_t config = config_of(gemm, p, tsrFusedAllGather, p.k);
  config.column_major = (p.column_major != 0) != (p.transpose_a != 0) ? 1 : 0;  // as op(A) lies
  config.tile_cols = static_cast<int32_t>(p.k);
  config.input_ld = p.lda;
  Operator* op = nullptr;
  if (const ncclResult_t r = prepare(gemm, p, config, &op); r != ncclSuccess) return passed_on(r);
  const View c = view(p.c, p.ldc, p);
  op->space.resize(static_cast<size_t>(p.m * p.k) * c.element_bytes());
  tsrTiles tiles;
  if (const ncclResult_t r = tsrFusedOutput(op->fused, op->space.data(), &tiles); r != ncclSuccess)
    return passed_on(r);
  CallTimes times;
  const auto start = std::chrono::steady_clock::now();
  const View a{op->space.data(), tiles.ld, config.column_major == 0, p.type};
  const Product product(a, op_view(p.b, p.ldb, p, p.transpose_b), p.m, p.n, p.k, p.alpha, true);
  const ncclResult_t ran = gemm.fused
                               ? gather_fused(gemm, p, *op, product, c, tiles)
                               : gather_unfused(gemm, p, *op, product, c, tiles.rank, &times);
  times.total = us_since(start);
  return ran != ncclSuccess ? ran : record(gemm, *op, times);
}

// No exception leaves the library.
template <class Body>
ncclResult_t entry(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    g_last_error = "out of memory";
    return ncclSystemError;
  }
}

ncclResult_t run(tsrGemm_t gemm, const tsrGemmProblem_t* p, const char* function,
                 tsrFusedCollective_t collective) {
  return entry([&]() -> ncclResult_t {
    if (const ncclResult_t r = check(gemm, p, function); r != ncclSuccess) return r;
    if (collective == tsrFusedAllToAll && p->beta != 0)
      return bad(std::string(function) + ": beta is to be 0");
    return collective == tsrFusedAllGather ? gather_and_multiply(*gemm, *p)
                                           : send_product(*gemm, *p, collective);
  });
}

}  // namespace
}  // namespace tessera::gemm

#define TSR_GEMM_API extern "C" __attribute__((visibility("default")))

TSR_GEMM_API ncclResult_t tsrGemmCreate(ncclComm_t comm, int threads, tsrGemm_t* gemm) {
  using tessera::gemm::bad;
  using tessera::gemm::entry;
  using tessera::gemm::passed_on;
  return entry([&]() -> ncclResult_t {
    if (gemm == nullptr) return bad("tsrGemmCreate: gemm is NULL");
    if (threads < 1) return bad("tsrGemmCreate: threads is to be at least 1");
    int ranks = 0;
    if (const ncclResult_t r = ncclCommCount(comm, &ranks); r != ncclSuccess) return passed_on(r);
    *gemm = new tsrGemm(comm, ranks, threads);
    return ncclSuccess;
  });
}

TSR_GEMM_API ncclResult_t tsrGemmDestroy(tsrGemm_t gemm) {
  const std::unique_ptr<tsrGemm> ended(gemm);
  return ncclSuccess;
}

TSR_GEMM_API ncclResult_t tsrGemmSetFusing(tsrGemm_t gemm, tsrGemmFusing_t fusing) {
  const int value = fusing;
  if (gemm == nullptr || value < tsrGemmChoose || value > tsrGemmDoNotFuse)
    return tessera::gemm::bad("tsrGemmSetFusing: gemm is NULL, or fusing is unknown");
  gemm->fusing = fusing;
  return ncclSuccess;
}
TSR_GEMM_API ncclResult_t tsrGemmFused(tsrGemm_t gemm, int* fused) {
  if (gemm == nullptr || fused == nullptr)
    return tessera::gemm::bad("tsrGemmFused: gemm or fused is NULL");
  *fused = gemm->fused ? 1 : 0;
  return ncclSuccess;
}

TSR_GEMM_API ncclResult_t tsrGemmReduceScatter(tsrGemm_t gemm, const tsrGemmProblem_t* problem) {
  return tessera::gemm::run(gemm, problem, "tsrGemmReduceScatter", tsrFusedReduceScatter);
}
TSR_GEMM_API ncclResult_t tsrGemmAllReduce(tsrGemm_t gemm, const tsrGemmProblem_t* problem) {
  return tessera::gemm::run(gemm, problem, "tsrGemmAllReduce", tsrFusedAllReduce);
}
TSR_GEMM_API ncclResult_t tsrGemmAllToAll(tsrGemm_t gemm, const tsrGemmProblem_t* problem) {
  return tessera::gemm::run(gemm, problem, "tsrGemmAllToAll", tsrFusedAllToAll);
}
TSR_GEMM_API ncclResult_t tsrAllGatherGemm(tsrGemm_t gemm, const tsrGemmProblem_t* problem) {
  return tessera::gemm::run(gemm, problem, "tsrAllGatherGemm", tsrFusedAllGather);
}
TSR_GEMM_API const char* tsrGemmGetLastError() { return tessera::gemm::g_last_error.c_str(); }
