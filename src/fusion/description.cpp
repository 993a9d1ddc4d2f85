#include "fusion/description.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/hash.h"
#include "fusion/geometry.h"
#include "sync/counter.h"

namespace tessera {
namespace {

constexpr int kMostChunks = 64;   // per rank
constexpr int kChosenChunks = 8;  // between 4 and 16 reach most of what overlap can gain
constexpr int64_t kMostTilesOfAChunk = int64_t{1} << 24;  // the cap on a counter's arrivals

template <class... Args>
Status bad(fmt::format_string<Args...> format, Args&&... args) {
  return Status::error(Code::kInvalidArgument, format, std::forward<Args>(args)...);
}

bool can_be_fused(Collective c) {
  return c == Collective::kReduceScatter || c == Collective::kAllReduce ||
         c == Collective::kAllGather || c == Collective::kAllToAll;
}

// Whole tile rows, where that gives enough chunks: then no tile straddles two chunks.
int choose_chunks(const FusedDescription& d, int ranks) {
  const int64_t block = round_up_div(d.rows, ranks);
  const int64_t tile_rows = round_up_div(block, d.tile_rows);
  int64_t chunks = std::min<int64_t>(tile_rows, kChosenChunks);
  while (chunks > kChosenChunks / 2 && tile_rows % chunks != 0) --chunks;
  if (tile_rows % chunks != 0) chunks = std::min<int64_t>(tile_rows, kChosenChunks);
  return static_cast<int>(std::max<int64_t>(chunks, 1));
}

int64_t line(const FusedDescription& d, int64_t rows) { return d.column_major ? rows : d.cols; }

// A slot holds one chunk: no tile may lie over two. Chunks that fit into a slot's header are not
// worth it.
bool can_be_remote(const FusedDescription& d, int ranks) {
  const int64_t pieces = static_cast<int64_t>(ranks) * d.chunks;
  if (ranks == 1 || d.collective == Collective::kAllGather) return false;
  if (d.rows % pieces != 0 || d.rows / pieces % d.tile_rows != 0) return false;
  const auto rows = static_cast<size_t>(d.rows / pieces);
  return rows % chunk_unit(d.row_bytes()) == 0 && rows * d.row_bytes() > kCacheLine;
}

Status check_shape(const FusedDescription& d, int ranks) {
  if (!can_be_fused(d.collective))
    return bad("a fused operator cannot be a {}", to_string(d.collective));
  if (d.rows < 1 || d.cols < 1) return bad("a matrix of {} x {} has no elements", d.rows, d.cols);
  if (d.tile_rows < 1 || d.tile_cols < 1)
    return bad("tiles of {} x {} have no elements", d.tile_rows, d.tile_cols);
  const auto most = std::numeric_limits<uint32_t>::max();
  if (d.cols > static_cast<int64_t>(most / size_of(d.type)) ||
      d.rows > std::numeric_limits<int32_t>::max())
    return bad("a matrix of {} x {} is too large", d.rows, d.cols);
  if (d.parts < 1) return bad("a tile is reported {} times; at least once", d.parts);
  if (d.op == ReduceOp::kPreMulSum) return bad("a fused operator has no scaled sums");
  if (d.collective == Collective::kAllToAll && d.rows % ranks != 0)
    return bad("all-to-all: {} rows do not divide by {} ranks; pad the blocks", d.rows, ranks);
  if (d.collective == Collective::kAllToAll && d.mapping == Mapping::kRing)
    return bad("all-to-all goes directly; it has no ring");
  return {};
}

// The values that ranks must share, in the order of their names.
constexpr std::array<const char*, 17> kNames = {"collective",
                                                "mapping",
                                                "type",
                                                "reduction",
                                                "layout",
                                                "rows",
                                                "columns",
                                                "rows a tile",
                                                "columns a tile",
                                                "reports per tile",
                                                "chunks per rank",
                                                "remote stores",
                                                "plan",
                                                "any order of sums",
                                                "chunks of remote stores",
                                                "adding onto peers",
                                                "adding onto peers, as it became,"};

std::array<int64_t, 17> shared_values(const FusedDescription& d) {
  return {static_cast<int64_t>(d.collective),
          static_cast<int64_t>(d.mapping),
          static_cast<int64_t>(d.type),
          reduces(d.collective) ? static_cast<int64_t>(d.op) : 0,
          d.column_major ? 1 : 0,
          d.rows,
          d.cols,
          d.tile_rows,
          d.tile_cols,
          d.parts,
          d.chunks,
          d.remote ? 1 : 0,
          static_cast<int64_t>(d.plan),
          d.any_order ? 1 : 0,
          static_cast<int64_t>(d.remote_chunks),
          static_cast<int64_t>(d.onto_wish),
          d.onto ? 1 : 0};
}

std::string value_text(size_t field, const FusedDescription& d) {
  switch (field) {
    case 0:
      return to_string(d.collective);
    case 1:
      return to_string(d.mapping);
    case 2:
      return to_string(d.type);
    case 3:
      return to_string(d.op);
    case 4:
      return d.column_major ? "column-major" : "row-major";
    case 12:
      return d.plan == 0 ? "none of its own" : fmt::format("{:016x}", d.plan);
    default:
      return std::to_string(shared_values(d)[field]);
  }
}

}  // namespace

const char* to_string(Mapping mapping) {
  switch (mapping) {
    case Mapping::kDirect:
      return "direct";
    case Mapping::kRing:
      return "ring";
  }
  return "?";
}

Status lay_out(FusedDescription* d, int ranks, int rank) {
  const int64_t block = round_up_div(d->rows, ranks);
  // The last ranks own fewer rows, or none.
  const int64_t owned = std::clamp<int64_t>(d->rows - rank * block, 0, block);
  const bool gathers = d->collective == Collective::kAllGather;
  const bool scatters = d->collective == Collective::kReduceScatter;
  const int64_t in = line(*d, gathers ? owned : d->rows);
  const int64_t out = line(*d, scatters ? owned : d->rows);
  if (d->input_ld == 0) d->input_ld = std::max<int64_t>(in, 1);
  if (d->output_ld == 0) d->output_ld = std::max<int64_t>(out, 1);
  if (d->input_ld < std::max<int64_t>(in, 1) || d->output_ld < std::max<int64_t>(out, 1))
    return bad("leading dimensions {} and {} are less than the {} and {} elements of a line",
               d->input_ld, d->output_ld, in, out);
  return {};
}

Result<FusedDescription> complete(FusedDescription d, int ranks, int rank) {
  if (Status s = check_shape(d, ranks); !s.ok()) return s;
  if (Status s = lay_out(&d, ranks, rank); !s.ok()) return s;
  const int64_t block = round_up_div(d.rows, ranks);
  if (d.chunks == 0) d.chunks = choose_chunks(d, ranks);
  if (d.chunks < 1 || d.chunks > kMostChunks)
    return bad("{} chunks per rank are out of range 1..{}", d.chunks, kMostChunks);
  const auto units = round_up_div(block, static_cast<int64_t>(chunk_unit(d.row_bytes())));
  d.chunks = static_cast<int>(std::min<int64_t>(d.chunks, units));
  const uint64_t all = ~uint64_t{0} >> (64 - d.chunks);
  if (d.remote && (d.remote_chunks & ~all) != 0)
    return bad("remote stores of chunks {:#x}, of {} that a rank has", d.remote_chunks, d.chunks);
  d.remote = d.remote && can_be_remote(d, ranks);
  d.remote_chunks = !d.remote ? 0 : d.remote_chunks == 0 ? all : d.remote_chunks;
  // Two parts make the same sum either way; a ring adds two at each hop.
  d.any_order = d.any_order && d.mapping == Mapping::kDirect && reduces(d.collective) && ranks > 2;
  const TileGrid grid{d.rows, d.cols, d.tile_rows, d.tile_cols};
  if (grid.tiles_over({0, std::min(d.rows, block + 1)}) > kMostTilesOfAChunk)
    return bad("tiles of {} x {} are too small for {} x {}", d.tile_rows, d.tile_cols, d.rows,
               d.cols);
  return d;
}

std::string describe(const FusedDescription& d) {
  return fmt::format("fused {} of {} x {} {}", to_string(d.collective), d.rows, d.cols,
                     to_string(d.type));
}

uint64_t digest(const FusedDescription& d) {
  Hash hash;
  for (const int64_t value : shared_values(d)) hash.number(value);
  return hash.value();
}

std::string difference(int rank_a, const FusedDescription& a, int rank_b,
                       const FusedDescription& b) {
  const auto left = shared_values(a), right = shared_values(b);
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i] == right[i]) continue;
    return fmt::format("rank {} describes {} {}, rank {} describes {}", rank_a, kNames[i],
                       value_text(i, a), rank_b, value_text(i, b));
  }
  return {};
}

}  // namespace tessera
