// Shared by the files of the document's normaliser.
#pragma once

#include <optional>
#include <pugixml.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "topology/machine.h"

namespace tessera::topology::hwloc_document {

// What distances may refer to: (type, index as the document has it).
using Known = std::set<std::pair<std::string, uint64_t>>;

// Turns places in the document into messages.
class Reporter {
 public:
  Reporter(std::string_view bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  int line(pugi::xml_node at) const;
  Status error(pugi::xml_node at, const std::string& reason) const;
  Status error_at(size_t offset, const std::string& reason) const;
  void warn(pugi::xml_node at, std::string text) {
    warnings.push_back({line(at), std::move(text)});
  }

  std::vector<Warning> warnings;

 private:
  int line_of(size_t offset) const;
  std::string_view bytes_;
  std::string name_;
};

// A matrix of schema 2 (after the objects) or of schema 1 (within an object), checked and copied.
Status copy_distances(pugi::xml_node in, pugi::xml_node out, const Known& by_os, const Known& by_gp,
                      const Reporter& report);
Status copy_old_distances(pugi::xml_node in, pugi::xml_node out, const Reporter& report);

}  // namespace tessera::topology::hwloc_document
