#include "tuner/wishes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace tessera {
namespace {

std::string lower(std::string_view text) {
  std::string result;
  for (const unsigned char c : text) {
    if (std::isspace(c) == 0) result += static_cast<char>(std::tolower(c));
  }
  return result;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string::npos; begin = end + 1)
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

struct Function {
  std::string_view name;
  Collective collective;
};
constexpr Function kFunctions[] = {
    {"allreduce", Collective::kAllReduce},
    {"reduce", Collective::kReduce},
    {"broadcast", Collective::kBroadcast},
    {"allgather", Collective::kAllGather},
    {"reducescatter", Collective::kReduceScatter},
    {"alltoall", Collective::kAllToAll},
    {"gather", Collective::kGather},
    {"scatter", Collective::kScatter},
    {"sendrecv", Collective::kSendRecv},
};

constexpr std::string_view kAlgorithms[] = {"tree", "ring", "pat"};
constexpr std::string_view kAbsent[] = {"collnetdirect", "collnetchain", "collnet", "nvls",
                                        "nvlstree"};

bool is_low_latency(const Candidate& candidate) {
  return candidate.protocol == Protocol::kLowLatency;
}

}  // namespace

int nccl_family(std::string_view algorithm) {
  if (algorithm == "double-tree" || algorithm == "tree" || algorithm == "binomial" ||
      algorithm == "hierarchical-tree")
    return 0;
  if (algorithm == "ring" || algorithm == "hierarchical-ring") return 1;
  if (algorithm == "pat") return 2;
  return -1;
}

// `apply(filter, names, excluded)` for the filter of each collective that an entry is for.
template <class Apply>
Status Wishes::parse_entries(const char* variable, const std::string& text, const Apply& apply) {
  if (text.empty()) return {};
  any_ = true;
  text_ += fmt::format("{}{}={}", text_.empty() ? "" : ", ", variable, text);
  const std::vector<std::string> entries = split(lower(text), ';');
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].empty() && i > 0) continue;
    const size_t colon = entries[i].find(':');
    if (colon == std::string::npos && i > 0) {
      return Status::error(Code::kInvalidUsage,
                           "{}=\"{}\": entry {} names no function; only the first may", variable,
                           text, i + 1);
    }
    std::string list = colon == std::string::npos ? entries[i] : entries[i].substr(colon + 1);
    const bool excluded = list.starts_with('^');
    if (excluded) list.erase(0, 1);
    const std::vector<std::string> names = split(list, ',');
    if (colon == std::string::npos) {
      for (Filter& filter : filters_) {
        if (Status s = apply(filter, names, excluded); !s.ok()) return s;
      }
      continue;
    }
    const std::string function = entries[i].substr(0, colon);
    const auto* found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                     [&](const Function& f) { return f.name == function; });
    if (found == std::end(kFunctions))
      return Status::error(Code::kInvalidUsage, "{}=\"{}\": no function is called \"{}\"", variable,
                           text, function);
    const auto index = static_cast<size_t>(found->collective);
    filters_[index] = {};
    strict_[index] = true;
    if (Status s = apply(filters_[index], names, excluded); !s.ok()) return s;
  }
  return {};
}

Status Wishes::parse_algorithms(const std::string& text) {
  return parse_entries(
      "NCCL_ALGO", text,
      [&](Filter& filter, const std::vector<std::string>& names, bool excluded) -> Status {
        bool named[3] = {}, absent = false;
        for (const std::string& name : names) {
          const auto* known = std::find(std::begin(kAlgorithms), std::end(kAlgorithms), name);
          if (known != std::end(kAlgorithms)) {
            named[known - std::begin(kAlgorithms)] = true;
          } else if (std::find(std::begin(kAbsent), std::end(kAbsent), name) != std::end(kAbsent)) {
            absent = true;
          } else {
            return Status::error(Code::kInvalidUsage,
                                 "NCCL_ALGO=\"{}\": \"{}\" is no algorithm; there are tree, ring, "
                                 "pat, collnetdirect, collnetchain, nvls and nvlstree",
                                 text, name);
          }
        }
        const bool some = named[0] || named[1] || named[2];
        if (!excluded && absent && !some)
          return Status::error(Code::kInvalidUsage,
                               "NCCL_ALGO=\"{}\": collnet and nvls need hardware that host ranks "
                               "do not have; tree, ring and pat can run here",
                               text);
        for (int i = 0; i < 3; ++i) filter.algorithms[i] = named[i] != excluded;
        filter.others = excluded;
        return {};
      });
}

Status Wishes::parse_protocols(const std::string& text) {
  return parse_entries(
      "NCCL_PROTO", text,
      [&](Filter& filter, const std::vector<std::string>& names, bool excluded) -> Status {
        bool low_latency = false, bulk = false, ll = false;
        for (const std::string& name : names) {
          if (name != "ll" && name != "ll128" && name != "simple")
            return Status::error(Code::kInvalidUsage,
                                 "NCCL_PROTO=\"{}\": \"{}\" is no protocol; there are LL, LL128 "
                                 "and Simple",
                                 text, name);
          bulk |= name == "simple";
          low_latency |= name != "simple";
          ll |= name == "ll";
        }
        // LL stands for what both are here: without LL128 alone it is still there
        filter.low_latency = excluded ? !ll : low_latency;
        filter.bulk = excluded ? !bulk : bulk;
        if (!filter.low_latency && !filter.bulk)
          return Status::error(Code::kInvalidUsage, "NCCL_PROTO=\"{}\" leaves no protocol", text);
        return {};
      });
}

Result<Wishes> Wishes::parse(const Config& config) {
  Wishes wishes;
  if (Status s = wishes.parse_algorithms(config.nccl_algorithms); !s.ok()) return s;
  if (Status s = wishes.parse_protocols(config.nccl_protocols); !s.ok()) return s;
  wishes.tessera_algorithm_ = config.algorithm;
  if (!config.algorithm.empty()) {
    wishes.any_ = true;
    wishes.text_ +=
        fmt::format("{}TESSERA_ALGO={}", wishes.text_.empty() ? "" : ", ", config.algorithm);
    // A name that no collective knows is a slip of the pen; one that only some know forces just those.
    bool known = false;
    for (int c = 0; c < kCollectives; ++c) {
      for (const Algorithm& algorithm : algorithms(static_cast<Collective>(c))) {
        if (algorithm.name != config.algorithm) continue;
        wishes.strict_[static_cast<size_t>(c)] = known = true;
      }
    }
    if (!known) {
      return Status::error(
          Code::kInvalidUsage,
          "TESSERA_ALGO={}: no algorithm has that name; tessera-plan list shows them",
          config.algorithm);
    }
  }
  return wishes;
}

bool Wishes::allows(const Candidate& candidate) const {
  const Algorithm& algorithm = *candidate.algorithm;
  const Filter& filter = filters_[static_cast<size_t>(algorithm.collective)];
  if (is_low_latency(candidate) ? !filter.low_latency : !filter.bulk) return false;
  const int nccl = nccl_family(algorithm.name);
  if (nccl < 0 ? !filter.others : !filter.algorithms[nccl]) return false;
  if (tessera_algorithm_.empty() || !strict(algorithm.collective)) return true;
  // The name of a direct algorithm says nothing about eager calls.
  const bool names_staged =
      find_algorithm(algorithm.collective, tessera_algorithm_, Reach::kStaged) != nullptr;
  return algorithm.name == tessera_algorithm_ || (!names_staged && is_low_latency(candidate));
}

}  // namespace tessera
