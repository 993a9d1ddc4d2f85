#include "comm/bootstrap/agreement.h"

#include <algorithm>

#include "comm/bootstrap/unique_id.h"

namespace tessera::bootstrap {
namespace {

// `who` must have the same values.
Status compare(int32_t rank, const Config::Texts& settings, int32_t first_rank,
               const Config::Texts& first, const char* who) {
  const size_t common = std::min(settings.size(), first.size());
  for (size_t i = 0; i < common; ++i) {
    const auto& [name, value] = settings[i];
    const auto& [first_name, first_value] = first[i];
    if (name == first_name && value == first_value) continue;
    return Status::error(
        Code::kInvalidUsage,
        "rank {} has {}=\"{}\", rank {} has {}=\"{}\": {} must have the same value", rank, name,
        value, first_rank, first_name, first_value, who);
  }
  if (settings.size() == first.size()) return {};
  return Status::error(Code::kInvalidUsage, "rank {} tells {} settings, rank {} tells {}", rank,
                       settings.size(), first_rank, first.size());
}

Status check_settings(const Hello& hello, std::span<const Hello* const> earlier) {
  if (earlier.empty()) return {};
  const Hello& first = *earlier.front();
  if (Status s = compare(hello.rank, hello.settings, first.rank, first.settings, "all ranks");
      !s.ok())
    return s;
  const auto here = std::find_if(earlier.begin(), earlier.end(), [&](const Hello* other) {
    return other->member.host == hello.member.host;
  });
  if (here == earlier.end()) return {};
  return compare(hello.rank, hello.host_settings, (*here)->rank, (*here)->host_settings,
                 "all ranks of a host");
}

}  // namespace

std::string name_of(const Member& member) {
  return fmt::format("rank {} (pid {} on {})", member.rank, member.pid, member.host_name);
}

std::string list_of(std::span<const int> ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - i < 3) end = i + 1;
    if (!text.empty()) text += ", ";
    text += fmt::format("{}", ranks[i]);
    if (end - i >= 3) text += fmt::format("-{}", ranks[end - 1]);
    i = end;
  }
  return text;
}

Status check_hello(const Hello& hello, std::span<const Hello* const> earlier) {
  if (hello.ranks < 1 || hello.ranks > kMaxRanks) {
    return Status::error(Code::kInvalidUsage, "{} says {} ranks: allowed are 1 to {}",
                         name_of(hello.member), hello.ranks, kMaxRanks);
  }
  if (!earlier.empty() && earlier.front()->ranks != hello.ranks) {
    const Hello& first = *earlier.front();
    return Status::error(Code::kInvalidUsage, "rank {} says {} ranks, rank {} says {}: {}, {}",
                         hello.rank, hello.ranks, first.rank, first.ranks, name_of(hello.member),
                         name_of(first.member));
  }
  if (hello.rank < 0 || hello.rank >= hello.ranks) {
    return Status::error(Code::kInvalidUsage, "{} is out of range: there are {} ranks",
                         name_of(hello.member), hello.ranks);
  }
  for (const Hello* other : earlier) {
    if (other->rank != hello.rank) continue;
    return Status::error(Code::kInvalidUsage,
                         "rank {} is taken twice: by pid {} on {} and by pid {} on {}", hello.rank,
                         other->member.pid, other->member.host_name, hello.member.pid,
                         hello.member.host_name);
  }
  return check_settings(hello, earlier);
}

Status version_mismatch(int32_t rank, uint32_t version, std::span<const Hello* const> earlier) {
  const std::string other =
      earlier.empty() ? std::string("the root") : fmt::format("rank {}", earlier.front()->rank);
  return Status::error(Code::kInvalidUsage,
                       "rank {} uses tessera {}, {} uses {}: all ranks must use the same version",
                       rank, version_text(version), other, version_text(kVersion));
}

std::vector<int> missing(std::span<const Hello* const> joined, int ranks) {
  std::vector<bool> here(static_cast<size_t>(ranks), false);
  for (const Hello* hello : joined) here[static_cast<size_t>(hello->rank)] = true;
  std::vector<int> out;
  for (int rank = 0; rank < ranks; ++rank) {
    if (!here[static_cast<size_t>(rank)]) out.push_back(rank);
  }
  return out;
}

std::string missing_text(std::span<const int> missing, int ranks,
                         std::chrono::milliseconds waited) {
  const bool one = missing.size() == 1;
  return fmt::format("{} {} of {} {} not joined within {:.3g} s", one ? "rank" : "ranks",
                     list_of(missing), ranks, one ? "has" : "have",
                     static_cast<double>(waited.count()) / 1000);
}

}  // namespace tessera::bootstrap
