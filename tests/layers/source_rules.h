// The rules that the sources must keep and that a compiler does not check: who may include whom,
// where atomics and the environment may be touched, how long a file may be. Pure functions of
// texts; thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::rules {

struct Finding {
  std::string file;
  int line;             // 1-based; 0: the file as a whole
  std::string message;  // what was found and the rule it breaks
};

inline constexpr int kMaxFileLines = 400;

// A layer's place from the ground up. Equal places are siblings, which do not include each other.
struct Layer {
  std::string_view name;    // as the documents name it
  std::string_view folder;  // from the root of the tree
  int place;
};

// Every layer, ground first.
const std::vector<Layer>& layers();

// The layer that a path (from the root of the tree, '/'-separated) lies in, or nullptr.
const Layer* layer_of(std::string_view path);

// `text` with comments blanked, lines kept. Literals are blanked too unless `keep_literals`.
std::string without_comments(std::string_view text, bool keep_literals);

// All rules for one file. `path` is relative to the root of the tree and selects the rules that
// apply.
std::vector<Finding> check_file(const std::string& path, std::string_view text);

// A type with a name of its own, defined at namespace scope.
struct Definition {
  std::string name;  // "tessera::tcp::Engine"
  int line;
};
std::vector<Definition> types_defined(std::string_view text);

// The sources below `root`, in the order of their paths, that rules apply to.
std::vector<std::filesystem::path> source_files(const std::filesystem::path& root);

// "src/plan/x.h:3: message", one a line.
std::string to_string(const std::vector<Finding>& findings);

}  // namespace tessera::rules
