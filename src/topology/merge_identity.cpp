#include "topology/merge_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "topology/at.h"

namespace tessera::topology {
namespace {

std::string id_key(const Stated<BusId>& id) {
  return id.given() ? to_string(*id.value) : "~" + id.unreadable.value_or("");
}

std::string number_key(const Stated<int>& number) {
  return number.given() ? fmt::format("{:010}", *number.value) : "~";
}

// Numbers equal keys of one machine, so that each part keeps a key of its own.
class Ordinals {
 public:
  std::string operator()(std::string key) {
    const int ordinal = seen_[key]++;
    return ordinal == 0 ? key : fmt::format("{}#{:06}", key, ordinal);
  }

 private:
  std::unordered_map<std::string, int> seen_;
};

// Parts whose id does not say which one they are. Each has tokens: what lies on and below it. Parts
// with a token in common are one.
class Ambiguous {
 public:
  int add(int machine, std::string base) {
    parts_.push_back({machine, std::move(base), {}});
    return static_cast<int>(parts_.size()) - 1;
  }

  void token(int part, const std::string& text) {
    Part& own = at(parts_, part);
    std::string token = own.base + "@" + text;
    // What two parts of one machine share does not tell them apart.
    const auto [place, is_new] = owner_.try_emplace(fmt::format("{} {}", own.machine, token), part);
    if (!is_new && place->second != part) void_.insert(token);
    own.tokens.push_back(std::move(token));
  }

  // Keys, by part.
  std::vector<std::string> keys() {
    leader_.resize(parts_.size());
    std::iota(leader_.begin(), leader_.end(), 0);
    std::unordered_map<std::string, int> first;
    std::vector<std::string> keys(parts_.size());
    std::unordered_map<int, Ordinals> ordinals;  // by machine
    for (int i = 0; i < static_cast<int>(parts_.size()); ++i) {
      Part& part = at(parts_, i);
      std::erase_if(part.tokens, [&](const std::string& token) { return void_.contains(token); });
      if (part.tokens.empty()) part.tokens.push_back(ordinals[part.machine](part.base + "@~"));
      for (const std::string& token : part.tokens)
        join(first.try_emplace(token, i).first->second, i);
    }
    for (int i = 0; i < static_cast<int>(parts_.size()); ++i) {
      std::string& key = at(keys, leader(i));
      for (const std::string& token : at(parts_, i).tokens)
        if (key.empty() || token < key) key = token;
    }
    for (int i = 0; i < static_cast<int>(parts_.size()); ++i) at(keys, i) = at(keys, leader(i));
    return keys;
  }

 private:
  struct Part {
    int machine;
    std::string base;
    std::vector<std::string> tokens;
  };

  int leader(int part) {
    while (at(leader_, part) != part) part = at(leader_, part) = at(leader_, at(leader_, part));
    return part;
  }
  void join(int a, int b) { at(leader_, leader(b)) = leader(a); }

  std::vector<Part> parts_;
  std::unordered_map<std::string, int> owner_;
  std::unordered_set<std::string> void_;
  std::vector<int> leader_;
};

class Identification {
 public:
  explicit Identification(std::span<const Machine> machines)
      : machines_(machines), keys_(machines.size()), ambiguous_of_(machines.size()) {}

  std::vector<PartKeys> run() {
    hosts_and_cpus();
    find_ambiguous();
    for (int m = 0; m < count(); ++m) add_tokens(m);
    const std::vector<std::string> resolved = ambiguous_.keys();
    for (int m = 0; m < count(); ++m) {
      for (size_t i = 0; i < at(keys_, m).pcis.size(); ++i)
        if (const int part = at(ambiguous_of_, m).pcis[i]; part >= 0)
          at(keys_, m).pcis[i] = at(resolved, part);
      for (size_t i = 0; i < at(keys_, m).nics.size(); ++i)
        if (const int part = at(ambiguous_of_, m).nics[i]; part >= 0)
          at(keys_, m).nics[i] = at(resolved, part);
      small_parts(m);
    }
    gpus_without_index();
    for (int m = 0; m < count(); ++m) links(m);
    return std::move(keys_);
  }

 private:
  int count() const { return static_cast<int>(machines_.size()); }
  const std::string& host_key(int machine, int cpu) {
    return at(at(keys_, machine).hosts, at(machines_[static_cast<size_t>(machine)].cpus, cpu).host);
  }
  const Machine& machine(int m) const { return machines_[static_cast<size_t>(m)]; }

  void hosts_and_cpus();
  void find_ambiguous();
  void add_tokens(int m);
  void tokens_above(int m, int pci, const std::string& text);
  void small_parts(int m);
  void gpus_without_index();
  void links(int m);

  std::span<const Machine> machines_;
  std::vector<PartKeys> keys_;
  Ambiguous ambiguous_;
  struct Places {
    std::vector<int> pcis, nics;  // parts of ambiguous_; -1: the key says which one it is
  };
  std::vector<Places> ambiguous_of_;
};

void Identification::hosts_and_cpus() {
  std::set<std::string> ids;
  for (const Machine& m : machines_)
    for (const Host& host : m.hosts) ids.insert(host.id);
  ids.erase("");
  // A host without an id is the only one there is, if there is only one.
  const std::string nameless = ids.size() == 1 ? *ids.begin() : "";
  for (int m = 0; m < count(); ++m) {
    PartKeys& keys = at(keys_, m);
    for (const Host& host : machine(m).hosts)
      keys.hosts.push_back((host.id.empty() ? nameless : host.id) + "|");
    for (const Cpu& cpu : machine(m).cpus) {
      const int64_t numa = cpu.numa.or_else(-1);
      keys.cpus.push_back(at(keys.hosts, cpu.host) + (numa < 0 ? "~" : fmt::format("{:06}", numa)));
    }
  }
}

void Identification::find_ambiguous() {
  std::unordered_set<std::string> repeated;
  for (int m = 0; m < count(); ++m) {
    std::unordered_set<std::string> seen;
    for (const Pci& pci : machine(m).pcis) {
      std::string key = host_key(m, pci.cpu) + id_key(pci.bus_id);
      if (!seen.insert(key).second || !pci.bus_id.given()) repeated.insert(key);
      at(keys_, m).pcis.push_back(std::move(key));
    }
  }
  for (int m = 0; m < count(); ++m) {
    for (const std::string& key : at(keys_, m).pcis)
      at(ambiguous_of_, m).pcis.push_back(repeated.contains(key) ? ambiguous_.add(m, key) : -1);
    for (const Nic& nic : machine(m).nics) {
      at(keys_, m).nics.emplace_back();
      at(ambiguous_of_, m)
          .nics.push_back(nic.pci < 0 ? ambiguous_.add(m, host_key(m, nic.cpu) + "~nic") : -1);
    }
  }
}

// Gives a token to the ambiguous devices from `pci` upwards.
void Identification::tokens_above(int m, int pci, const std::string& text) {
  // Real machines have few levels; a bound keeps the time linear for those that have thousands.
  constexpr int kMostLevels = 64;
  for (int i = 0; i < kMostLevels && pci >= 0; ++i, pci = at(machine(m).pcis, pci).parent)
    if (const int part = at(at(ambiguous_of_, m).pcis, pci); part >= 0)
      ambiguous_.token(part, text);
}

void Identification::add_tokens(int m) {
  const Machine& own = machine(m);
  const PartKeys& keys = at(keys_, m);
  for (size_t i = 0; i < own.pcis.size(); ++i)
    if (at(ambiguous_of_, m).pcis[i] < 0) tokens_above(m, own.pcis[i].parent, keys.pcis[i]);
  for (const Gpu& gpu : own.gpus)
    if (gpu.device.given())
      tokens_above(m, gpu.pci, fmt::format("{}/gpu{}", at(keys.pcis, gpu.pci), *gpu.device.value));
  for (const Net& net : own.nets) {
    const Nic& nic = at(own.nics, net.nic);
    const std::string name = fmt::format("{}:{}", net.name, number_key(net.port));
    if (nic.pci >= 0)
      tokens_above(m, nic.pci, fmt::format("{}/net{}", at(keys.pcis, nic.pci), name));
    else
      ambiguous_.token(at(at(ambiguous_of_, m).nics, net.nic), name);
  }
}

void Identification::small_parts(int m) {
  const Machine& own = machine(m);
  PartKeys& keys = at(keys_, m);
  Ordinals unique;
  for (const Gpu& gpu : own.gpus)
    keys.gpus.push_back(unique(at(keys.pcis, gpu.pci) + "|" + number_key(gpu.device)));
  for (size_t i = 0; i < own.nics.size(); ++i)
    if (own.nics[i].pci >= 0) keys.nics[i] = unique(at(keys.pcis, own.nics[i].pci) + "|nic");
  for (const Net& net : own.nets)
    keys.nets.push_back(
        unique(fmt::format("{}|{}|{}", at(keys.nics, net.nic), number_key(net.port), net.name)));
}

// A GPU whose index a description does not state is the one of its bus id whose index another does.
void Identification::gpus_without_index() {
  std::unordered_map<std::string, std::set<std::string>> known;  // by pci
  for (int m = 0; m < count(); ++m)
    for (size_t i = 0; i < machine(m).gpus.size(); ++i)
      if (machine(m).gpus[i].device.given())
        known[at(at(keys_, m).pcis, machine(m).gpus[i].pci)].insert(at(keys_, m).gpus[i]);
  for (int m = 0; m < count(); ++m) {
    const PartKeys& keys = at(keys_, m);
    std::unordered_set<std::string> taken(keys.gpus.begin(), keys.gpus.end());
    for (size_t i = 0; i < machine(m).gpus.size(); ++i) {
      if (machine(m).gpus[i].device.given()) continue;
      for (const std::string& key : known[at(keys.pcis, machine(m).gpus[i].pci)]) {
        if (!taken.insert(key).second) continue;
        at(keys_, m).gpus[i] = key;
        break;
      }
    }
  }
}

void Identification::links(int m) {
  PartKeys& keys = at(keys_, m);
  Ordinals unique;
  for (const PeerLink& link : machine(m).peer_links) {
    const std::string& owner = link.gpu >= 0 ? at(keys.gpus, link.gpu) : at(keys.pcis, link.pci);
    keys.links.push_back(unique(
        fmt::format("{}|{}|{}", owner, static_cast<int>(link.kind), id_key(link.target_id))));
  }
}

}  // namespace

std::vector<PartKeys> identify(std::span<const Machine> machines) {
  return Identification(machines).run();
}

}  // namespace tessera::topology
