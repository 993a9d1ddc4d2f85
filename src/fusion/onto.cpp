#include "fusion/onto.h"

#include <algorithm>

namespace tessera {
namespace {

// 16-bit and smaller floats would be rounded between the two parts, unlike those that travel.
bool adds_exactly_as_a_sum(DataType type) {
  switch (type) {
    case DataType::kFloat32:
    case DataType::kFloat64:
    case DataType::kInt8:
    case DataType::kUint8:
    case DataType::kInt32:
    case DataType::kUint32:
    case DataType::kInt64:
    case DataType::kUint64:
      return true;
    default:
      return false;
  }
}

// The plan divides the chunks of an all-reduce among ranks, the matrix its rows.
bool divides_alike(const FusedDescription& d) {
  const Geometry geometry(d, 2, 0);
  return d.collective != Collective::kAllReduce ||
         geometry.input().rows_of(d.chunks).begin == geometry.owned(1).begin;
}

}  // namespace

size_t Onto::region_bytes(const FusedDescription& d) {
  const TileGrid grid{d.rows, d.cols, d.tile_rows, d.tile_cols};
  return sizeof(Side) + static_cast<size_t>(grid.tiles()) * sizeof(Counter);
}

const char* Onto::obstacle(const FusedDescription& d, int ranks) {
  const int64_t block = round_up_div(d.rows, 2);
  if (ranks != 2) return "there are not two ranks";
  if (!reduces(d.collective)) return "nothing is added";
  if (d.op != ReduceOp::kSum) return "the reduction is no sum";
  if (!adds_exactly_as_a_sum(d.type)) return "the type would be rounded between two additions";
  if (d.plan != 0) return "the plan is the user's";
  if (d.parts != 1) return "tiles are reported in parts";
  if (block % d.tile_rows != 0 && block < d.rows) return "a tile lies over the rows of both ranks";
  if (!divides_alike(d)) return "a chunk lies over the rows of both ranks";
  return nullptr;
}

Onto::Onto(const FusedDescription& d, const Geometry& geometry, int rank, const LinkedPlan& linked)
    : rank_(rank),
      tile_rows_(d.tile_rows),
      tile_cols_(d.tile_cols),
      across_(round_up_div(d.cols, d.tile_cols)),
      block_rows_(geometry.block_rows()),
      element_bytes_(size_of(d.type)),
      column_major_(d.column_major),
      whole_(d.collective == Collective::kAllReduce),
      first_pass_(linked.next_pass),
      taken_(static_cast<size_t>(across_ * round_up_div(d.rows, d.tile_rows))) {
  for (int r = 0; r < 2; ++r) sides_[r] = reinterpret_cast<Side*>(linked.extra(r));
}

void Onto::begin(const Matrix& output) {
  Side& own = side(rank_);
  own.output = output;
  own.door.open();
  own.begun.counter.publish(1);  // I5: after what it announces
}

const Counter& Onto::opening(int64_t row, int64_t col) const {
  return reinterpret_cast<const Counter*>(sides_[owner(row)] + 1)[index(row, col)];
}

Onto::Taken Onto::take(int64_t row, int64_t col, uint64_t launch) {
  const int who = owner(row);
  if (who != rank_ && !side(who).door.enter()) return Taken::kClosed;
  if (taken_[index(row, col)].add(launch + 1) != 0) return Taken::kYes;
  if (who != rank_) side(who).door.leave();
  return Taken::kTwice;
}

void Onto::made(int64_t row, int64_t col) {
  if (const int who = owner(row); who != rank_) return side(who).door.leave();
  Counter* const openings = reinterpret_cast<Counter*>(&side(rank_) + 1);
  openings[index(row, col)].publish(1);  // I5: after the stores of the tile
}

Onto::Place Onto::place(int64_t row, int64_t col) const {
  const int who = owner(row);
  const Matrix& matrix = side(who).output;
  const int64_t r = row * tile_rows_ - (whole_ ? 0 : who * block_rows_), c = col * tile_cols_;
  const int64_t line = column_major_ ? c : r, in_line = column_major_ ? r : c;
  return {matrix.base + static_cast<size_t>(line) * matrix.line_bytes +
              static_cast<size_t>(in_line) * element_bytes_,
          static_cast<int64_t>(matrix.line_bytes / element_bytes_)};
}

}  // namespace tessera
