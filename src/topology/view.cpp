#include "topology/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

namespace tessera::topology {
namespace {

// FNV-1a, 64 bits: the same on every machine, as all input is text or fixed in width.
class Hash {
 public:
  void add(const std::string& text) {
    for (const char c : text) byte(static_cast<unsigned char>(c));
    byte(0);
  }
  void add(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) byte(static_cast<unsigned char>(number >> shift));
  }
  void add(int64_t number) { add(static_cast<uint64_t>(number)); }
  void add(double number) {
    uint64_t bits = 0;
    std::memcpy(&bits, &number, sizeof(bits));
    add(bits);
  }
  uint64_t value() const { return value_; }

 private:
  void byte(unsigned char b) { value_ = (value_ ^ b) * 0x100000001b3ULL; }
  uint64_t value_ = 0xcbf29ce484222325ULL;
};

// Host, then nodes before links, then the kind.
using PartKey = std::tuple<int, int, int>;

struct Part {
  std::string name;
  int count = 0;
  Hash hash;
};

std::string plural(const char* noun, int host) {
  const char* ending = std::string(noun).ends_with("ch") ? "es" : "s";
  return host < 0 ? fmt::format("{}{}", noun, ending)
                  : fmt::format("{}{} of host {}", noun, ending, host);
}

void add_node(const Node& node, Hash& hash) {
  hash.add(node.name);
  hash.add(node.label);
  hash.add(node.numa);
  for (const double bandwidth : node.fan_out) hash.add(bandwidth);
}

}  // namespace

View view_of(const Graph& graph) {
  std::map<PartKey, Part> parts;
  for (const Node& node : graph.nodes) {
    Part& part = parts[{node.host, 0, static_cast<int>(node.kind)}];
    if (part.name.empty()) part.name = plural(to_string(node.kind), node.host);
    ++part.count;
    add_node(node, part.hash);
  }
  for (size_t i = 0; i < graph.links.size(); ++i) {
    const Link& link = graph.links[i];
    const Node &from = graph.nodes[link.from], &to = graph.nodes[link.to];
    Part& part = parts[{std::max(from.host, to.host), 1, static_cast<int>(link.kind)}];
    if (part.name.empty()) {
      part.name =
          fmt::format("{} links of host {}", to_string(link.kind), std::max(from.host, to.host));
    }
    // Both directions count as one
    if (link.reverse > static_cast<int>(i)) ++part.count;
    part.hash.add(from.name);
    part.hash.add(to.name);
    part.hash.add(link.bandwidth);
    part.hash.add(link.latency);
    part.hash.add(static_cast<int64_t>(link.count));
  }
  View view;
  Hash whole;
  for (auto& [key, part] : parts) {
    view.parts.push_back({part.name, part.count, part.hash.value()});
    whole.add(part.name);
    whole.add(part.hash.value());
  }
  view.fingerprint = whole.value();
  return view;
}

std::string view_difference(const View& a, const View& b) {
  if (a.fingerprint == b.fingerprint) return "";
  std::string text;
  const auto find = [](const View& view, const std::string& name) {
    return std::find_if(view.parts.begin(), view.parts.end(),
                        [&](const ViewPart& part) { return part.name == name; });
  };
  for (const ViewPart& part : a.parts) {
    const auto other = find(b, part.name);
    if (other == b.parts.end()) {
      text += fmt::format("{}: {} here, none there\n", part.name, part.count);
    } else if (other->count != part.count) {
      text += fmt::format("{}: {} here, {} there\n", part.name, part.count, other->count);
    } else if (other->fingerprint != part.fingerprint) {
      text += fmt::format("{}: {} here and there, but with other names or values\n", part.name,
                          part.count);
    }
  }
  for (const ViewPart& part : b.parts) {
    if (find(a, part.name) == a.parts.end()) {
      text += fmt::format("{}: none here, {} there\n", part.name, part.count);
    }
  }
  return text;
}

}  // namespace tessera::topology
