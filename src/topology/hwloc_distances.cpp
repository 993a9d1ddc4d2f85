// Matrices of hwloc documents. hwloc fails without a reason where one is cut off, and reads past
// what it was given where counts disagree; so all counts are compared here.
#include <fmt/format.h>

#include "topology/hwloc_document_internal.h"
#include "topology/hwloc_values.h"

namespace tessera::topology::hwloc_document {
namespace {

constexpr uint64_t kMostOfMatrix = 4096;

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while ((at = text.find_first_not_of(" \n\t", at)) != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(" \n\t", at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

// All words of the children of one name; their lengths must be as stated.
Result<std::vector<std::string_view>> content(pugi::xml_node in, const char* child,
                                              const Reporter& report) {
  std::vector<std::string_view> words;
  for (pugi::xml_node node : in.children(child)) {
    const std::string_view text = node.text().get();
    const auto length = parse_number(node.attribute("length").value(), 1 << 30);
    if (!length || *length != text.size())
      return report.error(node, fmt::format("<{}> has {} characters, its length attribute says "
                                            "\"{}\"",
                                            child, text.size(), node.attribute("length").value()));
    for (std::string_view word : words_of(text)) words.push_back(word);
  }
  return words;
}

// "OSDev:332" or, for a matrix of one type, "332".
Status check_index(pugi::xml_node in, std::string_view word, std::string type, const Known& known,
                   const Reporter& report) {
  std::string_view number = word;
  if (type.empty()) {
    const size_t colon = word.find(':');
    type = word.substr(0, colon);
    number = colon == std::string_view::npos ? "" : word.substr(colon + 1);
  }
  const auto index = parse_number(number, UINT64_MAX);
  if (!index || !known.contains({type, *index}))
    return report.error(in, fmt::format("the matrix names {} \"{}\", which is no object of the "
                                        "document",
                                        type, printable(number)));
  return {};
}

// One element for all words: hwloc's parsers take any number of elements.
void write_words(pugi::xml_node out, const char* child,
                 const std::vector<std::string_view>& words) {
  std::string text;
  for (std::string_view word : words) text.append(word).append(" ");
  pugi::xml_node node = out.append_child(child);
  node.append_attribute("length") = text.size();
  node.text() = text.c_str();
}

}  // namespace

Status copy_distances(pugi::xml_node in, pugi::xml_node out, const Known& by_os, const Known& by_gp,
                      const Reporter& report) {
  const bool mixed = std::string_view(in.name()) == "distances2hetero";
  const std::string type = in.attribute("type").value();
  const std::string_view indexing = in.attribute("indexing").value();
  const auto objects = parse_number(in.attribute("nbobjs").value(), kMostOfMatrix);
  const auto kind = parse_number(in.attribute("kind").value(), 255);
  if (!objects || *objects == 0 || !kind || *kind == 0 || (!mixed && type.empty()) ||
      (!mixed && indexing != "os" && indexing != "gp"))
    return report.error(in, fmt::format("<{}> needs nbobjs, kind and, for objects of one type, "
                                        "type and indexing",
                                        in.name()));
  auto indexes = content(in, "indexes", report);
  if (!indexes.ok()) return indexes.status();
  auto values = content(in, "u64values", report);
  if (!values.ok()) return values.status();
  if (indexes->size() != *objects || values->size() != *objects * *objects)
    return report.error(
        in, fmt::format("the matrix has {} indexes and {} values, {} objects need "
                        "{} and {}",
                        indexes->size(), values->size(), *objects, *objects, *objects * *objects));
  const Known& known = !mixed && indexing == "os" ? by_os : by_gp;
  for (std::string_view word : indexes.value())
    if (Status status = check_index(in, word, mixed ? "" : type, known, report); !status.ok())
      return status;
  for (std::string_view word : values.value())
    if (!parse_number(word, UINT64_MAX))
      return report.error(in, fmt::format("\"{}\" is no value of a matrix", printable(word)));

  pugi::xml_node matrix = out.append_child(in.name());
  if (!mixed) matrix.append_attribute("type") = type.c_str();
  matrix.append_attribute("nbobjs") = *objects;
  matrix.append_attribute("kind") = *kind;
  if (const auto name = in.attribute("name"))
    matrix.append_attribute("name") = printable(name.value()).c_str();
  if (!mixed) matrix.append_attribute("indexing") = std::string(indexing).c_str();
  write_words(matrix, "indexes", indexes.value());
  write_words(matrix, "u64values", values.value());
  return {};
}

Status copy_old_distances(pugi::xml_node in, pugi::xml_node out, const Reporter& report) {
  const auto objects = parse_number(in.attribute("nbobjs").value(), kMostOfMatrix);
  const auto depth = parse_number(in.attribute("relative_depth").value(), 64);
  const auto base = parse_decimal(in.attribute("latency_base").value());
  if (!objects || *objects == 0 || !depth || !base)
    return report.error(in, "<distances> needs nbobjs, relative_depth and latency_base");
  std::vector<double> values;
  for (pugi::xml_node latency : in.children("latency")) {
    const auto value = parse_decimal(latency.attribute("value").value());
    if (!value)
      return report.error(latency, fmt::format("\"{}\" is no latency",
                                               printable(latency.attribute("value").value())));
    values.push_back(*value);
  }
  if (values.size() != *objects * *objects)
    return report.error(in, fmt::format("the matrix has {} values, {} objects need {}",
                                        values.size(), *objects, *objects * *objects));
  pugi::xml_node matrix = out.append_child("distances");
  matrix.append_attribute("nbobjs") = *objects;
  matrix.append_attribute("relative_depth") = *depth;
  matrix.append_attribute("latency_base") = fmt::format("{:.6f}", *base).c_str();
  for (double value : values)
    matrix.append_child("latency").append_attribute("value") = fmt::format("{:.6f}", value).c_str();
  return {};
}

}  // namespace tessera::topology::hwloc_document
