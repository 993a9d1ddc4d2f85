#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <string_view>

#include "topology/nccl_form.h"
#include "topology/nccl_xml.h"

namespace tessera::topology {
namespace {

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
      case '\r':
      case '\t':
        out += fmt::format("&#{};", static_cast<int>(c));
        break;
      default:
        out += c;
    }
  }
}

// NCCL knows a speed by its text: kernels write "16.0 GT/s PCIe".
std::string speed_text(double gts) {
  return gts == std::floor(gts) ? fmt::format("{:.1f} GT/s PCIe", gts)
                                : fmt::format("{} GT/s PCIe", gts);
}

std::string real_text(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  return whole ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
}

std::string class_text(uint32_t value) { return fmt::format("0x{:06x}", value); }
std::string guid_text(uint64_t value) { return fmt::format("0x{:x}", value); }
template <class T>
std::string plain_text(T value) {
  return fmt::format("{}", static_cast<int64_t>(value));
}

const char* name_of(PeerLinkKind kind) {
  switch (kind) {
    case PeerLinkKind::kXgmi:
      return "xgmi";
    case PeerLinkKind::kC2c:
      return "c2c";
    case PeerLinkKind::kPciSwitch:
      return "pcilink";
    default:
      return "nvlink";
  }
}

enum List { kPcis, kGpus, kNics, kLinks, kLists };

// What lies directly below one part, by kind, in the order of the machine's arrays; `next` runs
// through it while it is written.
struct Below {
  std::array<std::vector<int>, kLists> parts;
  std::array<size_t, kLists> next{};
  // The smallest index of each kind in the whole subtree.
  std::array<int, kLists> first{INT_MAX, INT_MAX, INT_MAX, INT_MAX};

  void add(List list, int part) {
    parts[list].push_back(part);
    first[list] = std::min(first[list], part);
  }
};

class Writer {
 public:
  explicit Writer(const Machine& machine)
      : m_(machine),
        cpus_(m_.cpus.size()),
        pcis_(m_.pcis.size()),
        nets_(m_.nics.size()),
        links_(m_.gpus.size()) {}

  std::string run() {
    sort_parts();
    open("system");
    stated("version", m_.version, plain_text<int>);
    others(m_.others);
    end_open(true);
    for (size_t i = 0; i < m_.cpus.size(); ++i) write_cpu(i);
    close("system");
    return std::move(out_);
  }

 private:
  void sort_parts();
  void write_cpu(size_t index);
  bool open_pci(int index);
  void write_gpu(int index);
  void write_nic(int index);
  void write_net(const Net& net);
  void write_link(const PeerLink& link);
  void write_parts_before(Below& below, int pci);
  void write_links_before(Below& below, int end);

  void open(const char* name) {
    // Blanks for thousands of levels would be most of the file.
    out_.append(std::min(depth_, size_t{32}) * 2, ' ');
    out_ += '<';
    out_ += name;
  }
  void end_open(bool has_children) {
    out_ += has_children ? ">\n" : "/>\n";
    depth_ += has_children ? 1 : 0;
  }
  void close(const char* name) {
    --depth_;
    out_.append(std::min(depth_, size_t{32}) * 2, ' ');
    out_ += fmt::format("</{}>\n", name);
  }
  void attribute(const char* name, std::string_view text) {
    out_ += fmt::format(" {}=\"", name);
    append_escaped(out_, text);
    out_ += '"';
  }
  void text(const char* name, const std::string& value) {
    if (!value.empty()) attribute(name, value);
  }
  template <class T, class Text>
  void stated(const char* name, const Stated<T>& value, Text to_text) {
    if (value.given())
      attribute(name, to_text(*value.value));
    else if (!value.absent())
      attribute(name, *value.unreadable);
  }
  void others(const Attributes& attributes) {
    for (const Attribute& a : attributes) attribute(a.name.c_str(), a.text);
  }

  const Machine& m_;
  std::vector<Below> cpus_, pcis_;
  std::vector<std::vector<int>> nets_, links_;  // by nic; by gpu
  // Per gpu: the first link of it or, if it has none, of a later one on its pci.
  std::vector<int> link_order_;
  std::string out_;
  size_t depth_ = 0;
};

void Writer::sort_parts() {
  const auto at = [](auto& list, int i) -> auto& { return list[static_cast<size_t>(i)]; };
  for (int i = 0; i < static_cast<int>(m_.gpus.size()); ++i)
    at(pcis_, at(m_.gpus, i).pci).add(kGpus, i);
  for (int i = 0; i < static_cast<int>(m_.nets.size()); ++i)
    at(nets_, at(m_.nets, i).nic).push_back(i);
  for (int i = 0; i < static_cast<int>(m_.nics.size()); ++i) {
    const Nic& nic = at(m_.nics, i);
    (nic.pci >= 0 ? at(pcis_, nic.pci) : at(cpus_, nic.cpu)).add(kNics, i);
  }
  for (int i = 0; i < static_cast<int>(m_.peer_links.size()); ++i) {
    const PeerLink& link = at(m_.peer_links, i);
    Below& below = at(pcis_, link.pci >= 0 ? link.pci : at(m_.gpus, link.gpu).pci);
    if (link.gpu < 0) {
      below.add(kLinks, i);
    } else {
      at(links_, link.gpu).push_back(i);
      below.first[kLinks] = std::min(below.first[kLinks], i);
    }
  }
  link_order_.assign(m_.gpus.size(), INT_MAX);
  for (const Below& below : pcis_) {
    int first = INT_MAX;
    for (auto gpu = below.parts[kGpus].rbegin(); gpu != below.parts[kGpus].rend(); ++gpu) {
      if (!at(links_, *gpu).empty()) first = std::min(first, at(links_, *gpu).front());
      at(link_order_, *gpu) = first;
    }
  }
  // Children come after their parents, so that from the end every subtree is complete.
  for (int i = static_cast<int>(m_.pcis.size()); i-- > 0;) {
    const Pci& pci = at(m_.pcis, i);
    Below& parent = pci.parent >= 0 ? at(pcis_, pci.parent) : at(cpus_, pci.cpu);
    parent.parts[kPcis].push_back(i);
    for (int list = kGpus; list < kLists; ++list)
      parent.first[list] = std::min(parent.first[list], at(pcis_, i).first[list]);
  }
  for (std::vector<Below>* all : {&cpus_, &pcis_})
    for (Below& below : *all) std::reverse(below.parts[kPcis].begin(), below.parts[kPcis].end());
}

// Writes parts other than pcis that the order of their arrays puts before those in the subtree of
// `pci`; -1: all that are left.
void Writer::write_parts_before(Below& below, int pci) {
  const auto bound = [&](List list) {
    if (pci < 0) return INT_MAX;
    const int first = pcis_[static_cast<size_t>(pci)].first[list];
    return first == INT_MAX ? -1 : first;  // nothing in there: nothing has to come before
  };
  std::vector<int>& gpus = below.parts[kGpus];
  for (size_t& next = below.next[kGpus]; next < gpus.size(); ++next) {
    const auto gpu = static_cast<size_t>(gpus[next]);
    if (gpus[next] > bound(kGpus) && link_order_[gpu] > bound(kLinks)) break;
    if (!links_[gpu].empty()) write_links_before(below, links_[gpu].front());
    write_gpu(gpus[next]);
  }
  write_links_before(below, bound(kLinks));
  std::vector<int>& nics = below.parts[kNics];
  for (size_t& next = below.next[kNics]; next < nics.size() && nics[next] <= bound(kNics); ++next)
    write_nic(nics[next]);
}

void Writer::write_links_before(Below& below, int end) {
  std::vector<int>& links = below.parts[kLinks];
  for (size_t& next = below.next[kLinks]; next < links.size() && links[next] <= end; ++next)
    write_link(m_.peer_links[static_cast<size_t>(links[next])]);
}

void Writer::write_cpu(size_t index) {
  const Cpu& cpu = m_.cpus[index];
  open("cpu");
  text("host_hash", m_.hosts[static_cast<size_t>(cpu.host)].id);
  stated("numaid", cpu.numa, plain_text<int64_t>);
  stated("affinity", cpu.affinity, [](const CpuSet& set) { return set.mask(); });
  text("arch", cpu.arch);
  text("vendor", cpu.vendor);
  stated("familyid", cpu.family, plain_text<int>);
  stated("modelid", cpu.model, plain_text<int>);
  others(cpu.others);
  Below& root = cpus_[index];
  const bool has_children = !root.parts[kPcis].empty() || !root.parts[kNics].empty();
  end_open(has_children);
  // Depth first with an own stack: pcis nest as deep as a file says.
  for (std::vector<Below*> open = {&root}; has_children;) {
    Below& top = *open.back();
    if (top.next[kPcis] < top.parts[kPcis].size()) {
      const int pci = top.parts[kPcis][top.next[kPcis]++];
      write_parts_before(top, pci);
      if (open_pci(pci)) open.push_back(&pcis_[static_cast<size_t>(pci)]);
      continue;
    }
    write_parts_before(top, -1);
    open.pop_back();
    close(open.empty() ? "cpu" : "pci");
    if (open.empty()) return;
  }
}

bool Writer::open_pci(int index) {
  const Pci& pci = m_.pcis[static_cast<size_t>(index)];
  open("pci");
  stated("busid", pci.bus_id, [](const BusId& id) { return to_string(id); });
  stated("class", pci.pci_class, class_text);
  text("vendor", pci.vendor);
  text("device", pci.device);
  text("subsystem_vendor", pci.subsystem_vendor);
  text("subsystem_device", pci.subsystem_device);
  stated("link_speed", pci.link_gts, speed_text);
  stated("link_width", pci.link_width, plain_text<int>);
  others(pci.others);
  const Below& below = pcis_[static_cast<size_t>(index)];
  const bool has_children = std::any_of(below.parts.begin(), below.parts.end(),
                                        [](const auto& parts) { return !parts.empty(); });
  end_open(has_children);
  return has_children;
}

void Writer::write_gpu(int index) {
  const Gpu& gpu = m_.gpus[static_cast<size_t>(index)];
  open("gpu");
  stated("dev", gpu.device, plain_text<int>);
  stated("sm", gpu.compute_capability, plain_text<int>);
  text("gcn", gpu.gcn);
  stated("rank", gpu.rank, plain_text<int>);
  stated("gdr", gpu.direct_rdma, plain_text<bool>);
  others(gpu.others);
  const std::vector<int>& links = links_[static_cast<size_t>(index)];
  end_open(!links.empty());
  for (const int link : links) write_link(m_.peer_links[static_cast<size_t>(link)]);
  if (!links.empty()) close("gpu");
}

void Writer::write_nic(int index) {
  const std::vector<int>& nets = nets_[static_cast<size_t>(index)];
  open("nic");
  others(m_.nics[static_cast<size_t>(index)].others);
  end_open(!nets.empty());
  for (const int net : nets) write_net(m_.nets[static_cast<size_t>(net)]);
  if (!nets.empty()) close("nic");
}

void Writer::write_net(const Net& net) {
  open("net");
  text("name", net.name);
  stated("dev", net.device, plain_text<int>);
  stated("latency", net.latency_us, real_text);
  stated("speed", net.megabits, real_text);
  stated("port", net.port, plain_text<int>);
  stated("guid", net.guid, guid_text);
  stated("maxconn", net.max_connections, plain_text<int>);
  stated("gdr", net.direct_rdma, plain_text<bool>);
  stated("coll", net.collectives, plain_text<bool>);
  others(net.others);
  end_open(false);
}

void Writer::write_link(const PeerLink& link) {
  open(name_of(link.kind));
  stated("bw", link.megabytes, real_text);
  if (!link.target.empty() || !link.target_id.given())
    stated("target", link.target_id, [&](const BusId&) { return link.target; });
  else
    attribute("target", to_string(*link.target_id.value));
  stated("count", link.count, plain_text<int>);
  stated("tclass", link.target_class, class_text);
  others(link.others);
  end_open(false);
}

}  // namespace

std::string write_nccl_xml(const Machine& machine) {
  const Machine form = in_nccl_form(machine);
  return Writer(form).run();
}

}  // namespace tessera::topology
