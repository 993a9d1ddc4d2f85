// One element of an NCCL topology file while it is read: hands out its attributes, each once, and
// keeps what nobody asked for.
#pragma once

#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/machine.h"

namespace tessera::topology {

// Warnings of one document; beyond kMost they are only counted.
class Warnings {
 public:
  static constexpr size_t kMost = 1000;
  void add(int line, std::string text);
  std::vector<Warning> take();

 private:
  std::vector<Warning> list_;
  size_t left_out_ = 0;
};

class NcclElement {
 public:
  // `place` tells in warnings which element this is: "pci 0000:17:00.0".
  NcclElement(const pugi::xml_node& node, int line, Warnings& warnings);
  void set_place(std::string place) { place_ = std::move(place); }
  const std::string& place() const { return place_; }
  int line() const { return line_; }
  void warn(const std::string& what) const { warnings_.add(line_, place_ + ": " + what); }

  // nullptr: absent.
  const char* take(std::string_view name);
  std::string text(std::string_view name);

  // parse: std::string_view -> std::optional<T>.
  template <class T, class Parse>
  void read(std::string_view name, Stated<T>& into, Parse parse) {
    const char* text = take(name);
    if (text == nullptr) return;
    into.value = parse(std::string_view(text));
    if (into.given()) return;
    into.unreadable = text;
    warn_unreadable(name, text);
  }
  void read(std::string_view name, Stated<int>& into, int least);
  void read(std::string_view name, Stated<double>& into, double least);
  void read(std::string_view name, Stated<bool>& into);
  Attributes others();

 private:
  void warn_unreadable(std::string_view name, std::string_view text) const;

  std::vector<std::pair<const char*, const char*>> attributes_;  // name nullptr: taken
  int line_;
  Warnings& warnings_;
  std::string place_;
};

}  // namespace tessera::topology
