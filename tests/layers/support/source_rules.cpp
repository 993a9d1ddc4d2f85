#include "layers/source_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <regex>
#include <sstream>

namespace tessera::rules {
namespace {

namespace fs = std::filesystem;

struct Include {
  int line;
  std::string name;
};

struct Token {
  const char* pattern;
  std::array<std::string_view, 5>
      hints;  // a line that matches contains one of them; saves most regex searches
  const char* what;
  bool (*allowed)(std::string_view path);
  const char* rule;
};

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool may_use_atomics(std::string_view path) {
  return starts_with(path, "src/sync/") || path == "include/tessera/device_block.h";
}
bool is_config(std::string_view path) { return path == "src/base/config.cpp"; }
bool nowhere(std::string_view) { return false; }

const std::array<Token, 3>& tokens() {
  static constexpr std::array<Token, 3> kTokens = {{
      {R"(\bstd::atomic|\bcuda::atomic|\b__atomic_|\b__sync_|\bmemory_order|\batomic_\w*fence\b)"
       R"(|\b_mm_[lsm]fence\b|\b__threadfence|\basm\b|\b__asm__\b)",
       {"atomic", "__sync_", "memory_order", "fence", "asm"},
       "a raw atomic, a fence or assembly",
       may_use_atomics,
       "they live in src/sync only (I4)"},
      {R"(\b(secure_)?getenv\b|\benviron\b)",
       {"getenv", "environ"},
       "a look at the environment",
       is_config,
       "only src/base/config.cpp reads it (I11)"},
      {R"(\bgoto\b)", {"goto"}, "a goto", nowhere, "control flow is structured"},
  }};
  return kTokens;
}

bool has_hint(const std::string& line, const Token& token) {
  return std::any_of(token.hints.begin(), token.hints.end(), [&](std::string_view hint) {
    return !hint.empty() && line.find(hint) != std::string::npos;
  });
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<Include> includes_of(std::string_view text) {
  static const std::regex kInclude(R"rx(^\s*#\s*include\s*["<]([^">]+)[">])rx");
  std::vector<Include> includes;
  int number = 0;
  for (const std::string& line : lines_of(without_comments(text, true))) {
    ++number;
    std::smatch match;
    if (line.find("include") != std::string::npos && std::regex_search(line, match, kInclude))
      includes.push_back({number, match[1]});
  }
  return includes;
}

// The layer that an include names from the root of the tree or of src/, the two include paths.
const Layer* included_layer(const std::string& name) {
  if (const Layer* layer = layer_of(name)) return layer;
  return layer_of("src/" + name);
}

std::optional<std::string> broken_include_rule(const Layer& from, const std::string& name) {
  if (name.find("..") != std::string::npos)
    return "an include names its file from the root, without '..'";
  if (name == "nccl.h" && from.place < layer_of("src/api/")->place)
    return "nothing below src/api knows NCCL's C types";
  const Layer* to = included_layer(name);
  if (to == nullptr || to->name == from.name || to->place < from.place) return std::nullopt;
  const char* relation = to->place == from.place ? "is a sibling of" : "lies above";
  return std::string(to->name) + " " + relation + " " + std::string(from.name) +
         "; a layer includes only layers below it";
}

void check_includes(const std::string& path, std::string_view text,
                    std::vector<Finding>& findings) {
  const Layer* layer = layer_of(path);
  if (layer == nullptr) return;
  for (const Include& include : includes_of(text))
    if (const auto rule = broken_include_rule(*layer, include.name))
      findings.push_back({path, include.line, "includes \"" + include.name + "\": " + *rule});
}

void check_tokens(const std::string& path, std::string_view text, std::vector<Finding>& findings) {
  const std::vector<std::string> lines = lines_of(without_comments(text, false));
  for (const Token& token : tokens()) {
    if (token.allowed(path)) continue;
    const std::regex pattern(token.pattern);
    for (size_t i = 0; i < lines.size(); ++i)
      if (has_hint(lines[i], token) && std::regex_search(lines[i], pattern))
        findings.push_back(
            {path, static_cast<int>(i) + 1, std::string(token.what) + ": " + token.rule});
  }
}

// Copies text while blanking what is not code.
class Stripper {
 public:
  Stripper(std::string_view text, bool keep_literals) : text_(text), keep_(keep_literals) {}

  std::string run() {
    while (at_ < text_.size()) {
      if (next_is("//")) {
        skip_until("\n", 0, false);
      } else if (next_is("/*")) {
        skip_until("*/", 2, false);
      } else if (next_is("R\"")) {
        raw_literal();
      } else if (text_[at_] == '"' || (text_[at_] == '\'' && !inside_a_number())) {
        literal(text_[at_]);
      } else {
        out_ += text_[at_++];
      }
    }
    return std::move(out_);
  }

 private:
  bool next_is(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

  // The separator of 30'000 is no quote.
  bool inside_a_number() const {
    return at_ > 0 && std::isxdigit(static_cast<unsigned char>(text_[at_ - 1])) != 0;
  }

  void emit(size_t end, bool keep) {
    for (; at_ < end; ++at_) out_ += keep || text_[at_] == '\n' ? text_[at_] : ' ';
  }

  void skip_until(std::string_view end, size_t offset, bool keep) {
    const size_t found = text_.find(end, at_ + offset);
    const size_t tail = end == "\n" ? 0 : end.size();
    emit(found == std::string_view::npos ? text_.size() : found + tail, keep);
  }

  void raw_literal() {
    const size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) return emit(text_.size(), keep_);
    std::string close(text_.substr(at_ + 2, open - at_ - 2));
    close.insert(close.begin(), ')');
    close.push_back('"');
    skip_until(close, open - at_, keep_);
  }

  void literal(char quote) {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n')
      end += text_[end] == '\\' ? 2 : 1;
    emit(std::min(end + 1, text_.size()), keep_);
  }

  std::string_view text_;
  bool keep_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

const std::vector<Layer>& layers() {
  static const std::vector<Layer> kLayers = {
      {"src/base", "src/base/", 0},
      {"src/sync", "src/sync/", 1},
      {"src/plan", "src/plan/", 2},
      {"algorithms", "algorithms/", 3},
      {"src/topology", "src/topology/", 3},
      {"src/device", "src/device/", 3},
      {"src/simulator", "src/simulator/", 4},
      {"src/exec", "src/exec/", 4},
      {"transports", "transports/", 4},
      {"src/tuner", "src/tuner/", 5},
      {"src/comm", "src/comm/", 6},
      {"src/fusion", "src/fusion/", 7},
      {"src/hybrid", "src/hybrid/", 7},
      {"src/api", "src/api/", 8},
      {"src/command_line", "src/command_line/", 8},
      {"src/gemm", "src/gemm/", 9},
      {"src/tools", "src/tools/", 9},
      {"perf", "perf/", 9},
  };
  return kLayers;
}

const Layer* layer_of(std::string_view path) {
  const auto found = std::find_if(layers().begin(), layers().end(), [&](const Layer& layer) {
    return starts_with(path, layer.folder);
  });
  return found == layers().end() ? nullptr : &*found;
}

std::string without_comments(std::string_view text, bool keep_literals) {
  return Stripper(text, keep_literals).run();
}

std::vector<Finding> check_file(const std::string& path, std::string_view text) {
  std::vector<Finding> findings;
  const auto lines = std::count(text.begin(), text.end(), '\n');
  if (lines > kMaxFileLines)
    findings.push_back({path, 0,
                        std::to_string(lines) + " lines: a file is one concern in at most " +
                            std::to_string(kMaxFileLines) + " lines"});
  if (starts_with(path, "src/") && layer_of(path) == nullptr)
    findings.push_back({path, 0, "lies in no layer: every folder of src is a layer"});
  check_includes(path, text, findings);
  const bool in_library = starts_with(path, "src/") || starts_with(path, "algorithms/") ||
                          starts_with(path, "transports/") || starts_with(path, "include/");
  if (in_library && !starts_with(path, "src/tools/")) check_tokens(path, text, findings);
  return findings;
}

std::vector<fs::path> source_files(const fs::path& root) {
  static const std::array<std::string_view, 7> kSuffixes = {".h",  ".cpp", ".c",  ".cc",
                                                            ".cu", ".cuh", ".hip"};
  std::vector<fs::path> files;
  for (const char* folder :
       {"include/tessera", "src", "algorithms", "transports", "perf", "tests", "examples"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string suffix = entry.path().extension().string();
      if (entry.is_regular_file() &&
          std::find(kSuffixes.begin(), kSuffixes.end(), suffix) != kSuffixes.end())
        files.push_back(entry.path().lexically_relative(root));
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string to_string(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings)
    text += finding.file + ":" + std::to_string(finding.line) + ": " + finding.message + "\n";
  return text;
}

}  // namespace tessera::rules
