// Values of a Machine's fields as text, for messages. Overloads of show().
#pragma once

#include <fmt/format.h>

#include "topology/machine.h"
#include "topology/text.h"

namespace tessera::topology {

inline std::string show(const BusId& id) { return to_string(id); }
inline std::string show(const CpuSet& set) { return "CPUs " + set.ranges(); }
inline std::string show(const std::string& text) { return shown(text); }
inline std::string show(PciKind kind) { return fmt::format("kind {}", static_cast<int>(kind)); }
inline std::string show(PeerLinkKind kind) {
  return fmt::format("kind {}", static_cast<int>(kind));
}
template <class T>
requires std::is_arithmetic_v<T> std::string show(T value) { return fmt::format("{}", value); }

inline std::string show(const Attributes& attributes) {
  std::string text;
  for (const Attribute& a : attributes)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", a.name, shown(a.text));
  return text.empty() ? "none" : text;
}

inline std::string show(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += fmt::format("{}{}", text.empty() ? "" : " ", name);
  return text.empty() ? "none" : text;
}

template <class T>
std::string show(const Stated<T>& stated) {
  if (stated.given()) return show(*stated.value);
  return stated.absent() ? "absent" : "unreadable " + shown(*stated.unreadable);
}

}  // namespace tessera::topology
