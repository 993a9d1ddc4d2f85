#include "topology/merge.h"

#include <algorithm>
#include <climits>
#include <map>
#include <set>

#include "topology/at.h"
#include "topology/machine_fields.h"
#include "topology/merge_identity.h"
#include "topology/show.h"

namespace tessera::topology {
namespace {

// Adds one description's fields to what others gave. Each rule is commutative and associative, so
// that the order of descriptions does not matter.
class Fold {
 public:
  // Names of the fields that descriptions disagree about.
  std::set<std::string> disputed;

  template <class T>
  void operator()(const char* name, Stated<T>& into, const Stated<T>& from) {
    if (from.absent() || into == from) return;
    if (into.absent() || (from.given() && !into.given())) {
      into = from;
    } else if (into.given() == from.given()) {
      if (into.given()) disputed.insert(name);
      into = chosen(into, from);
    }
  }

  void operator()(const char* name, std::string& into, const std::string& from) {
    if (from.empty() || into == from) return;
    // Case and form of a bus id may differ where ids are equal.
    if (!into.empty() && name != std::string_view("target")) disputed.insert(name);
    into = into.empty() ? from : std::min(into, from);
  }

  void operator()(const char* name, Attributes& into, const Attributes& from) {
    std::map<std::string, std::string> all;
    for (const Attribute& a : into) all[a.name] = a.text;
    for (const Attribute& a : from) {
      const auto [place, is_new] = all.try_emplace(a.name, a.text);
      if (is_new || place->second == a.text) continue;
      disputed.insert(fmt::format("{} {}", name, a.name));
      place->second = std::min(place->second, a.text);
    }
    into.clear();
    for (const auto& [key, text] : all) into.push_back({key, text});
  }

  void operator()(const char*, std::vector<std::string>& into,
                  const std::vector<std::string>& from) {
    into.insert(into.end(), from.begin(), from.end());
    std::sort(into.begin(), into.end());
    into.erase(std::unique(into.begin(), into.end()), into.end());
  }

  void operator()(const char*, PciKind& into, PciKind from) {
    const auto weight = [](PciKind kind) {
      switch (kind) {
        case PciKind::kGpu:
          return 4;
        case PciKind::kNic:
          return 3;
        case PciKind::kBridge:
          return 2;
        case PciKind::kOther:
          return 1;
        default:
          return 0;
      }
    };
    if (weight(from) > weight(into)) into = from;
  }

  void operator()(const char*, PeerLinkKind& into, PeerLinkKind from) { into = from; }

 private:
  template <class T>
  static Stated<T> chosen(const Stated<T>& a, const Stated<T>& b) {
    if (!a.given()) return *a.unreadable < *b.unreadable ? a : b;
    if constexpr (std::same_as<T, CpuSet>)
      return {*a.value | *b.value, std::nullopt};
    else
      return *b.value < *a.value ? b : a;
  }
};

// One part of the result, with the keys of where descriptions put it.
template <class Part>
struct Merged {
  Part part;
  Fold fold;
  std::set<std::string> owners, cpus;
  int index = -1;  // in the result

  void add(const Part& from) {
    if (part.origin.line == 0) part.origin = from.origin;
    fields(part, from, fold);
  }
};
template <class Part>
using Parts = std::map<std::string, Merged<Part>>;

// The first key, ids of unknown nodes and missing owners last.
std::string best(const std::set<std::string>& keys) { return keys.empty() ? "" : *keys.begin(); }

class Merger {
 public:
  explicit Merger(std::span<const Machine> machines) : machines_(machines) {}

  Machine run() {
    const std::vector<PartKeys> keys = identify(machines_);
    for (size_t m = 0; m < machines_.size(); ++m) collect(machines_[m], keys[m]);
    break_cycles();
    place_hosts_and_cpus();
    place_pcis();
    place_small_parts();
    finish();
    return std::move(result_);
  }

 private:
  void collect(const Machine& machine, const PartKeys& keys);
  void collect_hosts(const Machine& machine, const PartKeys& keys);
  void break_cycles();
  void place_hosts_and_cpus();
  void place_pcis();
  void place_small_parts();
  void finish();

  // Moves parts to the result in the order of their places, then keys; the warnings too.
  template <class Part, class Order>
  void place(const char* name, Parts<Part>& parts, std::vector<Part>& into, Order order);
  template <class Part>
  void warn(const char* name, const std::string& key, const Merged<Part>& merged);

  std::span<const Machine> machines_;
  Machine result_;
  Fold system_;
  std::set<std::pair<int, std::string>> warnings_;
  std::map<std::string, std::pair<Host, Fold>> hosts_;
  Parts<Cpu> cpus_;
  Parts<Pci> pcis_;
  Parts<Gpu> gpus_;
  Parts<Nic> nics_;
  Parts<Net> nets_;
  Parts<PeerLink> links_;
};

void Merger::collect(const Machine& m, const PartKeys& keys) {
  system_("version", result_.version, m.version);
  system_("other attributes", result_.others, m.others);
  result_.peer_links_stated |= m.peer_links_stated;
  for (const Warning& warning : m.warnings) warnings_.insert({warning.line, warning.text});
  collect_hosts(m, keys);
  const auto add = [](auto& parts, const std::string& key, const auto& part) -> auto& {
    auto& merged = parts[key];
    merged.add(part);
    return merged;
  };
  for (size_t i = 0; i < m.cpus.size(); ++i)
    add(cpus_, keys.cpus[i], m.cpus[i]).owners.insert(at(keys.hosts, m.cpus[i].host));
  for (size_t i = 0; i < m.pcis.size(); ++i) {
    const Pci& pci = m.pcis[i];
    Merged<Pci>& merged = add(pcis_, keys.pcis[i], pci);
    merged.cpus.insert(at(keys.cpus, pci.cpu));
    if (pci.parent >= 0 && at(keys.pcis, pci.parent) != keys.pcis[i])
      merged.owners.insert(at(keys.pcis, pci.parent));
  }
  for (size_t i = 0; i < m.gpus.size(); ++i)
    add(gpus_, keys.gpus[i], m.gpus[i]).owners.insert(at(keys.pcis, m.gpus[i].pci));
  for (size_t i = 0; i < m.nics.size(); ++i) {
    Merged<Nic>& merged = add(nics_, keys.nics[i], m.nics[i]);
    merged.cpus.insert(at(keys.cpus, m.nics[i].cpu));
    if (m.nics[i].pci >= 0) merged.owners.insert(at(keys.pcis, m.nics[i].pci));
  }
  for (size_t i = 0; i < m.nets.size(); ++i)
    add(nets_, keys.nets[i], m.nets[i]).owners.insert(at(keys.nics, m.nets[i].nic));
  for (size_t i = 0; i < m.peer_links.size(); ++i) {
    const PeerLink& link = m.peer_links[i];
    Merged<PeerLink>& merged = add(links_, keys.links[i], link);
    merged.owners.insert(link.gpu >= 0 ? at(keys.gpus, link.gpu) : at(keys.pcis, link.pci));
  }
}

// Of what hwloc says about cores the fullest description counts; what processes may use adds up.
void Merger::collect_hosts(const Machine& m, const PartKeys& keys) {
  const auto weight = [](const CpuTopology& cpus) {
    std::string masks;
    for (const CpuSet& core : cpus.cores) masks += core.mask() + ";";
    return std::tuple(cpus.processing_units, cpus.cores.size(), cpus.caches.size(), masks);
  };
  for (size_t i = 0; i < m.hosts.size(); ++i) {
    auto& [host, fold] = hosts_[keys.hosts[i]];
    fold("name", host.name, m.hosts[i].name);
    fold("id", host.id, m.hosts[i].id);
    fold("other attributes", host.others, m.hosts[i].others);
    const CpuSet allowed = host.cpus.allowed | m.hosts[i].cpus.allowed;
    if (weight(m.hosts[i].cpus) > weight(host.cpus)) host.cpus = m.hosts[i].cpus;
    host.cpus.allowed = allowed;
  }
}

// Descriptions may put two bridges above each other in both orders: then one of them, the first of
// the circle, has nothing above it.
void Merger::break_cycles() {
  for (auto& [key, merged] : pcis_) {
    if (merged.owners.size() > 1) merged.fold.disputed.insert("position");
    if (merged.cpus.size() > 1) merged.fold.disputed.insert("NUMA node");
  }
  // Keys sort; a walk upwards that meets its own start has found a circle, and marks save walking
  // the same way twice.
  std::map<std::string, std::string> walked;  // key: the start of the walk that came by
  for (auto& [start, unused] : pcis_) {
    std::string key = start;
    while (!key.empty() && !walked.contains(key)) {
      walked[key] = start;
      key = best(pcis_.at(key).owners);
    }
    if (key.empty() || walked[key] != start) continue;
    std::string smallest = key;
    for (std::string next = best(pcis_.at(key).owners); next != key;
         next = best(pcis_.at(next).owners))
      smallest = std::min(smallest, next);
    Merged<Pci>& top = pcis_.at(smallest);
    top.owners.clear();
    top.fold.disputed.insert("position");
  }
}

template <class Part>
void Merger::warn(const char* name, const std::string& key, const Merged<Part>& merged) {
  const size_t host = key.find('|');
  const std::string id = host == std::string::npos ? key : key.substr(host + 1);
  for (const std::string& field : merged.fold.disputed) {
    std::string value;
    const auto find = [&](const char* name_of_field, const auto& v, const auto&) {
      if (field == name_of_field) value = ", taken as " + show(v);
    };
    fields(merged.part, merged.part, find);
    warnings_.insert(
        {0, fmt::format("{} {}: descriptions differ about its {}{}", name, id, field, value)});
  }
}

template <class Part, class Order>
void Merger::place(const char* name, Parts<Part>& parts, std::vector<Part>& into, Order order) {
  using Item = std::pair<const std::string, Merged<Part>>;
  std::vector<Item*> items;
  for (Item& item : parts) items.push_back(&item);
  std::stable_sort(items.begin(), items.end(), [&](const Item* a, const Item* b) {
    return order(a->second.part) < order(b->second.part);
  });
  for (Item* item : items) {
    warn(name, item->first, item->second);
    item->second.index = static_cast<int>(into.size());
    into.push_back(std::move(item->second.part));
  }
}

void Merger::place_hosts_and_cpus() {
  std::map<std::string, int> index;
  for (auto& [key, host] : hosts_) {
    index[key] = static_cast<int>(result_.hosts.size());
    result_.hosts.push_back(std::move(host.first));
    if (host.second.disputed.contains("name"))
      warnings_.insert({0, "host: descriptions differ about its name"});
  }
  for (auto& [key, merged] : cpus_) merged.part.host = index.at(best(merged.owners));
  place("cpu", cpus_, result_.cpus, [](const Cpu& cpu) { return cpu.host; });
}

// Depth first, so that parents come before what is below them.
void Merger::place_pcis() {
  using Item = std::pair<const std::string, Merged<Pci>>;
  std::map<std::string, std::vector<Item*>> below;  // by key of cpu or bridge, sorted
  for (Item& item : pcis_) {
    const Merged<Pci>& merged = item.second;
    below[merged.owners.empty() ? best(merged.cpus) : best(merged.owners)].push_back(&item);
  }
  // Keys of cpus and of pcis of a host never meet: the latter have colons or a tilde and more.
  for (const auto& [cpu_key, cpu] : cpus_) {
    std::vector<Item*> open;
    const auto push = [&](const std::string& key) {
      const auto found = below.find(key);
      if (found != below.end())
        open.insert(open.end(), found->second.rbegin(), found->second.rend());
    };
    for (push(cpu_key); !open.empty();) {
      Item* item = open.back();
      open.pop_back();
      Merged<Pci>& merged = item->second;
      warn("pci", item->first, merged);
      merged.index = static_cast<int>(result_.pcis.size());
      merged.part.cpu = cpu.index;
      merged.part.parent = merged.owners.empty() ? -1 : pcis_.at(best(merged.owners)).index;
      result_.pcis.push_back(std::move(merged.part));
      push(item->first);
    }
  }
}

void Merger::place_small_parts() {
  for (auto& [key, merged] : gpus_) merged.part.pci = pcis_.at(best(merged.owners)).index;
  place("gpu", gpus_, result_.gpus, [](const Gpu& gpu) { return gpu.pci; });
  for (auto& [key, merged] : nics_) {
    const Merged<Pci>* pci = merged.owners.empty() ? nullptr : &pcis_.at(best(merged.owners));
    merged.part.pci = pci == nullptr ? -1 : pci->index;
    merged.part.cpu =
        pci == nullptr ? cpus_.at(best(merged.cpus)).index : at(result_.pcis, pci->index).cpu;
  }
  place("nic", nics_, result_.nics,
        [](const Nic& nic) { return std::pair(nic.cpu, nic.pci < 0 ? INT_MAX : nic.pci); });
  for (auto& [key, merged] : nets_) merged.part.nic = nics_.at(best(merged.owners)).index;
  place("net", nets_, result_.nets, [](const Net& net) { return net.nic; });
  for (auto& [key, merged] : links_) {
    const std::string owner = best(merged.owners);
    const auto gpu = gpus_.find(owner);
    merged.part.gpu = gpu == gpus_.end() ? -1 : gpu->second.index;
    merged.part.pci =
        gpu == gpus_.end() ? pcis_.at(owner).index : at(result_.gpus, merged.part.gpu).pci;
  }
  place("link", links_, result_.peer_links, [](const PeerLink& link) {
    return std::pair(link.pci, link.gpu < 0 ? INT_MAX : link.gpu);
  });
}

void Merger::finish() {
  result_.source = machines_.size() == 1
                       ? machines_[0].source
                       : fmt::format("{} descriptions of one host", machines_.size());
  for (const std::string& field : system_.disputed)
    warnings_.insert({0, fmt::format("system: descriptions differ about its {}", field)});
  for (const auto& [line, text] : warnings_) result_.warnings.push_back({line, text});
}

}  // namespace

Machine merge(std::span<const Machine> of_one_host) { return Merger(of_one_host).run(); }

}  // namespace tessera::topology
