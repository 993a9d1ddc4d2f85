#include "common/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

#include "command_line/print.h"
#include "common/files.h"
#include "common/outcome.h"
#include "common/report.h"

namespace tessera::perf {
namespace {

bool first_of_launch() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank == nullptr || std::strcmp(rank, "0") == 0;
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0)
      return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "host";
}

size_t available_memory() {
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("MemAvailable:", 0) == 0)
      return std::strtoull(line.c_str() + 13, nullptr, 10) * 1024;
  }
  return ~size_t{0};
}

// Bytes of data that a buffer must hold for the whole sweep.
size_t needed_bytes(const Options& options, int ranks) {
  size_t most = 0;
  for (const ElementType* type : options.types) {
    for (const size_t bytes : {options.min_bytes, options.max_bytes}) {
      const Counts c = collective().counts(bytes / type->size, type->size, ranks);
      most = std::max(most, std::max(c.send, c.recv) * type->size);
    }
  }
  return std::max(most, options.max_bytes);
}

// A rank needs a send buffer, a receive buffer and the expected image; a tenth of memory stays
// free.
void shrink_to_memory(Options* options, World& world) {
  const double ranks_here = 1.0 * world.local_processes() * options->threads * options->gpus;
  double limit = static_cast<double>(available_memory()) * 0.9 / (3 * ranks_here);
  world.combine({&limit, 1}, Combine::kMin);
  if (static_cast<double>(options->max_bytes) <= limit) return;
  options->max_bytes = static_cast<size_t>(limit) / 4096 * 4096;
  const size_t asked = options->min_bytes;
  options->min_bytes = std::min(options->min_bytes, options->max_bytes);
  if (world.process() != 0) return;
  command_line::print("#\n# Reducing maxBytes to {} due to memory limitation\n",
                      options->max_bytes);
  if (asked == options->min_bytes) return;
  command_line::print(
      stderr,
      "warning: {} bytes (-b) do not fit: a rank needs three such buffers, and this machine "
      "has memory for {} bytes in each of {}; so many are measured instead\n",
      asked, options->min_bytes, 3 * ranks_here);
}

std::vector<DeviceLine> gather_devices(const Options& options, World& world) {
  const int here = options.threads * options.gpus;
  const char* first = std::getenv("NCCL_TESTS_DEVICE");
  const int base = first != nullptr ? std::atoi(first) : world.local_process() * here;
  const std::string host = host_name(), name = cpu_name();
  std::vector<DeviceLine> mine(static_cast<size_t>(here));
  for (int i = 0; i < here; ++i) {
    DeviceLine& line = mine[static_cast<size_t>(i)];
    line = {world.group_process() * here + i,
            world.color(),
            static_cast<int>(getpid()),
            base + i,
            {},
            {}};
    std::strncpy(line.host, host.c_str(), sizeof(line.host) - 1);
    std::strncpy(line.name, name.c_str(), sizeof(line.name) - 1);
  }
  std::vector<DeviceLine> all(mine.size() * static_cast<size_t>(world.processes()));
  world.gather(mine.data(), mine.size() * sizeof(DeviceLine), all.data());
  return all;
}

std::vector<Job> jobs_of(const Options& options, int ranks) {
  std::vector<const Operation*> ops = {nullptr};
  if (collective().reduces()) ops = options.ops;
  std::vector<int> roots = {-1};
  if (collective().rooted()) {
    roots = {options.root};
    if (options.root == -1) {
      roots.clear();
      for (int r = 0; r < ranks; ++r) roots.push_back(r);
    }
  }
  std::vector<Job> jobs;
  for (const ElementType* type : options.types) {
    for (const Operation* op : ops) {
      for (const int root : roots) {
        for (const size_t bytes : options.sizes()) jobs.push_back({type, op, root, bytes});
      }
    }
  }
  return jobs;
}

void show_progress(size_t done, size_t all, const Job& job, const char* what) {
  static const bool terminal = isatty(STDERR_FILENO) != 0 && isatty(STDOUT_FILENO) == 0;
  if (!terminal) return;
  command_line::print(stderr, "\r\033[K[{}/{}] {} bytes {} {}", done, all, job.bytes,
                      job.type->name, what);
  if (done == all) command_line::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

// All points of one thread; `report` is null in all but the reporting thread.
void run_jobs(Worker& worker, const std::vector<Job>& jobs, const Options& options,
              Report* report) {
  for (int cycle = 0; options.cycles == 0 || cycle < options.cycles; ++cycle) {
    for (size_t j = 0; j < jobs.size(); ++j) {
      const Counts counts = worker.counts(jobs[j]);
      if (report != nullptr) report->row_start(jobs[j], counts);
      for (const bool in_place : {false, true}) {
        if (report != nullptr)
          show_progress(j, jobs.size(), jobs[j], in_place ? "in place" : "out of place");
        const Point point = worker.measure(jobs[j], in_place);
        if (report != nullptr) report->placement(jobs[j], counts, in_place, point);
      }
      if (report != nullptr) report->row_end();
    }
    if (report != nullptr && !jobs.empty())
      show_progress(jobs.size(), jobs.size(), jobs.back(), "");
  }
}

// Ends the program when the options ask for what this run cannot do.
void refuse_impossible(const Options& options, const World& world, int ranks) {
  const auto refuse = [&](ExitCode code, const std::string& text) {
    if (world.process() == 0) fail(code, text);
    _exit(code);
  };
  if (collective().rooted() && options.root >= ranks) {
    refuse(kInvalidUsage, fmt::format("root {} of {} ranks", options.root, ranks));
  }
  if (const std::string why = collective().prepare(options, ranks); !why.empty())
    refuse(kInvalidUsage, why);
  // Only process 0 writes; when it fails, the launcher ends the others.
  if (world.process() != 0) return;
  if (const std::string why = check_files(options); !why.empty()) fail(kInvalidUsage, why);
}

std::optional<Limits> probe(const Options& options, World& world) {
  if (!options.limits) return std::nullopt;
  std::optional<Limits> limits;
  if (world.process() == 0) limits = probe_limits();
  world.quiet_barrier();
  return limits;
}

int run_session(const Options& options, World& world, int argc, char** argv) {
  const int ranks = world.group_processes() * options.threads * options.gpus;
  const std::string program = program_invocation_short_name;
  refuse_impossible(options, world, ranks);
  const std::optional<Limits> limits = probe(options, world);
  const std::vector<DeviceLine> devices = gather_devices(options, world);
  std::unique_ptr<JsonReport> json;
  std::unique_ptr<Report> report;
  if (world.process() == 0) {
    if (!options.json.empty()) json = std::make_unique<JsonReport>(options, argc, argv);
    report = std::make_unique<Report>(options, collective(), program, ranks, json.get(),
                                      limits ? &*limits : nullptr);
    report->start(devices);
    if (json != nullptr) json->devices(devices);
  }
  std::unique_ptr<Baseline> baseline;
  if (options.baseline_mpi) baseline = make_baseline(world, collective());
  if (!collective().runs_on(ranks)) {
    if (report != nullptr)
      command_line::print("# {} does not run on {} ranks: skipped\n", program, ranks);
    return kSuccess;
  }

  Session session(options, world, needed_bytes(options, ranks));
  session.start();
  if (report != nullptr) report->table_header();
  const std::vector<Job> jobs = jobs_of(options, ranks);
  session.in_threads([&](int thread) {
    Worker worker(session, collective(), baseline.get(), thread);
    run_jobs(worker, jobs, options, thread == 0 ? report.get() : nullptr);
  });
  double code = kSuccess;
  if (report != nullptr) {
    code = report->finish(2 * session.buffer_bytes() *
                          static_cast<size_t>(options.threads * options.gpus));
    if (!write_files(options, program, ranks, *report, json.get()) && code == 0)
      code = kInternalError;
  }
  session.finish();
  world.combine({&code, 1}, Combine::kFirst);
  return static_cast<int>(code);
}

}  // namespace

int run_program(int argc, char** argv) {
  Parsed parsed = parse_options(argc, argv);
  if (parsed.exit_code >= 0) {
    if (first_of_launch()) {
      command_line::print(parsed.exit_code == 0 ? stdout : stderr, "{}{}", parsed.text,
                          parsed.text.ends_with('\n') ? "" : "\n");
    }
    return parsed.exit_code;
  }
  const std::unique_ptr<World> world = start_world(&argc, &argv, parsed.options.baseline_mpi);
  set_terminator([&](int code) { world->abort(code); });
  shrink_to_memory(&parsed.options, *world);
  const int code = run_session(parsed.options, *world, argc, argv);
  const bool arrived = command_line::output_arrived();
  world->finish();
  return arrived || code != kSuccess ? code : kInternalError;
}

}  // namespace tessera::perf
