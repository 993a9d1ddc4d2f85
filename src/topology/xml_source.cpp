#include "topology/xml_source.h"

#include <algorithm>
#include <cstring>

#include "topology/text.h"

namespace tessera::topology {
namespace {

std::string element(const pugi::xml_node& node) { return shown(node.name()); }

}  // namespace

Status XmlSource::load(std::string text, std::string source, const char* root) {
  source_ = std::move(source);
  text_ = std::move(text);
  if (text_.size() > kMostXmlBytes)
    return Status::error(Code::kInvalidArgument, "{}: larger than {} MiB, the limit", source_,
                         kMostXmlBytes >> 20);
  for (size_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n' || (text_[i] == '\r' && (i + 1 == text_.size() || text_[i + 1] != '\n')))
      line_ends_.push_back(i);
  if (Status status = check_text(); !status.ok()) return status;
  const char last = text_.back();  // the parser overwrites it
  // Fragments, so that what stands beside the root element is seen; the encoding is fixed, because
  // detection may convert the text and make the offsets useless.
  const unsigned flags = pugi::parse_default | pugi::parse_fragment | pugi::parse_doctype;
  const pugi::xml_parse_result parsed =
      document_.load_buffer_inplace(text_.data(), text_.size(), flags, pugi::encoding_utf8);
  for (const Status& status : {check_top(root), check_parsed(parsed, last)})
    if (!status.ok()) return status;
  if (!root_)
    return Status::error(Code::kInvalidArgument, "{}: no element <{}>: this is no such file",
                         source_, root);
  return check_tree();
}

Status XmlSource::check_text() const {
  if (stripped(text_).empty())
    return Status::error(Code::kInvalidArgument, "{}: the file is empty", source_);
  if (const size_t zero = text_.find('\0'); zero != std::string::npos)
    return error_at(line_at(static_cast<ptrdiff_t>(zero)),
                    "a zero byte: binary data, or text in another encoding than UTF-8");
  size_t elements = 0;
  for (size_t i = 0; i + 1 < text_.size(); ++i)
    elements += text_[i] == '<' && std::strchr("/!?", text_[i + 1]) == nullptr;
  if (elements > kMostElements)
    return Status::error(Code::kInvalidArgument, "{}: more than {} elements, the limit", source_,
                         kMostElements);
  return {};
}

Status XmlSource::check_parsed(const pugi::xml_parse_result& parsed, char last) const {
  if (parsed) return {};
  const auto size = static_cast<ptrdiff_t>(text_.size());
  // Where the parser stopped in the tree it has made so far.
  pugi::xml_node node = document_.last_child();
  for (size_t i = 0; i < kMostDepth && node.last_child().type() == pugi::node_element; ++i)
    node = node.last_child();
  std::string place;
  if (node.type() == pugi::node_element && node.name()[0] != '\0') {
    place = fmt::format("; the last element read is {} in line {}", element(node), line(node));
    if (const pugi::xml_attribute attribute = node.last_attribute())
      place += fmt::format(", its last attribute {}", shown(attribute.name()));
  }
  const ptrdiff_t offset = std::clamp<ptrdiff_t>(parsed.offset, 0, size - 1);
  const bool cut =
      offset == size - 1 ||
      (last != '>' && text_.find('>', static_cast<size_t>(offset)) == std::string::npos);
  return error_at(line_at(offset),
                  fmt::format("no well-formed XML: {}{}{}", parsed.description(),
                              cut ? " (the text ends here: is the file truncated?)" : "", place));
}

// What stands beside the root element: comments, a declaration, and nothing else.
Status XmlSource::check_top(const char* root) {
  for (const pugi::xml_node& node : document_.children()) {
    switch (node.type()) {
      case pugi::node_doctype:
        return error_at(line(node), "a document type (DOCTYPE) is not allowed in topology files");
      case pugi::node_pcdata:
      case pugi::node_cdata:
        return error_at(line(node), fmt::format("the text {} stands outside of any element: this "
                                                "is no XML document",
                                                shown(stripped(node.value()))));
      case pugi::node_element:
        if (root_)
          return error_at(line(node), fmt::format("a second root element {}; a document has one",
                                                  element(node)));
        if (std::strcmp(node.name(), root) != 0)
          return error_at(line(node), fmt::format("the root element is {}, expected \"{}\"",
                                                  element(node), root));
        root_ = node;
        break;
      default:
        break;
    }
  }
  return {};
}

Status XmlSource::check_tree() const {
  size_t depth = 1;
  for (pugi::xml_node node = root_;;) {
    if (node.type() == pugi::node_element) {
      if (depth > kMostDepth)
        return error(node, nullptr, fmt::format("nested more than {} deep, the limit", kMostDepth));
      if (Status status = check_element(node); !status.ok()) return status;
    }
    if (node.first_child()) {
      node = node.first_child();
      ++depth;
      continue;
    }
    for (; node != root_ && !node.next_sibling(); node = node.parent()) --depth;
    if (node == root_) return {};
    node = node.next_sibling();
  }
}

Status XmlSource::check_element(const pugi::xml_node& node) const {
  size_t count = 0;
  for (const pugi::xml_attribute& attribute : node.attributes()) {
    if (++count > kMostAttributes)
      return error(node, nullptr,
                   fmt::format("more than {} attributes, the limit", kMostAttributes));
    if (std::strlen(attribute.value()) > kMostValueBytes)
      return error(node, attribute.name(),
                   fmt::format("longer than {} MiB, the limit", kMostValueBytes >> 20));
  }
  return {};
}

int XmlSource::line(const pugi::xml_node& node) const { return line_at(node.offset_debug()); }

int XmlSource::line_at(ptrdiff_t offset) const {
  if (offset < 0) return 0;
  const auto end =
      std::lower_bound(line_ends_.begin(), line_ends_.end(), static_cast<size_t>(offset));
  return static_cast<int>(end - line_ends_.begin()) + 1;
}

Status XmlSource::error(const pugi::xml_node& node, const char* attribute,
                        const std::string& what) const {
  const std::string name = std::string(shown(node.name()));
  if (attribute == nullptr) return error_at(line(node), fmt::format("element {}: {}", name, what));
  return error_at(line(node),
                  fmt::format("element {}, attribute {}: {}", name, shown(attribute), what));
}

Status XmlSource::error_at(int line, const std::string& what) const {
  return Status::error(Code::kInvalidArgument, "{}:{}: {}", source_, line, what);
}

}  // namespace tessera::topology
