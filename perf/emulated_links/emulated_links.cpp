// emulated_links: whether emulated links deliver what their description says, and what it costs to
// wait for them. Ranks are threads of one process. Rounds go through all sizes and numbers of ranks
// in turn, so that a busy spell of the machine hits all alike; medians are shown.
//
//   time    every rank to its right neighbour: from the call of put() to the arrival of the signal
//   stream  eight messages after each other, to the arrival of the last
//   all     every rank to every other: from the first put() to the last arrival at a rank; expected
//           is what one rank's line carries, (ranks - 1) * bytes / rate for so many peers + latency
//   CPU     of a rank's thread from its signal() to the arrival of its neighbour's
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/median.h"
#include "base/nap.h"
#include "command_line/help.h"
#include "sync/barrier.h"
#include "sync/counter.h"
#include "transports/emulated/description.h"
#include "transports/emulated/engine.h"

namespace {

using namespace tessera;

struct Options {
  std::string links = "uniform:bandwidth=250MB/s,latency=50us";
  std::vector<int> ranks = {2, 4, 8};
  std::vector<size_t> sizes = {8, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
  int rounds = 9;
  bool in_place = false;
};

constexpr int kStream = 8;
constexpr auto kTooLong = std::chrono::seconds(60);

double now_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double thread_cpu_us() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

struct Arrivals : Landing {
  std::byte* locate(int, uint64_t, size_t) override { return nullptr; }
  bool signalled(int, const PortSignal&) override {
    at = now_us();
    ++count;
    return true;
  }
  void closed(int, const Status&) override {}
  double at = 0;
  uint64_t count = 0;
};

struct alignas(kCacheLine) Line {
  std::byte bytes[kCacheLine];
};

struct Samples {
  std::vector<double> time, stream, all,
      cpu;  // shares of what the description says; CPU of wall time
  std::vector<double> late_us;
};

// Ranks over links of their own, made once.
class Team {
 public:
  Team(emulated::Links links, size_t most, bool in_place)
      : links_(std::make_shared<const emulated::Links>(std::move(links))),
        shared_(emulated::shared_bytes(*links_) / sizeof(Line) + 1),
        bells_(static_cast<size_t>(links_->ranks)),
        landings_(bells_.size()),
        begun_(bells_.size()),
        alarms_(bells_.size()),
        data_(most, std::byte{1}),
        in_place_(in_place),
        start_(links_->ranks) {
    for (Doorbell& bell : bells_) bell_pointers_.push_back(&bell);
    for (int rank = 0; rank < links_->ranks; ++rank) {
      memory_.emplace_back(most, std::byte{2});
      engines_.push_back(emulated::make_engine(links_, rank, shared_[0].bytes, bell_pointers_,
                                               landings_[static_cast<size_t>(rank)]));
    }
  }

  int ranks() const { return links_->ranks; }

  void round(size_t bytes, Samples& samples) {
    std::vector<Samples> of_rank(engines_.size());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks(); ++rank) {
      threads.emplace_back(
          [this, rank, bytes, &of_rank] { of_rank[static_cast<size_t>(rank)] = run(rank, bytes); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Samples& s : of_rank) {
      samples.time.insert(samples.time.end(), s.time.begin(), s.time.end());
      samples.stream.insert(samples.stream.end(), s.stream.begin(), s.stream.end());
      samples.all.insert(samples.all.end(), s.all.begin(), s.all.end());
      samples.cpu.insert(samples.cpu.end(), s.cpu.begin(), s.cpu.end());
      samples.late_us.insert(samples.late_us.end(), s.late_us.begin(), s.late_us.end());
    }
  }

 private:
  Samples run(int rank, size_t bytes) {
    Samples samples;
    const int left = (rank + ranks() - 1) % ranks();
    const double carried = static_cast<double>(bytes) / links_->rate(left, rank) / 1000;
    const double latency =
        std::chrono::duration<double, std::micro>(links_->way(left, rank).latency).count();
    const double one = exchange(rank, left, bytes, 1, &samples);
    samples.time.push_back(one / (carried + latency));
    samples.late_us.push_back(one - carried - latency);
    const double stream = exchange(rank, left, bytes, kStream, nullptr);
    samples.stream.push_back(stream / (kStream * carried + latency));
    samples.all.push_back(exchange_all(rank, bytes) / (expected_of_all(rank, bytes) + latency));
    return samples;
  }

  // Sends `messages` to the right and waits for as many from the left: how long they took.
  double exchange(int rank, int left, size_t bytes, int messages, Samples* samples) {
    const auto self = static_cast<size_t>(rank);
    const int right = (rank + 1) % ranks();
    Port& port = *engines_[self]->port(right);
    Arrivals& landing = landings_[self];
    const uint64_t target = landing.count + static_cast<uint64_t>(messages);
    start_.arrive_and_wait();
    begun_[self] = now_us();
    for (int i = 0; i < messages; ++i) {
      put(port, right, bytes);
      port.signal({});
    }
    const double wall = now_us(), cpu = thread_cpu_us();
    while (landing.count < target) wait(rank, wall);
    if (samples != nullptr) samples->cpu.push_back((thread_cpu_us() - cpu) / (now_us() - wall));
    const double took = landing.at - begun_[static_cast<size_t>(left)];
    start_.arrive_and_wait();  // `begun_` has been read
    return took;
  }

  void put(Port& port, int to, size_t bytes) {
    std::byte* there = memory_[static_cast<size_t>(to)].data();
    port.put(0, in_place_ ? there : data_.data(), there, bytes);
  }

  double expected_of_all(int rank, size_t bytes) const {
    const auto peers = static_cast<size_t>(ranks() - 1);
    double rate = links_->rate(rank, (rank + 1) % ranks());
    for (const emulated::Hop& hop : links_->way(rank, (rank + 1) % ranks()).hops)
      rate = std::min(rate, links_->lines[static_cast<size_t>(hop.line)].rate(peers));
    return static_cast<double>(bytes * peers) / rate / 1000;
  }

  double exchange_all(int rank, size_t bytes) {
    const auto self = static_cast<size_t>(rank);
    Arrivals& landing = landings_[self];
    const uint64_t target = landing.count + static_cast<uint64_t>(ranks() - 1);
    start_.arrive_and_wait();
    const double begin = begun_[self] = now_us();
    for (int step = 1; step < ranks(); ++step) {
      const int to = (rank + step) % ranks();
      put(*engines_[self]->port(to), to, bytes);
      engines_[self]->port(to)->signal({});
    }
    while (landing.count < target) wait(rank, begin);
    start_.arrive_and_wait();
    const double took = landing.at - *std::min_element(begun_.begin(), begun_.end());
    start_.arrive_and_wait();  // `begun_` has been read
    return took;
  }

  void wait(int rank, double since_us) {
    PortEngine& engine = *engines_[static_cast<size_t>(rank)];
    if (engine.progress()) return;
    Alarm& alarm = alarms_[static_cast<size_t>(rank)];
    if (alarm.nap(engine.due_in()).count() == 0) return yield();
    if (now_us() - since_us > std::chrono::microseconds(kTooLong).count()) {
      std::fprintf(stderr, "rank %d waits for ever\n", rank);
      std::exit(1);
    }
    Doorbell& bell = bells_[static_cast<size_t>(rank)];
    const Sleeper sleeper{&bell, bell.prepare()};
    if (!engine.progress()) {
      // after prepare(): what was posted before it did not ring
      const auto nap = std::min<Alarm::Time>(alarm.nap(engine.due_in()), kTooLong);
      if (nap.count() > 0) {
        const SharpTimer sharp;
        const auto begin = std::chrono::steady_clock::now();
        sleep_any(&sleeper, 1, nap);
        alarm.slept(nap, std::chrono::steady_clock::now() - begin);
      }
    }
    bell.cancel();
  }

  std::shared_ptr<const emulated::Links> links_;
  std::vector<Line> shared_;
  std::vector<Doorbell> bells_;
  std::vector<Doorbell*> bell_pointers_;
  std::vector<Arrivals> landings_;
  std::vector<double> begun_;
  std::vector<Alarm> alarms_;
  std::vector<std::byte> data_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::unique_ptr<PortEngine>> engines_;
  const bool in_place_;
  std::barrier<> start_;
};

void show(const Options& options, std::map<std::pair<int, size_t>, Samples>& all) {
  std::printf("# %s, %d rounds, medians\n", options.links.c_str(), options.rounds);
  std::printf("#                  measured / description\n");
  std::printf("# ranks    bytes     time   stream      all   late us  waiting CPU %%\n");
  for (const auto& [key, s] : all) {
    std::printf("%7d %8zu %8.4f %8.4f %8.4f %9.1f %14.2f\n", key.first, key.second, median(s.time),
                median(s.stream), median(s.all), median(s.late_us), 100 * median(s.cpu));
  }
}

// A line that is rewritten on a terminal; elsewhere one for each round.
void progress(int round, int rounds, size_t bytes) {
  static int shown = -1;
  if (isatty(STDERR_FILENO) != 0)
    std::fprintf(stderr, "\r\033[Kround %d of %d: %zu bytes", round + 1, rounds, bytes);
  else if (round != shown)
    std::fprintf(stderr, "round %d of %d\n", round + 1, rounds);
  shown = round;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Measures emulated links against their description: ranks are threads, rounds are repeated, "
      "medians are shown. The defaults take about two minutes; fewer --ranks, --sizes and --rounds "
      "take less.");
  command_line::explain_well(app);
  app.add_option("--links", options.links, "as TESSERA_EMULATE")->capture_default_str();
  app.add_option("--ranks", options.ranks, "numbers of ranks")
      ->delimiter(',')
      ->default_str("2,4,8")
      ->check(command_line::between(2, 64));
  app.add_option("--sizes", options.sizes, "bytes of a message")
      ->delimiter(',')
      ->default_str("8,64K,256K,1M,4M,16M,64M")
      ->transform(command_line::byte_size());
  app.add_option("--rounds", options.rounds, "how often everything is measured")
      ->capture_default_str()
      ->check(command_line::between(1, 10'000));
  app.add_flag("--in-place", options.in_place, "puts of bytes that are there already: no copies");
  CLI11_PARSE(app, argc, argv);
  register_for_barriers();
  const size_t most = *std::max_element(options.sizes.begin(), options.sizes.end());
  std::vector<std::unique_ptr<Team>> teams;
  for (const int ranks : options.ranks) {
    Result<emulated::Links> links = emulated::links_of(options.links, ranks);
    if (!links.ok()) {
      std::fprintf(stderr, "%s\n", links.status().message().c_str());
      return 2;
    }
    teams.push_back(std::make_unique<Team>(std::move(links).value(), most, options.in_place));
  }
  std::map<std::pair<int, size_t>, Samples> all;
  for (int round = 0; round < options.rounds; ++round) {
    for (const size_t bytes : options.sizes) {
      progress(round, options.rounds, bytes);
      for (const auto& team : teams) team->round(bytes, all[{team->ranks(), bytes}]);
    }
  }
  if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r\033[K");
  show(options, all);
  return 0;
}
