#include "tools/tune_tool/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "device/host/memory.h"
#include "plan/shape.h"

namespace tessera::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRoundsOfLongCalls = 3;
constexpr size_t kJudgedBy = 256 << 10;  // bytes of a block

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Memory that peers can map, or that they cannot.
class Buffer {
 public:
  explicit Buffer(bool shareable) : shareable_(shareable) {}
  // Makes room for so many bytes at least; every page is there then.
  Status reserve(size_t bytes) {
    if (bytes <= bytes_) return {};
    if (shareable_) {
      Result<void*> memory = host::memory_allocate(bytes);
      if (!memory.ok()) return memory.status();
      mapped_.reset(memory.value());
      data_ = memory.value();
    } else {
      plain_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      data_ = plain_.get();
    }
    std::memset(data_, 0, bytes);
    bytes_ = bytes;
    return {};
  }
  void* data() const { return data_; }

 private:
  struct Free {
    void operator()(void* memory) const { static_cast<void>(host::memory_free(memory)); }
  };
  bool shareable_;
  std::unique_ptr<void, Free> mapped_;
  std::unique_ptr<std::byte[]> plain_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

struct Buffers {
  explicit Buffers(bool shareable) : input(shareable), output(shareable) {}
  Buffer input, output;
};

// One contestant: a communicator that runs just this candidate.
struct Contestant {
  std::unique_ptr<Communicator> comm;
  const Buffers* buffers = nullptr;
  Span span;
  bool staged = false;
  std::optional<size_t> rule;  // who has the same algorithm in the rule's slices; none: itself
  bool promising = false;      // at the last size
  int hopeless = 0;
  int calls = 1;
  std::vector<double> times;
};

Config config_of(const Candidate& candidate, const Config& base, size_t cap) {
  Config config = base;
  config.profile = "none";
  config.algorithm = candidate.algorithm->name;
  config.low_latency_max =
      candidate.protocol == Protocol::kLowLatency ? static_cast<int64_t>(cap) : 0;
  config.share_memory = candidate.protocol != Protocol::kSingleCopy;
  if (candidate.slot_bytes > 0) config.slice_bytes = static_cast<int64_t>(candidate.slot_bytes);
  return config;
}

class Contest {
 public:
  Contest(Seat& seat, const Agenda& agenda)
      : seat_(seat), agenda_(agenda), batch_us_(agenda.batch_us) {}

  Status prepare() {
    Site site;
    site.ranks = seat_.ranks();
    const size_t cap = low_latency_cap(agenda_.collective, site);
    size_t rule = 0;
    for (size_t i = 0; i < agenda_.candidates.size(); ++i) {
      const Candidate& candidate = agenda_.candidates[i];
      const bool plain = candidate.protocol == Protocol::kSingleCopy;
      if (Status s = add(config_of(candidate, agenda_.config, cap), plain ? plain_ : shareable_);
          !s.ok())
        return s;
      Contestant& contestant = contestants_.back();
      contestant.span = agenda_.spans[i];
      contestant.staged = candidate.protocol == Protocol::kStaged;
      if (candidate.protocol == Protocol::kLowLatency) contestant.span.most = cap;
      if (candidate.slot_bytes == 0)
        rule = i;
      else
        contestant.rule = rule;
    }
    return agenda_.automatic ? add(agenda_.config, shareable_) : Status();
  }

  Status run() {
    // From large to small: what is hopeless for large messages is left out early, where it costs.
    std::vector<double> table(agenda_.block_bytes.size() * contestants_.size());
    const Result<size_t> sizes = sizes_in_time();
    if (!sizes.ok()) return sizes.status();
    for (size_t i = sizes.value(); i-- > 0;) {
      if (agenda_.until) share_out(i + 1);
      if (Status s = size(agenda_.block_bytes[i], &table[i * contestants_.size()]); !s.ok())
        return s;
      seat_.progress(1 - static_cast<double>(i) / static_cast<double>(agenda_.block_bytes.size()));
    }
    for (const double time : table) seat_.report(time);
    return {};
  }

 private:
  Status add(const Config& config, const Buffers& buffers) {
    Result<UniqueId> id = seat_.new_id(config);
    if (!id.ok()) return id.status();
    Result<std::unique_ptr<Communicator>> comm =
        Communicator::create(id.value(), seat_.ranks(), seat_.rank(), {config, "tune"});
    if (!comm.ok()) return comm.status();
    contestants_.push_back({});
    contestants_.back().comm = std::move(comm).value();
    contestants_.back().buffers = &buffers;
    return {};
  }

  Status call(Contestant& contestant, size_t block_bytes, int times) const {
    Call call;
    call.collective = agenda_.collective;
    call.root = has_root(agenda_.collective) ? 0 : -1;
    call.count = block_bytes / sizeof(float);
    if (input_blocks(agenda_.collective, seat_.ranks(), call.root, seat_.rank()) > 0)
      call.send = contestant.buffers->input.data();
    if (output_blocks(agenda_.collective, seat_.ranks(), call.root, seat_.rank()) > 0)
      call.recv = contestant.buffers->output.data();
    const Work work{contestant.comm.get(), call};
    for (int i = 0; i < times; ++i) {
      if (Status s = execute({&work, 1}); !s.ok()) return s;
    }
    return {};
  }

  // Mean over the ranks of the time of one of `calls` calls.
  Result<double> time(Contestant& contestant, size_t block_bytes, int calls) {
    seat_.meet();
    const auto start = Clock::now();
    if (Status s = call(contestant, block_bytes, calls); !s.ok()) return s;
    return seat_.mean(microseconds_since(start) / calls);
  }

  double left_us() {
    const std::chrono::duration<double, std::micro> here = *agenda_.until - Clock::now();
    return std::max(seat_.of_first(here.count()), 0.0);
  }

  // How many sizes, from the smallest on, the time suffices for: judged by a call of a middling one,
  // for long calls take as long as their bytes.
  Result<size_t> sizes_in_time() {
    constexpr double kCalls = 2 + kRoundsOfLongCalls;
    constexpr double kSmallerToo = 4.0 / 3;
    const std::vector<size_t>& sizes = agenda_.block_bytes;
    const auto above = [&](size_t bytes) {
      return static_cast<size_t>(std::upper_bound(sizes.begin(), sizes.end(), bytes) -
                                 sizes.begin());
    };
    const size_t always = above(kAlwaysTimed), middle = above(kJudgedBy);
    if (!agenda_.until || always == sizes.size()) return sizes.size();
    const size_t bytes = sizes[std::max<size_t>(middle, 1) - 1];
    const auto one = std::find_if(contestants_.begin(), contestants_.end(), [&](const auto& each) {
      return each.staged && takes_part(each, bytes);
    });
    if (one == contestants_.end()) return sizes.size();
    if (Status s = reserve(bytes); !s.ok()) return s;
    if (Result<double> first = time(*one, bytes, 1); !first.ok()) return first.status();
    const Result<double> call = time(*one, bytes, 2);
    if (!call.ok()) return call.status();
    const double left = left_us();
    size_t count = sizes.size();
    for (; count > always; --count) {
      const double calls =
          kCalls * kSmallerToo * static_cast<double>(taking_part(sizes[count - 1]));
      const double larger = static_cast<double>(sizes[count - 1]) / static_cast<double>(bytes);
      if (calls * call.value() * larger <= left) break;
    }
    return count;
  }

  // Batches that fit into the time that is left, if all that may be measured of the first sizes gets
  // its share: one batch for warming up and those that count.
  void share_out(size_t sizes) {
    size_t cells = 0;
    for (size_t i = 0; i < sizes; ++i) cells += taking_part(agenda_.block_bytes[i]);
    batch_us_ = left_us() / static_cast<double>(std::max<size_t>(cells, 1)) / (agenda_.rounds + 1);
  }

  size_t taking_part(size_t block_bytes) const {
    return static_cast<size_t>(std::count_if(
        contestants_.begin(), contestants_.end(),
        [&](const Contestant& contestant) { return takes_part(contestant, block_bytes); }));
  }

  // Room for calls with such blocks.
  Status reserve(size_t block_bytes) {
    constexpr size_t kLeast = 64;
    for (Buffers* buffers : {&shareable_, &plain_}) {
      const size_t in = block_bytes * blocks(input_blocks);
      const size_t out = block_bytes * blocks(output_blocks);
      if (Status s = buffers->input.reserve(std::max(in, kLeast)); !s.ok()) return s;
      if (Status s = buffers->output.reserve(std::max(out, kLeast)); !s.ok()) return s;
    }
    return {};
  }

  // Of this rank's input or output.
  size_t blocks(int (*count)(Collective, int, int, int)) const {
    return static_cast<size_t>(count(agenda_.collective, seat_.ranks(), 0, seat_.rank()));
  }

  // Sets how many calls make a batch, after a first look, which warms up too.
  Status warm_up(Contestant& contestant, size_t block_bytes) {
    contestant.times.clear();
    contestant.calls = 1;
    Result<double> first = time(contestant, block_bytes, 2);
    if (!first.ok()) return first.status();
    if (first.value() > batch_us_) return {};
    Result<double> second = time(contestant, block_bytes, calls_for(first.value(), batch_us_ / 4));
    if (!second.ok()) return second.status();
    contestant.calls = calls_for(second.value(), batch_us_);
    return {};
  }

  static int calls_for(double time, double batch) {
    return static_cast<int>(std::clamp(batch / std::max(time, 0.01), 1.0, 1e6));
  }

  bool takes_part(const Contestant& contestant, size_t block_bytes) const {
    if (agenda_.automatic && &contestant == &contestants_.back()) return true;
    if (!contestant.span.contains(block_bytes) || contestant.hopeless > 1) return false;
    if (!contestant.rule) return true;
    const Contestant& rule = contestants_[*contestant.rule];
    return rule.promising && takes_part(rule, block_bytes);
  }

  Status size(size_t block_bytes, double* row) {
    if (Status s = reserve(block_bytes); !s.ok()) return s;
    std::vector<Contestant*> active;
    for (Contestant& contestant : contestants_) {
      if (!takes_part(contestant, block_bytes)) continue;
      if (Status s = warm_up(contestant, block_bytes); !s.ok()) return s;
      active.push_back(&contestant);
    }
    for (int round = 0; round < agenda_.rounds; ++round) {
      for (Contestant* contestant : active) {
        // Long calls are hardly disturbed, and are what measuring takes its time for.
        if (round >= kRoundsOfLongCalls && contestant->calls == 1) continue;
        Result<double> t = time(*contestant, block_bytes, contestant->calls);
        if (!t.ok()) return t.status();
        contestant->times.push_back(t.value());
      }
    }
    double best = std::numeric_limits<double>::max(), best_staged = best;
    for (Contestant* contestant : active) {
      std::vector<double>& times = contestant->times;
      std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
      const double median = times[times.size() / 2];
      row[contestant - contestants_.data()] = median;
      best = std::min(best, median);
      if (contestant->staged) best_staged = std::min(best_staged, median);
    }
    for (Contestant* contestant : active) {
      const double median = row[contestant - contestants_.data()];
      contestant->promising = median <= agenda_.promising * best_staged;
      const double limit =
          contestant->rule ? agenda_.worse * row[*contestant->rule] : agenda_.hopeless * best;
      const bool slow = median > limit;
      contestant->hopeless = slow ? contestant->hopeless + 1 : 0;
    }
    return {};
  }

  Seat& seat_;
  const Agenda& agenda_;
  double batch_us_;
  Buffers shareable_{true}, plain_{false};
  std::vector<Contestant> contestants_;
};

}  // namespace

Status measure(Seat& seat, const Agenda& agenda) {
  Contest contest(seat, agenda);
  if (Status s = contest.prepare(); !s.ok()) return s;
  return contest.run();
}

}  // namespace tessera::tune
