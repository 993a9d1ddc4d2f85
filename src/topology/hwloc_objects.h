// The objects of an hwloc document: copies those that hwloc 2 knows, with checked attributes, so
// that sets nest: a child has processors of its parent only, siblings have none in common, every
// processor has a PU object. What does not fit is left out, with a warning.
#pragma once

#include <pugixml.hpp>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "topology/hwloc_document_internal.h"
#include "topology/hwloc_values.h"

namespace tessera::topology::hwloc_document {

inline constexpr uint64_t kMostGp = uint64_t{1} << 53;

std::string_view type_of(pugi::xml_node object);
std::string name_of(pugi::xml_node object);  // for messages: "PU 3"

class Objects {
 public:
  Objects(int schema, Reporter& report) : schema_(schema), report_(report) {}

  // The root object of <topology> and all below it.
  Status copy(pugi::xml_node topology, pugi::xml_node out);

  const Known& by_os() const { return by_os_; }
  const Known& by_gp() const { return by_gp_; }

 private:
  enum class Shape { kNormal, kMemory, kIo, kLeaf, kIgnored, kUnknown };
  struct Place {
    pugi::xml_node out;
    Shape shape = Shape::kNormal;
    Bitmap cpus;   // of the parent
    Bitmap taken;  // by siblings so far
    int depth = 0;
  };

  Shape shape_of(std::string_view type) const;
  Status look_ahead(pugi::xml_node object, int depth);
  Status look_at(pugi::xml_node object, std::string_view type);
  Status object(pugi::xml_node in, Place& place);
  Status place_sets(pugi::xml_node in, Shape shape, Place& place, pugi::xml_node out, bool& keep);
  Status place_processors(pugi::xml_node in, Place& place, pugi::xml_node out, bool& keep);
  void place_memory(pugi::xml_node in, const Place& place, pugi::xml_node out);
  void place_nodes(pugi::xml_node in, pugi::xml_node out);
  Status attributes(pugi::xml_node in, pugi::xml_node out);
  Status children(pugi::xml_node in, Shape shape, int depth, pugi::xml_node out);
  void shrink(pugi::xml_node out, Bitmap& cpus);
  void in_order(pugi::xml_node out);
  Status allowed_sets(pugi::xml_node in, pugi::xml_node out);
  Result<Bitmap> bitmap(pugi::xml_node in, const char* name) const;

  int schema_;
  Reporter& report_;
  Bitmap pus_, nodes_;     // all of the document
  Bitmap placed_;          // processors whose PU object has been copied
  std::set<uint64_t> gp_;  // indexes that are in use
  uint64_t last_gp_ = 0;
  int count_ = 0;
  Known by_os_, by_gp_;
};

}  // namespace tessera::topology::hwloc_document
