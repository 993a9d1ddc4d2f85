// An XML document of topology data, with what good errors need: the name of its source and the line
// of every element.
//
// Limits keep a document that nobody meant to read from taking all memory or all time: file and
// attribute sizes, elements, attributes of one element, depth. A document type is refused.
//
// Thread safety: read-only after load(). Errors begin with "file:line: ".
#pragma once

#include <fmt/format.h>

#include <pugixml.hpp>
#include <string>
#include <vector>

#include "base/status.h"

namespace tessera::topology {

constexpr size_t kMostXmlBytes = size_t{64} << 20;
constexpr size_t kMostValueBytes = size_t{1} << 20;
constexpr size_t kMostElements = 500'000;
constexpr size_t kMostAttributes = 64;
constexpr size_t kMostDepth = 10'000;

class XmlSource {
 public:
  // The document has one root element of this name and keeps the limits.
  Status load(std::string text, std::string source, const char* root);

  pugi::xml_node root() const { return root_; }
  const std::string& source() const { return source_; }
  int line(const pugi::xml_node& node) const;

  // "file:7: pci: attribute link_width: <what>"; attribute nullptr: about the element itself.
  Status error(const pugi::xml_node& node, const char* attribute, const std::string& what) const;

 private:
  int line_at(ptrdiff_t offset) const;
  Status error_at(int line, const std::string& what) const;
  Status check_text() const;
  Status check_parsed(const pugi::xml_parse_result& parsed, char last) const;
  Status check_top(const char* root);
  Status check_tree() const;
  Status check_element(const pugi::xml_node& node) const;

  std::string source_;
  std::string text_;  // parsed in place: holds the tree's strings
  std::vector<size_t> line_ends_;
  pugi::xml_document document_;
  pugi::xml_node root_;
};

}  // namespace tessera::topology
