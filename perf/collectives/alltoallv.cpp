// All-to-all with different counts for every pair, as grouped sends and receives.
//
// Counts come from a matrix file (bytes from rank i to rank j; whitespace between numbers, '#'
// starts a comment), or are made from the distance of the ranks: with spread s, rank i sends (1 -
// s)/n + s * d/sum(d) of its total to rank i + d. Every count is rounded down to 16 bytes. Blocks
// lie packed in rank order in both buffers.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "common/collective.h"

namespace tessera::perf {
namespace {

double number_from(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::strtod(text, nullptr);
}

class AlltoAllv final : public Collective {
 public:
  const char* name() const override { return "AlltoAllv"; }
  bool reduces() const override { return false; }
  bool rooted() const override { return false; }
  bool in_place() const override { return false; }
  MpiPeer mpi_peer() const override { return MpiPeer::kAlltoallv; }

  std::string prepare(const Options& options, int ranks) override {
    spread_ = number_from("NCCL_TESTS_ALLTOALLV_SPREAD", 1.0);
    if (!(spread_ >= 0) || spread_ > 1)
      return "NCCL_TESTS_ALLTOALLV_SPREAD: a number from 0 to 1 is expected";
    const char* file = std::getenv("NCCL_TESTS_ALLTOALLV_MATRIX_FILE");
    if (file == nullptr || *file == '\0') return {};
    if (options.min_bytes != options.max_bytes) {
      return "NCCL_TESTS_ALLTOALLV_MATRIX_FILE fixes the sizes: -b and -e must be equal";
    }
    const std::string refused = read_matrix(file, ranks);
    if (!refused.empty())
      return fmt::format("NCCL_TESTS_ALLTOALLV_MATRIX_FILE {}: {}", file, refused);
    const Counts needed = counts(0, 1, ranks);
    if (std::max(needed.send, needed.recv) > options.max_bytes) {
      return fmt::format("NCCL_TESTS_ALLTOALLV_MATRIX_FILE {}: a rank moves {} bytes, -e allows {}",
                         file, std::max(needed.send, needed.recv), options.max_bytes);
    }
    return {};
  }

  std::string notes(int ranks) const override {
    if (number_from("NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY", 0) == 0) return {};
    std::string text = matrix_.empty() ? fmt::format("# AlltoAllv shares, spread {}:\n", spread_)
                                       : std::string("# AlltoAllv bytes:\n");
    for (int from = 0; from < ranks; ++from) {
      text += fmt::format("#   rank {:2}:", from);
      for (int to = 0; to < ranks; ++to) {
        text += matrix_.empty() ? fmt::format(" {:.3f}", share(from, to, ranks))
                                : fmt::format(" {:.0f}", matrix_[from][to]);
      }
      text += '\n';
    }
    return text;
  }

  Counts counts(size_t count, size_t type_size, int ranks) const override {
    Counts counts;
    counts.param = dealt(count, type_size, ranks) * static_cast<size_t>(ranks);
    for (int a = 0; a < ranks; ++a) {
      size_t sent = 0, received = 0;
      for (int b = 0; b < ranks; ++b) {
        sent += pair_count(counts.param, type_size, a, b, ranks);
        received += pair_count(counts.param, type_size, b, a, ranks);
      }
      counts.send = std::max(counts.send, sent);
      counts.recv = std::max(counts.recv, received);
    }
    return counts;
  }

  size_t pair_count(size_t param, size_t type_size, int from, int to, int ranks) const override {
    const double bytes = matrix_.empty()
                             ? static_cast<double>(param * type_size) * share(from, to, ranks)
                             : matrix_[static_cast<size_t>(from)][static_cast<size_t>(to)];
    return static_cast<size_t>(bytes + 1e-6) / 16 * 16 / type_size;
  }

  std::vector<Segment> expected(const Counts& counts, size_t type_size, int rank, int ranks,
                                int) const override {
    std::vector<Segment> segments;
    size_t offset = 0;
    for (int from = 0; from < ranks; ++from) {
      const size_t count = pair_count(counts.param, type_size, from, rank, ranks);
      size_t first = 0;
      for (int to = 0; to < rank; ++to)
        first += pair_count(counts.param, type_size, from, to, ranks);
      segments.push_back({Segment::kInput, offset, count, from, first});
      offset += count;
    }
    return segments;
  }

  double bus_factor(int ranks) const override { return (ranks - 1.0) / ranks; }
  double base_bytes(const Counts& counts, size_t type_size, int) const override {
    return static_cast<double>(std::max(counts.send, counts.recv) * type_size);
  }
  // Every rank's input is read, every rank's output written.
  Traffic traffic(const Counts& counts, size_t type_size, int ranks) const override {
    double bytes = 0;
    for (int a = 0; a < ranks; ++a) {
      for (int b = 0; b < ranks; ++b) {
        bytes += static_cast<double>(pair_count(counts.param, type_size, a, b, ranks) * type_size);
      }
    }
    return {bytes, bytes};
  }

  ncclResult_t run(const Call& c, int) const override {
    if (const ncclResult_t r = ncclGroupStart(); r != ncclSuccess) return r;
    ncclResult_t first_error = ncclSuccess;
    size_t sent = 0, received = 0;
    for (int peer = 0; peer < c.ranks && first_error == ncclSuccess; ++peer) {
      const size_t out = pair_count(c.count, c.type->size, c.rank, peer, c.ranks);
      const size_t in = pair_count(c.count, c.type->size, peer, c.rank, c.ranks);
      first_error =
          ncclSend(at(c.send, sent, c.type->size), out, c.type->nccl, peer, c.comm, nullptr);
      if (first_error == ncclSuccess) {
        first_error =
            ncclRecv(at(c.recv, received, c.type->size), in, c.type->nccl, peer, c.comm, nullptr);
      }
      sent += out;
      received += in;
    }
    const ncclResult_t ended = ncclGroupEnd();
    return first_error != ncclSuccess ? first_error : ended;
  }

 private:
  double share(int from, int to, int ranks) const {
    const double total = ranks * (ranks - 1) / 2.0;
    const double distance = (to - from + ranks) % ranks;
    return (1 - spread_) / ranks + (total == 0 ? spread_ : spread_ * distance / total);
  }

  std::string read_matrix(const char* file, int ranks) {
    std::ifstream in(file);
    if (!in) return "cannot be read";
    const double scale = number_from("NCCL_TESTS_ALLTOALLV_MATRIX_SCALE", 1.0);
    if (!(scale >= 0)) return "NCCL_TESTS_ALLTOALLV_MATRIX_SCALE is negative";
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line.substr(0, line.find('#')));
      std::vector<double> row;
      for (double value = 0; words >> value;) {
        if (value < 0) return fmt::format("row {} holds a negative number", matrix_.size());
        row.push_back(value * scale);
      }
      if (!words.eof())
        return fmt::format("row {} holds something else than numbers", matrix_.size());
      if (!row.empty()) matrix_.push_back(std::move(row));
    }
    for (const std::vector<double>& row : matrix_) {
      if (row.size() != matrix_.size()) return "the matrix is not square";
    }
    if (matrix_.size() < static_cast<size_t>(ranks)) {
      return fmt::format("{} rows for {} ranks", matrix_.size(), ranks);
    }
    return {};
  }

  double spread_ = 1.0;
  std::vector<std::vector<double>> matrix_;  // bytes; empty: shares by distance
};

}  // namespace

Collective& collective() {
  static AlltoAllv instance;
  return instance;
}

}  // namespace tessera::perf
