#include "topology/hwloc_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "topology/hwloc_document.h"

namespace tessera::topology::hwloc_document {
namespace {

constexpr int kMostDepth = 100;  // hwloc and libxml2 recurse
constexpr int kMostObjects = 200'000;

void set_attribute(pugi::xml_node out, const char* name, const Bitmap& bits) {
  pugi::xml_attribute attribute = out.attribute(name);
  if (!attribute) attribute = out.append_attribute(name);
  attribute = bits.text().c_str();
}

// The same set under the name that stands for "offline ones too".
void set_both(pugi::xml_node out, const char* name, const Bitmap& bits) {
  set_attribute(out, name, bits);
  set_attribute(out, fmt::format("complete_{}", name).c_str(), bits);
}

Bitmap one(uint64_t index) {
  Bitmap bits;
  hwloc_bitmap_set(bits.get(), static_cast<unsigned>(index));
  return bits;
}

// Copies name-value pairs.
void copy_infos(pugi::xml_node in, pugi::xml_node out) {
  for (pugi::xml_node info : in.children("info")) {
    if (!info.attribute("name") || !info.attribute("value")) continue;
    pugi::xml_node copy = out.append_child("info");
    copy.append_attribute("name") = printable(info.attribute("name").value()).c_str();
    copy.append_attribute("value") = printable(info.attribute("value").value()).c_str();
  }
}

}  // namespace

Objects::Shape Objects::shape_of(std::string_view type) const {
  static constexpr std::array<std::string_view, 17> kNormal{
      "Machine",  "Package",  "Socket",  "Core",    "Die",     "Group",
      "L1Cache",  "L2Cache",  "L3Cache", "L4Cache", "L5Cache", "L1iCache",
      "L2iCache", "L3iCache", "Cache",   "Tile",    "Module"};
  if (type == "PU") return Shape::kNormal;
  if (type == "NUMANode") return schema_ == 1 ? Shape::kNormal : Shape::kMemory;
  if (type == "MemCache") return Shape::kMemory;
  if (type == "Bridge" || type == "PCIDev") return Shape::kIo;
  if (type == "OSDev") return Shape::kLeaf;
  if (type == "Misc") return Shape::kIgnored;
  const auto found = std::find(kNormal.begin(), kNormal.end(), type);
  return found == kNormal.end() ? Shape::kUnknown : Shape::kNormal;
}

Result<Bitmap> Objects::bitmap(pugi::xml_node in, const char* name) const {
  const pugi::xml_attribute attribute = in.attribute(name);
  if (!attribute) return Bitmap();
  auto bits = parse_bitmap(attribute.value());
  if (!bits)
    return report_.error(in, fmt::format("{}: {}=\"{}\" is no set", name_of(in), name,
                                         printable(attribute.value())));
  return std::move(*bits);
}

Status Objects::copy(pugi::xml_node topology, pugi::xml_node out) {
  const pugi::xml_node root = topology.child("object");
  if (!root) return report_.error(topology, "the topology has no object");
  if (type_of(root) != "Machine")
    return report_.error(
        root, fmt::format("the first object is a \"{}\", not a Machine", printable(type_of(root))));
  if (root.next_sibling("object"))
    return report_.error(root.next_sibling("object"), "a second object beside the Machine");
  if (Status status = look_ahead(root, 0); !status.ok()) return status;
  if (pus_.empty()) return report_.error(root, "the document has no processing unit");

  Place place;
  place.out = out;
  place.cpus = pus_.copy();
  if (Status status = object(root, place); !status.ok()) return status;
  if (placed_.empty()) return report_.error(root, "no processing unit fits into its parents");
  return allowed_sets(root, out.child("object"));
}

// Numbers of processors and nodes, limits; before anything is copied.
Status Objects::look_ahead(pugi::xml_node object, int depth) {
  const std::string_view type = type_of(object);
  const Shape shape = shape_of(type);
  if (shape == Shape::kUnknown)
    return report_.error(object, fmt::format("unknown type of object \"{}\"", printable(type)));
  if (depth > kMostDepth)
    return report_.error(object, fmt::format("objects nest deeper than {}", kMostDepth));
  if (++count_ > kMostObjects)
    return report_.error(object, fmt::format("more than {} objects", kMostObjects));
  if (depth > 0 && type == "Machine") return report_.error(object, "a Machine within the Machine");
  last_gp_ =
      std::max(last_gp_, parse_number(object.attribute("gp_index").value(), kMostGp).value_or(0));
  if (Status status = look_at(object, type); !status.ok()) return status;
  for (pugi::xml_node child : object.children("object"))
    if (Status status = look_ahead(child, depth + 1); !status.ok()) return status;
  return {};
}

Status Objects::look_at(pugi::xml_node object, std::string_view type) {
  if (type != "PU" && type != "NUMANode") return {};
  const auto index = parse_number(object.attribute("os_index").value(), CpuSet::kMost - 1);
  if (!index)
    return report_.error(
        object, fmt::format("{} needs an os_index below {}", name_of(object), CpuSet::kMost));
  Bitmap& all = type == "PU" ? pus_ : nodes_;
  if (hwloc_bitmap_isset(all.get(), static_cast<unsigned>(*index)) != 0)
    return report_.error(object, fmt::format("{} occurs twice", name_of(object)));
  hwloc_bitmap_set(all.get(), static_cast<unsigned>(*index));
  return {};
}

Status Objects::object(pugi::xml_node in, Place& place) {
  const Shape shape = shape_of(type_of(in));
  if (shape == Shape::kIgnored) return {};
  const bool fits_parent =
      place.shape == Shape::kNormal || (place.shape == Shape::kMemory && shape == Shape::kMemory) ||
      (place.shape == Shape::kIo && (shape == Shape::kIo || shape == Shape::kLeaf));
  if (!fits_parent)
    return report_.error(
        in, fmt::format("{} cannot be below {}", name_of(in), place.out.attribute("type").value()));
  pugi::xml_node out = place.out.append_child("object");
  out.append_attribute("type") = std::string(type_of(in)).c_str();
  bool keep = true;
  if (Status status = attributes(in, out); !status.ok()) return status;
  if (Status status = place_sets(in, shape, place, out, keep); !status.ok()) return status;
  if (!keep) {
    place.out.remove_child(out);
    return {};
  }
  copy_infos(in, out);
  const bool leaf = type_of(in) == "PU" || shape == Shape::kLeaf;
  if (leaf) return {};
  return children(in, shape, place.depth, out);
}

Status Objects::place_sets(pugi::xml_node in, Shape shape, Place& place, pugi::xml_node out,
                           bool& keep) {
  if (shape == Shape::kIo || shape == Shape::kLeaf) return {};
  if (shape == Shape::kMemory)
    place_memory(in, place, out);
  else if (Status status = place_processors(in, place, out, keep); !status.ok())
    return status;
  if (keep) place_nodes(in, out);
  return {};
}

// Sets of a normal object: within its parent's, beside its siblings'.
Status Objects::place_processors(pugi::xml_node in, Place& place, pugi::xml_node out, bool& keep) {
  auto stated = bitmap(in, "cpuset");
  if (!stated.ok()) return stated.status();
  const bool unit = type_of(in) == "PU";
  const bool root = place.depth == 0;
  if (!in.attribute("cpuset"))
    return report_.error(in, fmt::format("{} has no cpuset", name_of(in)));
  Bitmap cpus = stated->copy();
  if (unit) {
    // A unit whose set is another's is not the unit that its index says.
    cpus.keep(one(*parse_number(in.attribute("os_index").value(), CpuSet::kMost)));
  }
  cpus.keep(place.cpus);
  cpus.drop(place.taken);
  // Processors that no unit stands for are of no use; that alone needs no warning.
  Bitmap expected = stated->copy();
  if (!unit) expected.keep(pus_);
  if (!root && !cpus.equals(expected))
    report_.warn(
        in, fmt::format("{} has processors {}, of which {} fit into its place: {}", name_of(in),
                        expected.ranges(), cpus.empty() ? "none" : cpus.ranges(),
                        cpus.empty() ? "left out" : "the others are ignored"));
  // An empty set that was stated so is a node or package without processors.
  keep = !cpus.empty() || (stated->empty() && !unit);
  if (!keep) return {};
  place.taken.add(cpus);
  if (unit) placed_.add(cpus);
  set_both(out, "cpuset", cpus);
  return {};
}

// hwloc gives a memory object its parent's processors, whatever the document says; what it says is
// kept as an info.
void Objects::place_memory(pugi::xml_node in, const Place& place, pugi::xml_node out) {
  set_both(out, "cpuset", place.cpus);
  auto stated = parse_bitmap(in.attribute("cpuset").value());
  if (!stated || !in.attribute("cpuset")) return;
  stated->keep(pus_);
  if (stated->equals(place.cpus) || type_of(in) != "NUMANode") return;
  for (pugi::xml_node info : in.children("info"))
    if (std::string_view(info.attribute("name").value()) == kStatedCpuset) return;
  report_.warn(in, fmt::format("{} has processors {}, the object it belongs to has {}", name_of(in),
                               stated->ranges(), place.cpus.ranges()));
  pugi::xml_node info = out.append_child("info");
  info.append_attribute("name") = kStatedCpuset;
  info.append_attribute("value") = stated->text().c_str();
}

void Objects::place_nodes(pugi::xml_node in, pugi::xml_node out) {
  const bool node = type_of(in) == "NUMANode";
  std::optional<Bitmap> nodes;
  if (node) {
    nodes = one(*parse_number(in.attribute("os_index").value(), CpuSet::kMost));
  } else if (in.attribute("nodeset")) {
    nodes = parse_bitmap(in.attribute("nodeset").value());
    if (nodes) nodes->keep(nodes_);
  }
  // Without one hwloc follows a null pointer at the first node. Documents of version 1 may have
  // none.
  const bool root = type_of(in) == "Machine";
  if (root && (schema_ == 2 || !nodes_.empty())) nodes = nodes_.copy();
  if (nodes) set_both(out, "nodeset", *nodes);
}

Status Objects::children(pugi::xml_node in, Shape shape, int depth, pugi::xml_node out) {
  if (schema_ == 1 && shape == Shape::kNormal)
    for (pugi::xml_node matrix : in.children("distances"))
      if (Status status = copy_old_distances(matrix, out, report_); !status.ok()) return status;
  auto cpus = parse_bitmap(out.attribute("cpuset").value());
  Place place;
  place.out = out;
  place.shape = shape;
  place.depth = depth + 1;
  if (cpus) place.cpus = std::move(*cpus);
  for (pugi::xml_node child : in.children("object"))
    if (Status status = object(child, place); !status.ok()) return status;
  if (shape == Shape::kNormal) shrink(out, place.cpus);
  in_order(out);
  return {};
}

// Units that were left out are taken out of the sets of their parents, too.
void Objects::shrink(pugi::xml_node out, Bitmap& cpus) {
  cpus.keep(placed_);
  set_both(out, "cpuset", cpus);
  for (pugi::xml_node child : out.children("object"))
    if (shape_of(type_of(child)) == Shape::kMemory) set_both(child, "cpuset", cpus);
}

void Objects::in_order(pugi::xml_node out) {
  // hwloc wants processors in order, and prints to the terminal where they are not.
  std::vector<std::pair<uint64_t, pugi::xml_node>> order;
  for (pugi::xml_node child : out.children("object")) {
    const Shape kind = shape_of(type_of(child));
    uint64_t key = uint64_t{1} << 32;
    if (kind == Shape::kMemory) key = 0;
    if (kind == Shape::kNormal)
      if (auto set = parse_bitmap(child.attribute("cpuset").value()); set && !set->empty())
        key = static_cast<uint64_t>(set->first()) + 1;
    order.emplace_back(key, child);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [key, child] : order) out.append_move(child);
}

Status Objects::allowed_sets(pugi::xml_node in, pugi::xml_node out) {
  auto cpus = bitmap(in, "allowed_cpuset");
  if (!cpus.ok()) return cpus.status();
  auto nodes = bitmap(in, "allowed_nodeset");
  if (!nodes.ok()) return nodes.status();
  if (in.attribute("allowed_cpuset")) {
    Bitmap missing = cpus->copy();
    missing.drop(placed_);
    const bool finite = hwloc_bitmap_weight(missing.get()) >= 0;
    if (finite && !missing.empty())
      report_.warn(in, fmt::format("the allowed set names processors {}, for which there is no "
                                   "usable PU object",
                                   missing.ranges()));
    cpus->keep(placed_);
    if (!cpus->empty()) set_attribute(out, "allowed_cpuset", cpus.value());
  }
  if (in.attribute("allowed_nodeset")) {
    nodes->keep(nodes_);
    if (!nodes->empty()) set_attribute(out, "allowed_nodeset", nodes.value());
  }
  return {};
}

}  // namespace tessera::topology::hwloc_document
