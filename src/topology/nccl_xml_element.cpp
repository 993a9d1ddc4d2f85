#include "topology/nccl_xml_element.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "topology/text.h"

namespace tessera::topology {

void Warnings::add(int line, std::string text) {
  if (list_.size() < kMost)
    list_.push_back({line, std::move(text)});
  else
    ++left_out_;
}

std::vector<Warning> Warnings::take() {
  if (left_out_ > 0) list_.push_back({0, fmt::format("{} more warnings left out", left_out_)});
  left_out_ = 0;
  return std::exchange(list_, {});
}

NcclElement::NcclElement(const pugi::xml_node& node, int line, Warnings& warnings)
    : line_(line), warnings_(warnings), place_(node.name()) {
  for (const pugi::xml_attribute& attribute : node.attributes()) {
    const auto same = [&](const auto& seen) {
      return std::strcmp(seen.first, attribute.name()) == 0;
    };
    if (std::any_of(attributes_.begin(), attributes_.end(), same))
      warn(fmt::format("attribute {} is given twice: the first one counts", attribute.name()));
    else
      attributes_.emplace_back(attribute.name(), attribute.value());
  }
}

const char* NcclElement::take(std::string_view name) {
  for (auto& [key, value] : attributes_) {
    if (key == nullptr || name != key) continue;
    key = nullptr;
    return value;
  }
  return nullptr;
}

std::string NcclElement::text(std::string_view name) {
  const char* text = take(name);
  return text == nullptr ? "" : text;
}

void NcclElement::read(std::string_view name, Stated<int>& into, int least) {
  read(name, into, [least](std::string_view text) -> std::optional<int> {
    const std::optional<int64_t> value = parse_integer(text);
    if (!value || *value < least || *value > INT_MAX) return std::nullopt;
    return static_cast<int>(*value);
  });
}

void NcclElement::read(std::string_view name, Stated<double>& into, double least) {
  read(name, into, [least](std::string_view text) -> std::optional<double> {
    const std::optional<double> value = parse_real(text);
    return value && *value >= least ? value : std::nullopt;
  });
}

void NcclElement::read(std::string_view name, Stated<bool>& into) {
  read(name, into, [](std::string_view text) -> std::optional<bool> {
    const std::optional<int64_t> value = parse_integer(text);
    if (!value || *value < 0 || *value > 1) return std::nullopt;
    return *value == 1;
  });
}

Attributes NcclElement::others() {
  Attributes others;
  for (const auto& [name, value] : attributes_)
    if (name != nullptr) others.push_back({name, value});
  return others;
}

void NcclElement::warn_unreadable(std::string_view name, std::string_view text) const {
  warn(fmt::format("{} {} cannot be read: taken as unknown", name, shown(text)));
}

}  // namespace tessera::topology
