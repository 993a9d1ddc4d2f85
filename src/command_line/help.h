// Command lines of the programs: how their help shows values, limits and defaults.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>

namespace tessera::command_line {

// From `least` to `most`, both of them allowed; the help says so in words.
template <class Number>
CLI::Validator between(Number least, Number most) {
  std::ostringstream limits;
  limits << least << " to " << most;
  const std::string words = limits.str();
  const auto check = [=](const std::string& text) -> std::string {
    Number number{};
    const bool fits = CLI::detail::lexical_cast(text, number) && number >= least && number <= most;
    return fits ? "" : text + " is not in the range " + words;  // nor is what is no number
  };
  return CLI::Validator(check, words);
}

// Bytes with or without a unit. kB and KiB mean the same 1024 bytes, as in the perf programs.
inline CLI::Validator byte_size() {
  const CLI::AsSizeValue unit(false);
  const auto convert = [unit](std::string& text) -> std::string {
    uint64_t number = 0;
    const char* end = text.data() + text.size();
    if (std::from_chars(text.data(), end, number).ec != std::errc())
      return text + ": bytes are a number from 0 to 18446744073709551615, perhaps with a unit";
    return unit(text);
  };
  return CLI::Validator(convert, "powers of 1024, as 64, 4K, 4KB, 1MiB");
}

// A variable of a shell that is not set is no name.
inline CLI::Validator not_empty() {
  const auto check = [](const std::string& text) -> std::string {
    return text.empty() ? "an empty text names nothing" : "";
  };
  return CLI::Validator(check, "");
}

// "--ranks N    how many ranks (1 to 4096; default 4)"
class HelpText : public CLI::Formatter {
 public:
  HelpText() { column_width(34); }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return {};  // a flag
    const std::string type = option->get_type_name();
    const std::string name = type.substr(0, type.find(':'));
    const bool many = option->get_expected_max() == CLI::detail::expected_max_vector_size;
    return " " + (name == "INT" || name == "UINT" || name == "FLOAT" ? "N" : name) +
           (many ? " ..." : "");
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::string details;
    const std::string type = option->get_type_name();
    if (const size_t colon = type.find(':'); colon != type.npos) details = type.substr(colon + 1);
    if (const std::string value = option->get_default_str(); !value.empty())
      details += (details.empty() ? "" : "; ") + ("default: " + value);
    std::string text = option->get_description();
    if (details.empty()) return text;
    return text.empty() ? details : text + " (" + details + ")";
  }
};

inline void explain_well(CLI::App& app) { app.formatter(std::make_shared<HelpText>()); }

}  // namespace tessera::command_line
