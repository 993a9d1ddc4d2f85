#include "common/options.h"

#include <fmt/format.h>
#include <getopt.h>

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string_view>

namespace tessera::perf {
namespace {

enum LongOnly { kBaseline = 1000, kAdaptive, kBuffers, kLimits, kPlot, kCsv };

const option kLongOptions[] = {
    {"nthreads", required_argument, nullptr, 't'},
    {"ngpus", required_argument, nullptr, 'g'},
    {"minbytes", required_argument, nullptr, 'b'},
    {"maxbytes", required_argument, nullptr, 'e'},
    {"stepbytes", required_argument, nullptr, 'i'},
    {"stepfactor", required_argument, nullptr, 'f'},
    {"iters", required_argument, nullptr, 'n'},
    {"agg_iters", required_argument, nullptr, 'm'},
    {"warmup_iters", required_argument, nullptr, 'w'},
    {"run_cycles", required_argument, nullptr, 'N'},
    {"parallel_init", required_argument, nullptr, 'p'},
    {"check", required_argument, nullptr, 'c'},
    {"op", required_argument, nullptr, 'o'},
    {"datatype", required_argument, nullptr, 'd'},
    {"root", required_argument, nullptr, 'r'},
    {"blocking", required_argument, nullptr, 'z'},
    {"stream_null", required_argument, nullptr, 'y'},
    {"timeout", required_argument, nullptr, 'T'},
    {"cudagraph", required_argument, nullptr, 'G'},
    {"report_cputime", required_argument, nullptr, 'C'},
    {"report_timestamps", required_argument, nullptr, 'S'},
    {"output_file", required_argument, nullptr, 'J'},
    {"average", required_argument, nullptr, 'a'},
    {"local_register", required_argument, nullptr, 'R'},
    {"cta_policy", required_argument, nullptr, 'x'},
    {"device_implementation", required_argument, nullptr, 'D'},
    {"device_cta_count", required_argument, nullptr, 'V'},
    {"memory", required_argument, nullptr, 'M'},
    {"unalign", required_argument, nullptr, 'u'},
    {"per_iter_timing", required_argument, nullptr, 'I'},
    {"skip_samples", required_argument, nullptr, 'K'},
    {"help", no_argument, nullptr, 'h'},
    {"baseline", required_argument, nullptr, kBaseline},
    {"adaptive", no_argument, nullptr, kAdaptive},
    {"buffers", required_argument, nullptr, kBuffers},
    {"limits", no_argument, nullptr, kLimits},
    {"plot", required_argument, nullptr, kPlot},
    {"csv", required_argument, nullptr, kCsv},
    {nullptr, 0, nullptr, 0},
};

const char kShortOptions[] = "t:g:b:e:i:f:n:m:w:N:p:c:o:d:r:z:y:T:G:C:S:J:a:R:x:D:V:M:u:I:K:h";

// An int option: where it is stored and what is allowed.
struct IntRule {
  int key;
  int Options::*field;
  long least, most;
};

constexpr long kAny = 1L << 30;

const IntRule kIntRules[] = {
    {'t', &Options::threads, 1, 4096},      {'g', &Options::gpus, 1, 4096},
    {'n', &Options::iterations, 1, kAny},   {'m', &Options::aggregate, 1, kAny},
    {'w', &Options::warmup, 0, kAny},       {'N', &Options::cycles, 0, kAny},
    {'c', &Options::check, 0, kAny},        {'z', &Options::blocking, 0, 3},
    {'T', &Options::timeout_s, 0, kAny},    {'G', &Options::graph, 0, kAny},
    {'a', &Options::average, 0, 3},         {'R', &Options::local_register, 0, 2},
    {'x', &Options::cta_policy, 0, 2},      {'D', &Options::device_implementation, 0, kAny},
    {'V', &Options::device_ctas, 1, kAny},  {'u', &Options::unalign, 0, 1 << 20},
    {'K', &Options::skip_samples, 0, kAny},
};

struct BoolRule {
  int key;
  bool Options::*field;
};

const BoolRule kBoolRules[] = {
    {'p', &Options::parallel_init}, {'y', &Options::stream_null},   {'C', &Options::cpu_time},
    {'S', &Options::timestamps},    {'M', &Options::memory_report}, {'I', &Options::per_iteration},
};

bool parse_long(const std::string& text, long* value) {
  char* end = nullptr;
  *value = std::strtol(text.c_str(), &end, 0);
  return !text.empty() && *end == '\0';
}

// Why `text` was refused; empty: taken.
std::string set_number(int key, const std::string& text, Options* options) {
  long value = 0;
  for (const IntRule& rule : kIntRules) {
    if (rule.key != key) continue;
    if (!parse_long(text, &value) || value < rule.least || value > rule.most) {
      return fmt::format("invalid value '{}' for -{}: an integer from {} to {} is expected", text,
                         static_cast<char>(key), rule.least, rule.most);
    }
    options->*rule.field = static_cast<int>(value);
    return {};
  }
  for (const BoolRule& rule : kBoolRules) {
    if (rule.key != key) continue;
    if (!parse_long(text, &value)) {
      return fmt::format("invalid value '{}' for -{}: 0 or 1 is expected", text,
                         static_cast<char>(key));
    }
    options->*rule.field = value != 0;
    return {};
  }
  return fmt::format("unknown option -{}", static_cast<char>(key));
}

std::string set_size(const char* name, const std::string& text, size_t* bytes) {
  if (parse_size(text, bytes)) return {};
  return fmt::format("invalid size '{}' for '{}': bytes, or a number with K, M or G", text, name);
}

// All of `known` that are called `text`; "all" is every one. Why `text` was refused; empty: taken.
template <class Named>
std::string choose(const char* what, const std::string& text, std::span<const Named> known,
                   std::vector<const Named*>* chosen) {
  chosen->clear();
  std::string names;
  for (const Named& one : known) {
    if (text == "all" || text == one.name) chosen->push_back(&one);
    names += std::string(one.name) + ", ";
  }
  if (!chosen->empty()) return {};
  return fmt::format("invalid {} '{}'; there are {}all", what, text, names);
}

// The plot is SVG; a name that promises another picture is a mistake.
std::string set_plot(const std::string& path, Options* options) {
  std::string name = path;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* other :
       {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".pdf", ".ps", ".eps"}) {
    if (name.ends_with(other))
      return fmt::format("invalid plot '{}': it is an SVG picture; end its name in .svg", path);
  }
  options->plot = path;
  return {};
}

std::string set_extra(int key, const std::string& text, Options* options) {
  switch (key) {
    case kBaseline:
      if (text != "mpi") return fmt::format("invalid baseline '{}': mpi is expected", text);
      options->baseline_mpi = options->adaptive = true;
      return {};
    case kAdaptive:
      options->adaptive = true;
      return {};
    case kBuffers:
      if (text != "ncclmem" && text != "malloc") {
        return fmt::format("invalid buffers '{}': ncclmem or malloc is expected", text);
      }
      options->buffers = text == "malloc" ? BufferKind::kMalloc : BufferKind::kNcclMem;
      return {};
    case kLimits:
      options->limits = true;
      return {};
    case kPlot:
      return set_plot(text, options);
    default:
      options->csv = text;
      return {};
  }
}

std::string set_option(int key, const std::string& text, Options* options) {
  switch (key) {
    case 'b':
      return set_size("minbytes", text, &options->min_bytes);
    case 'e':
      return set_size("maxbytes", text, &options->max_bytes);
    case 'i':
      return set_size("stepbytes", text, &options->step_bytes);
    case 'f':
      return set_size("stepfactor", text, &options->step_factor);
    case 'o':
      return choose("operation for -o", text, operations(), &options->ops);
    case 'd':
      return choose("type for -d", text, element_types(), &options->types);
    case 'r':  // as nccl-tests does: leading digits count, other text means 0
      options->root = static_cast<int>(std::strtol(text.c_str(), nullptr, 0));
      return {};
    case 'J':
      options->json = text;
      return {};
    default:
      return key < 256 ? set_number(key, text, options) : set_extra(key, text, options);
  }
}

// Relations between options. An exit code of -1: all is well.
Parsed validate(Options options) {
  const auto refuse = [&](int code, std::string text) {
    return Parsed{options, code, std::move(text)};
  };
  if (options.max_bytes < options.min_bytes) {
    return refuse(255, "invalid sizes for 'minbytes' and 'maxbytes': minbytes > maxbytes");
  }
  if (options.step_factor <= 1 && options.step_bytes == 0 &&
      options.min_bytes != options.max_bytes) {
    return refuse(255, "invalid size 0 for 'stepbytes'");
  }
  if (options.device_implementation > 0 && options.local_register != 2) {
    return refuse(6, "-D needs symmetric windows (-R 2)");
  }
  if (options.device_implementation > 0)
    return refuse(5, "-D: ranks in host memory have no device kernels");
  if (options.graph > 0) return refuse(5, "-G: ranks in host memory have no graphs");
  if (options.baseline_mpi && options.threads * options.gpus != 1) {
    return refuse(6,
                  fmt::format("--baseline mpi needs one rank per process: start {} processes with "
                              "mpirun -n instead of -t {} -g {}",
                              options.threads * options.gpus, options.threads, options.gpus));
  }
  if (options.local_register != 0 && options.buffers == BufferKind::kMalloc &&
      options.local_register == 2) {
    return refuse(6, "-R 2 needs buffers of ncclMemAlloc (--buffers ncclmem)");
  }
  return {std::move(options), -1, {}};
}

}  // namespace

bool parse_size(const std::string& text, size_t* bytes) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || !std::isdigit(static_cast<unsigned char>(text[0])) || !(number >= 0))
    return false;
  double unit = 1;
  if (*end != '\0') {
    const size_t power = std::string_view("KMG").find(
        static_cast<char>(std::toupper(static_cast<unsigned char>(*end))));
    if (power == std::string_view::npos || end[1] != '\0') return false;
    unit = std::pow(1024.0, static_cast<double>(power + 1));
  }
  if (number * unit > 1e18) return false;
  *bytes = static_cast<size_t>(number * unit);
  return true;
}

std::vector<size_t> Options::sizes() const {
  std::vector<size_t> all;
  size_t size = min_bytes;
  while (size <= max_bytes) {
    all.push_back(size);
    if (step_factor > 1 && size > max_bytes / step_factor) break;
    if (step_factor <= 1 && (step_bytes == 0 || size + step_bytes > max_bytes)) break;
    size = step_factor > 1 ? (size == 0 ? 1 : size * step_factor) : size + step_bytes;
  }
  return all;
}

Parsed parse_options(int argc, char** argv) {
  Options options;
  options.ops = {find_operation("sum")};
  options.types = {find_type("float")};
  optind = 0;
  opterr = 0;
  for (int key = 0; (key = getopt_long(argc, argv, kShortOptions, kLongOptions, nullptr)) != -1;) {
    if (key == 'h') return {options, 0, help_text(argv[0])};
    if (key == '?') {
      return {options, 255,
              fmt::format("invalid option or missing value: '{}'\n{}", argv[optind - 1],
                          help_text(argv[0]))};
    }
    const std::string refused = set_option(key, optarg == nullptr ? "" : optarg, &options);
    if (!refused.empty()) return {options, 255, refused};
  }
  if (optind < argc) {
    return {options, 255,
            fmt::format("unexpected argument '{}'\n{}", argv[optind], help_text(argv[0]))};
  }
  return validate(std::move(options));
}

}  // namespace tessera::perf
