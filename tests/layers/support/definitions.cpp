// Which types a source defines at namespace scope. Two definitions of one name in different files
// are no error to compiler and linker, and mix up at run time.
#include <regex>

#include "layers/source_rules.h"

namespace tessera::rules {
namespace {

constexpr const char* kUnnamed = "(unnamed)";

// The namespaces around the present position, and braces of other kinds.
class Scopes {
 public:
  void open_namespace(const std::string& name) { open_.push_back(name.empty() ? kUnnamed : name); }
  void braces(std::string_view text) {
    for (const char c : text) {
      if (c == '{') open_.emplace_back();
      if (c == '}' && !open_.empty()) open_.pop_back();
    }
  }
  // "a::b::", or nothing if a type here is nobody else's: in a function, a type, or no namespace
  // with a name.
  std::string prefix() const {
    std::string text;
    for (const std::string& name : open_) {
      if (name.empty() || name == kUnnamed) return {};
      text += name + "::";
    }
    return text;
  }

 private:
  std::vector<std::string> open_;  // names of namespaces; empty: another brace
};

}  // namespace

std::vector<Definition> types_defined(std::string_view text) {
  static const std::regex kNamespace(R"(^\s*(?:inline )?namespace\s*([\w:]*)\s*\{)");
  static const std::regex kType(
      R"(^\s*(?:template\s*<[^>]*>\s*)?(?:struct|class|enum class|enum|union)\s+(?:alignas\([^)]*\)\s*)?(\w+)\b(?!::)[^;{]*\{.*)");
  const std::string code = without_comments(text, false);
  std::vector<Definition> found;
  Scopes scopes;
  int line = 0;
  for (size_t begin = 0; begin < code.size(); ++line) {
    const size_t end = std::min(code.find('\n', begin), code.size());
    const std::string row = code.substr(begin, end - begin);
    begin = end + 1;
    std::smatch match;
    if (std::regex_search(row, match, kNamespace)) {
      scopes.open_namespace(match[1]);
      scopes.braces(match.suffix().str());
      continue;
    }
    if (std::regex_match(row, match, kType)) {
      if (const std::string prefix = scopes.prefix(); !prefix.empty())
        found.push_back({prefix + match[1].str(), line + 1});
    }
    scopes.braces(row);
  }
  return found;
}

}  // namespace tessera::rules
