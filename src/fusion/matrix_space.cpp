#include "fusion/matrix_space.h"

#include <algorithm>
#include <limits>

#include "device/host/copy.h"
#include "fusion/onto.h"

namespace tessera {
namespace {

// Slots are read soon after they are written: never past the caches.
constexpr size_t kNeverStreamed = std::numeric_limits<size_t>::max();

}  // namespace

MatrixSpace::MatrixSpace(const FusedDescription& description, size_t chunk_rows,
                         uint32_t max_operands, Onto* onto)
    : HostSpace(max_operands),
      row_bytes_(description.row_bytes()),
      element_bytes_(size_of(description.type)),
      cols_(description.cols),
      column_major_(description.column_major),
      remote_chunks_(description.remote_chunks),
      onto_(onto),
      chunk_bytes_(chunk_rows * row_bytes_),
      chunks_(static_cast<size_t>(description.chunks)),
      places_(max_operands),
      lines_(max_operands),
      dsts_(max_operands),
      srcs_(max_operands),
      scales_(max_operands) {}

void MatrixSpace::bind(const MemberWay* ways, bool ported, const Reduction& reduction) {
  HostSpace::bind(ways, ported, reduction, static_cast<uint32_t>(element_bytes_), kNeverStreamed);
  reduction_ = reduction;
}

int64_t MatrixSpace::existing_rows(const Operands<Place>& operands) const {
  auto rows = static_cast<int64_t>(operands.elements);
  const auto clip = [&](const Place& place) {
    if (place.matrix == nullptr) return;
    const auto first = static_cast<int64_t>(place.offset / row_bytes_);
    rows = std::min(rows, std::max<int64_t>(place.matrix->rows - first, 0));
  };
  std::for_each(operands.dsts, operands.dsts + operands.num_dsts, clip);
  std::for_each(operands.srcs, operands.srcs + operands.num_srcs, clip);
  return rows;
}

MatrixSpace::Lines MatrixSpace::lines_of(const Place& place, int64_t rows) const {
  if (place.matrix == nullptr) {
    const size_t line = column_major_ ? static_cast<size_t>(rows) * element_bytes_ : row_bytes_;
    return {reinterpret_cast<std::byte*>(place.offset), line};
  }
  const size_t row = place.offset / row_bytes_;
  const size_t apart = column_major_ ? element_bytes_ : place.matrix->line_bytes;
  return {place.matrix->base + row * apart, place.matrix->line_bytes};
}

bool MatrixSpace::reduces(const Operands<Place>& operands) const {
  if (reduction_.kernel == nullptr) return false;
  if (operands.reduce || (operands.completes && reduction_.divisor > 1)) return true;
  return reduction_.scales != nullptr && std::any_of(operands.raw, operands.raw + operands.num_srcs,
                                                     [](uint16_t raw) { return raw != 0; });
}

bool MatrixSpace::stored_by_kernel(const Operands<Place>& operands) const {
  if (onto_ != nullptr) {
    return std::any_of(operands.raw, operands.raw + operands.num_srcs,
                       [](uint16_t raw) { return raw != 0; });
  }
  if (remote_chunks_ == 0 || operands.reduce) return false;
  const bool sends = operands.srcs[0].matrix != nullptr && operands.dsts[0].matrix == nullptr;
  const size_t chunk = operands.srcs[0].offset / chunk_bytes_ % chunks_;
  return sends && (remote_chunks_ >> chunk & 1) != 0;
}

bool MatrixSpace::combine(const Operands<Place>& operands) {
  if (stored_by_kernel(operands)) return true;
  if (onto_ != nullptr && !onto_->enter_peer()) return false;
  move(operands);
  if (onto_ != nullptr) onto_->leave_peer();
  return true;
}

void MatrixSpace::move(const Operands<Place>& operands) {
  const int64_t rows = existing_rows(operands);
  if (rows == 0) return;
  const auto lines = static_cast<size_t>(column_major_ ? cols_ : rows);
  const auto length = static_cast<size_t>(column_major_ ? rows : cols_);
  bool dense = true;
  for (uint32_t i = 0; i < operands.num_dsts + operands.num_srcs; ++i) {
    const Place& place =
        i < operands.num_dsts ? operands.dsts[i] : operands.srcs[i - operands.num_dsts];
    lines_[i] = lines_of(place, rows);
    dense = dense && lines_[i].step == length * element_bytes_;
  }
  const bool reduce = reduces(operands);
  if (dense) {
    combine_lines(operands, 0, lines * length, reduce);
  } else {
    for (size_t line = 0; line < lines; ++line) combine_lines(operands, line, length, reduce);
  }
  for (uint32_t i = 0; i < operands.num_dsts; ++i) {
    const Place& place = operands.dsts[i];
    if (place.matrix == nullptr)
      send(operands.members[i], lines_[i].first, lines * length * element_bytes_);
  }
}

void MatrixSpace::combine_lines(const Operands<Place>& operands, size_t line, size_t elements,
                                bool reduce) {
  for (uint32_t i = 0; i < operands.num_dsts; ++i)
    dsts_[i] = lines_[i].first + line * lines_[i].step;
  for (uint32_t i = 0; i < operands.num_srcs; ++i) {
    const Lines& lines = lines_[operands.num_dsts + i];
    srcs_[i] = lines.first + line * lines.step;
  }
  if (!reduce) {
    host::copy_to_all(dsts_.data(), static_cast<int>(operands.num_dsts), srcs_[0],
                      elements * element_bytes_, false);
    return;
  }
  const bool scaled = reduction_.scales != nullptr;
  for (uint32_t i = 0; i < operands.num_srcs; ++i) {
    const bool raw = operands.raw[i] != 0;
    scales_[i] = scaled && raw ? reduction_.scales[operands.raw[i] - 1] : nullptr;
  }
  reduction_.kernel({dsts_.data(), static_cast<int>(operands.num_dsts), srcs_.data(),
                     static_cast<int>(operands.num_srcs), scaled ? scales_.data() : nullptr,
                     elements, operands.completes ? reduction_.divisor : 1});
}

}  // namespace tessera
