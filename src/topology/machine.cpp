#include "topology/machine.h"

#include <array>

#include "topology/machine_fields.h"
#include "topology/show.h"
#include "topology/text.h"

namespace tessera::topology {
namespace {

// A number of 1 to `digits` hexadecimal digits, at most `most`.
std::optional<uint32_t> part_of_id(std::string_view text, size_t digits, uint32_t most) {
  const std::optional<uint64_t> value =
      text.size() <= digits ? parse_hex(text) : std::optional<uint64_t>();
  if (!value || *value > most) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

// Keeps the first difference it meets.
class Comparison {
 public:
  template <class T>
  void operator()(const char* name, const T& a, const T& b) {
    if (text.empty() && !(a == b))
      text = fmt::format("{}{}: {} and {}", part_, name, show(a), show(b));
  }

  template <class Part>
  void lists(const char* name, const std::vector<Part>& a, const std::vector<Part>& b) {
    part_.clear();
    (*this)(fmt::format("number of {}s", name).c_str(), a.size(), b.size());
    for (size_t i = 0; i < a.size() && text.empty(); ++i) {
      part_ = fmt::format("{} {}: ", name, i);
      places(a[i], b[i], *this);
      fields(a[i], b[i], *this);
    }
  }

  void hosts(const std::vector<Host>& a, const std::vector<Host>& b) {
    (*this)("number of hosts", a.size(), b.size());
    for (size_t i = 0; i < a.size() && text.empty(); ++i) {
      part_ = fmt::format("host {}: ", i);
      (*this)("name", a[i].name, b[i].name);
      (*this)("id", a[i].id, b[i].id);
      (*this)("other attributes", a[i].others, b[i].others);
      if (text.empty() && !(a[i].cpus == b[i].cpus)) text = part_ + "cores, caches or distances";
    }
    part_.clear();
  }

  std::string text;

 private:
  std::string part_;
};

}  // namespace

std::optional<BusId> parse_bus_id(const std::string& text) {
  std::string_view rest = stripped(text);
  // Function, device, bus, domain: from the end, because the domain may be missing.
  std::array<std::string_view, 4> parts;
  size_t count = 0;
  for (const char* separators : {".:", ":", ":", ""}) {
    const size_t at = rest.find_last_of(separators);
    if (at == std::string_view::npos) {
      parts[count++] = rest;
      break;
    }
    parts[count++] = rest.substr(at + 1);
    rest = rest.substr(0, at);
  }
  if (count < 3) return std::nullopt;
  const auto function = part_of_id(parts[0], 1, 7);
  const auto device = part_of_id(parts[1], 2, 31);
  const auto bus = part_of_id(parts[2], 2, 255);
  const auto domain = count == 4 ? part_of_id(parts[3], 8, UINT32_MAX) : uint32_t{0};
  if (!function || !device || !bus || !domain) return std::nullopt;
  return BusId{*domain, static_cast<uint8_t>(*bus), static_cast<uint8_t>(*device),
               static_cast<uint8_t>(*function)};
}

std::string to_string(const BusId& id) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", id.domain, id.bus, id.device, id.function);
}

std::string difference(const Machine& a, const Machine& b) {
  Comparison compare;
  compare("version", a.version, b.version);
  compare("other attributes", a.others, b.others);
  compare("whether links between GPUs are stated", a.peer_links_stated, b.peer_links_stated);
  compare.hosts(a.hosts, b.hosts);
  compare.lists("cpu", a.cpus, b.cpus);
  compare.lists("pci", a.pcis, b.pcis);
  compare.lists("gpu", a.gpus, b.gpus);
  compare.lists("nic", a.nics, b.nics);
  compare.lists("net", a.nets, b.nets);
  compare.lists("peer link", a.peer_links, b.peer_links);
  return compare.text;
}

}  // namespace tessera::topology
