#include <map>

#include "base/file.h"
#include "topology/nccl_xml.h"
#include "topology/nccl_xml_check.h"
#include "topology/nccl_xml_element.h"
#include "topology/text.h"
#include "topology/xml_source.h"

namespace tessera::topology {
namespace {

enum class Kind { kSystem, kCpu, kPci, kGpu, kNic, kNet, kLink, kUnknown };

Kind kind_of(std::string_view name) {
  static const std::map<std::string_view, Kind> kKinds = {
      {"system", Kind::kSystem}, {"cpu", Kind::kCpu},   {"pci", Kind::kPci},
      {"gpu", Kind::kGpu},       {"nic", Kind::kNic},   {"net", Kind::kNet},
      {"nvlink", Kind::kLink},   {"xgmi", Kind::kLink}, {"c2c", Kind::kLink},
      {"pcilink", Kind::kLink},
  };
  const auto found = kKinds.find(name);
  return found == kKinds.end() ? Kind::kUnknown : found->second;
}

PeerLinkKind link_kind(std::string_view name) {
  if (name == "xgmi") return PeerLinkKind::kXgmi;
  if (name == "c2c") return PeerLinkKind::kC2c;
  return name == "pcilink" ? PeerLinkKind::kPciSwitch : PeerLinkKind::kNvlink;
}

// What an element is inside of.
struct Context {
  Kind parent = Kind::kSystem;
  int cpu = -1, pci = -1, gpu = -1, nic = -1;
};

class Reader {
 public:
  explicit Reader(const XmlSource& xml) : xml_(xml) {}

  Result<Machine> run() {
    machine_.source = xml_.source();
    if (Status status = read_system(); !status.ok()) return status;
    walk();
    if (!status_.ok()) return status_;
    if (machine_.hosts.empty()) machine_.hosts.emplace_back();
    if (machine_.cpus.empty())
      warnings_.add(xml_.line(xml_.root()), "system: holds no cpu: the machine is empty");
    check_nccl_machine(machine_, warnings_);
    machine_.warnings = warnings_.take();
    return std::move(machine_);
  }

 private:
  Status read_system();
  void walk();
  // The context of the node's children; nothing: the node is dropped, with all below it.
  std::optional<Context> visit(const pugi::xml_node& node, Context context);

  void read_cpu(NcclElement& element, Context& context);
  void read_pci(NcclElement& element, Context& context);
  void read_gpu(NcclElement& element, Context& context);
  void check_rank(const pugi::xml_node& node);
  void read_nic(NcclElement& element, Context& context);
  void read_net(NcclElement& element, const Context& context);
  void read_link(NcclElement& element, PeerLinkKind kind, const Context& context);

  int host_of(const char* id, const NcclElement& element);
  void ensure_cpu(const NcclElement& element, Context& context);
  std::string pci_name(int pci) const;

  const XmlSource& xml_;
  Status status_;  // the first error below the system
  Machine machine_;
  Warnings warnings_;
  std::map<std::string, int> hosts_;
  std::map<std::string, bool> unknown_;  // names of elements that have been warned about
  int assumed_cpu_ = -1;                 // made for elements outside of any; ended by the next one
};

Status Reader::read_system() {
  NcclElement element(xml_.root(), xml_.line(xml_.root()), warnings_);
  element.read("version", machine_.version, 0);
  if (machine_.version.absent()) element.warn("states no version: read like version 1");
  // NCCL refuses other versions; what they change is not known.
  if (machine_.version.given() && (*machine_.version.value < 1 || *machine_.version.value > 2))
    return xml_.error(
        xml_.root(), "version",
        fmt::format("version {} is not known; NCCL writes 1, RCCL 2", *machine_.version.value));
  machine_.others = element.others();
  return {};
}

void Reader::walk() {
  // Contexts of the elements between the root and the present one; recursion would let a deep
  // document overflow the stack.
  std::vector<Context> open = {{}};
  for (pugi::xml_node node = xml_.root().first_child(); node && status_.ok();) {
    const std::optional<Context> below = visit(node, open.back());
    if (below && node.first_child()) {
      open.push_back(*below);
      node = node.first_child();
      continue;
    }
    while (!node.next_sibling() && node.parent() != xml_.root()) {
      open.pop_back();
      node = node.parent();
    }
    node = node.next_sibling();
  }
}

std::optional<Context> Reader::visit(const pugi::xml_node& node, Context context) {
  if (node.type() == pugi::node_pcdata || node.type() == pugi::node_cdata)
    warnings_.add(xml_.line(node), fmt::format("text {} ignored: the format has none",
                                               shown(stripped(node.value()))));
  if (node.type() != pugi::node_element) return std::nullopt;
  const Kind kind = kind_of(node.name());
  if (kind == Kind::kUnknown) {
    if (!std::exchange(unknown_[node.name()], true))
      warnings_.add(
          xml_.line(node),
          fmt::format("element {} is not known: left out wherever it occurs", shown(node.name())));
    return std::nullopt;
  }
  NcclElement element(node, xml_.line(node), warnings_);
  const Kind parent = context.parent;
  const bool bus = parent == Kind::kSystem || parent == Kind::kCpu || parent == Kind::kPci;
  const bool pcilink = node.name() == std::string_view("pcilink");
  context.parent = kind;
  if (kind == Kind::kCpu && parent == Kind::kSystem) {
    read_cpu(element, context);
  } else if (kind == Kind::kPci && bus) {
    read_pci(element, context);
  } else if (kind == Kind::kGpu && bus) {
    read_gpu(element, context);
    check_rank(node);
  } else if (kind == Kind::kNic && bus) {
    read_nic(element, context);
  } else if (kind == Kind::kNet && (bus || parent == Kind::kNic)) {
    if (parent != Kind::kNic) {
      element.warn("stands outside of any nic: one is assumed");
      NcclElement assumed({}, element.line(), warnings_);
      read_nic(assumed, context);
    }
    read_net(element, context);
  } else if (kind == Kind::kLink && parent == (pcilink ? Kind::kPci : Kind::kGpu)) {
    read_link(element, link_kind(node.name()), context);
  } else {
    element.warn(fmt::format("does not belong into {}: left out", shown(node.parent().name())));
    return std::nullopt;
  }
  return context;
}

// A cpu without an id belongs to the host of the one before it, or to the only host.
int Reader::host_of(const char* id, const NcclElement& element) {
  if (id == nullptr || *id == '\0') {
    if (machine_.hosts.empty()) machine_.hosts.emplace_back();
    const int host = machine_.cpus.empty() ? 0 : machine_.cpus.back().host;
    if (!machine_.hosts[static_cast<size_t>(host)].id.empty())
      element.warn("states no host_hash: taken as part of the host before it");
    return host;
  }
  const auto [place, is_new] = hosts_.try_emplace(id, static_cast<int>(machine_.hosts.size()));
  if (!is_new) return place->second;
  if (hosts_.size() == 1 && !machine_.hosts.empty()) {
    element.warn("states a host_hash, others before it do not: taken as one host");
    place->second = 0;
  } else {
    machine_.hosts.emplace_back();
  }
  machine_.hosts[static_cast<size_t>(place->second)].id = id;
  return place->second;
}

void Reader::read_cpu(NcclElement& element, Context& context) {
  Cpu cpu;
  cpu.origin.line = element.line();
  if (const char* numa = element.take("numaid")) {
    element.set_place(fmt::format("cpu numaid={}", shown(numa)));
    const std::optional<int64_t> id = parse_integer(numa);
    // 65535 and 2^32 - 1 are -1 in fewer bits; no system has that many nodes.
    if (id && *id >= -1 && *id < 65535)
      cpu.numa.value = id;
    else
      cpu.numa.unreadable = numa;
  }
  if (cpu.numa.or_else(-1) < 0)
    element.warn("no NUMA id: unknown node, what is below it is equally far from all CPUs");
  cpu.host = host_of(element.take("host_hash"), element);
  element.read("affinity", cpu.affinity,
               [](std::string_view text) { return CpuSet::parse(std::string(text)); });
  if (cpu.affinity.absent() && cpu.numa.or_else(-1) >= 0)
    element.warn("no affinity: its CPUs are unknown");
  cpu.arch = element.text("arch");
  cpu.vendor = element.text("vendor");
  element.read("familyid", cpu.family, 0);
  element.read("modelid", cpu.model, 0);
  cpu.others = element.others();
  context.cpu = static_cast<int>(machine_.cpus.size());
  machine_.cpus.push_back(std::move(cpu));
  assumed_cpu_ = -1;
}

void Reader::ensure_cpu(const NcclElement& element, Context& context) {
  if (context.cpu >= 0) return;
  element.warn("stands outside of any cpu: taken as attached to an unknown NUMA node");
  if (assumed_cpu_ < 0) {
    Cpu cpu;
    cpu.origin.line = element.line();
    cpu.host = host_of(nullptr, element);
    assumed_cpu_ = static_cast<int>(machine_.cpus.size());
    machine_.cpus.push_back(std::move(cpu));
  }
  context.cpu = assumed_cpu_;
}

void Reader::read_pci(NcclElement& element, Context& context) {
  Pci pci;
  pci.origin.line = element.line();
  if (const char* id = element.take("busid")) {
    element.set_place(fmt::format("pci {}", stripped(id).size() <= 40 ? id : shown(id)));
    pci.bus_id.value = parse_bus_id(id);
    if (!pci.bus_id.given()) {
      pci.bus_id.unreadable = id;
      element.warn("the bus id cannot be read: nothing can refer to this device");
    }
  } else {
    element.warn("has no bus id: nothing can refer to this device");
  }
  ensure_cpu(element, context);
  pci.cpu = context.cpu;
  pci.parent = context.pci;
  element.read("class", pci.pci_class, parse_pci_class);
  pci.vendor = element.text("vendor");
  pci.device = element.text("device");
  pci.subsystem_vendor = element.text("subsystem_vendor");
  pci.subsystem_device = element.text("subsystem_device");
  element.read("link_speed", pci.link_gts, [&](std::string_view text) {
    const std::optional<double> speed = parse_link_speed(text);
    if (speed && !usual_link_speed(text))
      element.warn(
          fmt::format("link_speed {} is an unusual text: read as {} GT/s", shown(text), *speed));
    return speed;
  });
  element.read("link_width", pci.link_width, 1);
  pci.others = element.others();
  context.pci = static_cast<int>(machine_.pcis.size());
  machine_.pcis.push_back(std::move(pci));
}

std::string Reader::pci_name(int pci) const {
  if (pci < 0) return "outside of pci";
  const Stated<BusId>& id = machine_.pcis[static_cast<size_t>(pci)].bus_id;
  if (id.given()) return "of " + to_string(*id.value);
  return id.absent() ? "of a pci without bus id" : "of " + shown(*id.unreadable);
}

void Reader::read_gpu(NcclElement& element, Context& context) {
  if (context.pci < 0) {
    element.warn("stands outside of any pci: one is assumed");
    NcclElement assumed({}, element.line(), warnings_);
    assumed.set_place("pci assumed for it");
    read_pci(assumed, context);
  }
  Gpu gpu;
  gpu.origin.line = element.line();
  gpu.pci = context.pci;
  element.set_place("gpu " + pci_name(gpu.pci));
  element.read("dev", gpu.device, 0);
  element.read("sm", gpu.compute_capability, 0);
  element.read("rank", gpu.rank, 0);
  element.read("gdr", gpu.direct_rdma);
  gpu.gcn = element.text("gcn");
  gpu.others = element.others();
  context.gpu = static_cast<int>(machine_.gpus.size());
  machine_.gpus.push_back(std::move(gpu));
  machine_.peer_links_stated = true;
}

// A number that no job reaches is a slip, and ranks that start elsewhere would hide it.
void Reader::check_rank(const pugi::xml_node& node) {
  const int rank = machine_.gpus.back().rank.or_else(0);
  if (rank > kMostStatedRank)
    status_ =
        xml_.error(node, "rank",
                   fmt::format("{} is more than any job has, {} at most", rank, kMostStatedRank));
}

void Reader::read_nic(NcclElement& element, Context& context) {
  Nic nic;
  nic.origin.line = element.line();
  element.set_place("nic " + pci_name(context.pci));
  if (context.pci < 0) element.warn("has no position on the bus: equally far from all GPUs");
  ensure_cpu(element, context);
  nic.cpu = context.cpu;
  nic.pci = context.pci;
  nic.others = element.others();
  context.nic = static_cast<int>(machine_.nics.size());
  machine_.nics.push_back(std::move(nic));
}

void Reader::read_net(NcclElement& element, const Context& context) {
  Net net;
  net.origin.line = element.line();
  net.nic = context.nic;
  net.name = element.text("name");
  element.set_place(fmt::format("net {} {}", shown(net.name), pci_name(context.pci)));
  element.read("dev", net.device, 0);
  element.read("port", net.port, 0);
  element.read("speed", net.megabits, [](std::string_view text) -> std::optional<double> {
    const std::optional<double> value = parse_real(text);
    return value && *value > 0 ? value : std::nullopt;
  });
  element.read("guid", net.guid, parse_unsigned);
  element.read("gdr", net.direct_rdma);
  element.read("latency", net.latency_us, 0.0);
  element.read("maxconn", net.max_connections, 0);
  element.read("coll", net.collectives);
  net.others = element.others();
  machine_.nets.push_back(std::move(net));
}

void Reader::read_link(NcclElement& element, PeerLinkKind kind, const Context& context) {
  machine_.peer_links_stated = true;
  PeerLink link;
  link.origin.line = element.line();
  link.kind = kind;
  link.gpu = kind == PeerLinkKind::kPciSwitch ? -1 : context.gpu;
  link.pci = context.pci;
  element.set_place(element.place() + " " + pci_name(link.pci));
  if (const char* target = element.take("target")) {
    link.target = target;
    link.target_id.value = parse_bus_id(link.target);
    if (!link.target_id.given()) link.target_id.unreadable = target;
  }
  const Stated<BusId>& own = machine_.pcis[static_cast<size_t>(link.pci)].bus_id;
  if (own.given() && own == link.target_id && kind != PeerLinkKind::kC2c) {
    element.warn("its target is the device itself: the link is dropped");
    return;
  }
  element.read("tclass", link.target_class, parse_pci_class);
  element.read("count", link.count, 1);
  element.read("bw", link.megabytes, 0.0);
  link.others = element.others();
  machine_.peer_links.push_back(std::move(link));
}

}  // namespace

Result<Machine> parse_nccl_xml(std::string text, std::string source) {
  XmlSource xml;
  if (Status status = xml.load(std::move(text), std::move(source), "system"); !status.ok())
    return status;
  return Reader(xml).run();
}

Result<Machine> read_nccl_xml(const std::string& path) {
  Result<std::string> text = read_file(path, kMostXmlBytes);
  if (!text.ok()) return text.status();
  return parse_nccl_xml(std::move(text.value()), path);
}

}  // namespace tessera::topology
