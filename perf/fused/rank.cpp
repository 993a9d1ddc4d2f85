#include "fused/rank.h"

#include <algorithm>

#include "fused/rounds.h"

namespace perf::fused {
namespace {

constexpr int kDefaultShare = 50, kDefaultEvery = 16;
constexpr int64_t kPieces = 4;
// A tile of a product packs its rows of A and its columns of B once more, which takes longer than it
// should where there are few of either.
constexpr int64_t kLeastRows = 128, kMostCols = 8192;

}  // namespace

tsrGemmProblem_t problem_of(const Product& product, ncclDataType_t type, const void* a,
                            const void* b, void* c) {
  tsrGemmProblem_t problem = TSR_GEMM_PROBLEM_INITIALIZER;
  problem.type = type;
  problem.m = product.m;
  problem.n = problem.ldb = problem.ldc = product.n;
  problem.k = problem.lda = product.k;
  problem.a = a;
  problem.b = b;
  problem.c = c;
  return problem;
}

Rank::Rank(ncclComm_t comm, const Setup& setup) : comm_(comm), setup_(setup), p_(setup.product) {
  const auto size = [](int64_t rows, int64_t cols) { return static_cast<size_t>(rows * cols); };
  const int64_t own = p_.m / setup.ranks;
  if (setup.engine == Engine::kBlas) {
    a_.assign(size(p_.m, p_.k), 1.0F);
    b_.assign(size(p_.k, p_.n), 1.0F);
    back_.assign(size(p_.n, p_.k), 1.0F);
    end_.assign(size(p_.m, p_.k), 0.0F);
  }
  parts_.assign(size(p_.m, p_.n), 1.0F);
  own_.assign(size(own, p_.n), 0.0F);
  all_.assign(size(p_.m, p_.n), 0.0F);
  if (setup.engine == Engine::kBlas) {
    first_ = blas(a_.data(), b_.data(), p_.n, p_.k);
    second_ = blas(all_.data(), back_.data(), p_.k, p_.n);
  } else {
    const bool host = setup.engine == Engine::kHostTimer;
    first_ = timer(p_.m, p_.n, setup.compute_us, host);
    second_ = timer(p_.m, p_.k, setup.compute_us, host);
  }
  if (setup.drive) check(tsrStreamCreate(&stream_));
  scatter_ = create(tsrFusedReduceScatter);
  sum_ = create(tsrFusedAllReduce);
  if (setup.operators) check_gemm(tsrGemmCreate(comm, 1, &gemm_));
}

Rank::~Rank() {
  check(tsrFusedDestroy(scatter_));
  check(tsrFusedDestroy(sum_));
  if (gemm_ != nullptr) check_gemm(tsrGemmDestroy(gemm_));
  if (setup_.drive) check(tsrStreamDestroy(stream_));
}

// Where tiles are added onto the peer nothing travels: one tile for each rank's rows, then, in place
// of pieces that do.
tsrFused_t Rank::create(tsrFusedCollective_t collective) const {
  if (setup_.onto && setup_.chunks == 0 && setup_.engine == Engine::kBlas) {
    tsrFused_t op = create(collective, 1);
    tsrTiles tiles;
    check(tsrFusedInput(op, nullptr, &tiles));
    if (tiles.onto != 0) return op;
    check(tsrFusedDestroy(op));
  }
  return create(collective, setup_.chunks > 0 ? setup_.chunks : kPieces);
}

tsrFused_t Rank::create(tsrFusedCollective_t collective, int64_t pieces) const {
  tsrFusedConfig_t config = TSR_FUSED_CONFIG_INITIALIZER;
  config.collective = collective;
  config.map = setup_.map;
  config.rows = p_.m;
  config.cols = p_.n;
  const int64_t own = p_.m / setup_.ranks;
  if (setup_.engine == Engine::kBlas) {
    pieces = std::clamp<int64_t>(own / kLeastRows, 1, pieces);
    // Whole tiles, which can be stored straight into the memory of a peer.
    while (own % pieces != 0) --pieces;
  }
  config.tile_rows = static_cast<int32_t>((own + pieces - 1) / pieces);
  config.tile_cols = static_cast<int32_t>(std::min<int64_t>(p_.n, kMostCols));
  config.chunks = setup_.chunks;
  config.remote = 1;
  config.onto = setup_.onto ? tsrOntoAllow : tsrOntoOff;
  tsrFused_t op = nullptr;
  check(tsrFusedCreate(&config, comm_, &op));
  return op;
}

tsrFusedCosts_t Rank::costs(tsrFused_t op, double produce_us, double consume_us) {
  tsrFusedCosts_t costs{};
  check(tsrFusedEstimate(op, produce_us, consume_us, &costs));
  return costs;
}

void Rank::whole(Compute& compute, float* to, int64_t ld, int64_t cols) {
  compute.begin();
  compute.make({0, p_.m, 0, cols}, to, ld, false);
}

void Rank::product() { whole(*first_, parts_.data(), p_.n, p_.n); }
void Rank::second_product() { whole(*second_, end_.data(), p_.k, p_.k); }

void Rank::reduce_scatter() {
  check(ncclReduceScatter(parts_.data(), own_.data(), own_.size(), ncclFloat, ncclSum, comm_,
                          nullptr));
}

void Rank::all_gather() {
  check(ncclAllGather(own_.data(), all_.data(), own_.size(), ncclFloat, comm_, nullptr));
}

void Rank::all_reduce() {
  check(ncclAllReduce(parts_.data(), all_.data(), all_.size(), ncclFloat, ncclSum, comm_, nullptr));
}

// Without reduction on arrival, a tile that has to meet what comes in is reported when the whole
// product is made; those of the ring's first hop, the left neighbour's rows, meet nothing.
void Rank::produce(tsrFused_t op, const tsrTiles& tiles, Without without) {
  if (without == Without::kBudget) check(tsrFusedSetBudget(op, 100, 1));
  int64_t first = 0, count = 0;
  tsrTileOwned(&tiles, (tiles.rank + tiles.ranks - 1) % tiles.ranks, &first, &count);
  std::vector<std::pair<int32_t, int32_t>> later;
  first_->begin();
  for (int64_t i = 0; i < tsrTileCount(&tiles); ++i) {
    int32_t row = 0, col = 0, rows = 0, cols = 0;
    tsrTileOrder(&tiles, i, &row, &col);
    if (without == Without::kStagger) row = static_cast<int32_t>(i / tiles.across);
    tsrTileSize(&tiles, row, col, &rows, &cols);
    int64_t ld = 0;
    int32_t add = 0;
    void* to = nullptr;
    check(tsrTileOnto(&tiles, row, col, &to, &ld, &add));
    const int64_t top = int64_t{row} * tiles.tile_rows;
    first_->make({top, rows, int64_t{col} * tiles.tile_cols, cols}, static_cast<float*>(to), ld,
                 add != 0);
    if (without == Without::kArrival && (top < first || top >= first + count)) {
      later.emplace_back(row, col);
      continue;
    }
    first_->pause();
    check(tsrTileDone(&tiles, row, col));
    first_->resume();
  }
  for (const auto& [row, col] : later) check(tsrTileDone(&tiles, row, col));
}

void Rank::consume(const tsrTiles& tiles) {
  second_->begin();
  for (int64_t i = 0; i < tsrTileCount(&tiles); i += tiles.across) {
    int32_t row = 0, col = 0, rows = 0, cols = 0;
    tsrTileOrder(&tiles, i, &row, &col);
    tsrTileSize(&tiles, row, col, &rows, &cols);
    const int64_t top = int64_t{row} * tiles.tile_rows;
    check(tsrTileWait(&tiles, top, rows, nullptr));
    second_->arrived();
    float* const to = end_.empty() ? nullptr : end_.data() + top * p_.k;
    second_->make({top, rows, 0, p_.k}, to, p_.k, false);
  }
}

void Rank::fused(Without without) {
  tsrTiles tiles;
  check(tsrFusedInput(scatter_, parts_.data(), &tiles));
  check(tsrFusedLaunch(scatter_, parts_.data(), own_.data(), stream_of(without)));
  produce(scatter_, tiles, without);
  check(tsrFusedWait(scatter_));
  if (without == Without::kBudget) check(tsrFusedSetBudget(scatter_, kDefaultShare, kDefaultEvery));
}

void Rank::sum(bool consumed) {
  tsrTiles in, out;
  check(tsrFusedInput(sum_, parts_.data(), &in));
  check(tsrFusedOutput(sum_, all_.data(), &out));
  check(tsrFusedLaunch(sum_, parts_.data(), all_.data(), stream_));
  produce(sum_, in, Without::kNothing);
  if (consumed) consume(out);
  check(tsrFusedWait(sum_));
}

void Rank::fused_all_reduce() { sum(false); }
void Rank::chain() { sum(true); }

void Rank::library() {
  const tsrGemmProblem_t problem = problem_of(p_, ncclFloat, a_.data(), b_.data(), own_.data());
  check_gemm(tsrGemmReduceScatter(gemm_, &problem));
}

bool Rank::library_fuses() const {
  int fused = 0;
  if (gemm_ != nullptr) check_gemm(tsrGemmFused(gemm_, &fused));
  return fused != 0;
}

}  // namespace perf::fused
