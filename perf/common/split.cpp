#include <cctype>
#include <cstdlib>
#include <string>

#include "common/world.h"

namespace tessera::perf {
namespace {

// "MOD 4", "%4", "DIV8", "and 0x3": an operator, then a number.
bool apply(const std::string& text, int process, int* color) {
  size_t at = text.find_first_not_of(" \t");
  if (at == std::string::npos) return false;
  std::string op;
  while (at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])) != 0) {
    op += static_cast<char>(std::toupper(static_cast<unsigned char>(text[at++])));
  }
  if (op.empty()) op = text[at++];
  char* end = nullptr;
  const std::string rest = text.substr(at);
  const long number = std::strtol(rest.c_str(), &end, 0);
  if (end == rest.c_str() || end[0] != '\0') return false;
  const bool divides = op == "MOD" || op == "%" || op == "DIV" || op == "/";
  if (divides && number <= 0) return false;
  if (op == "AND" || op == "&")
    *color = static_cast<int>(process & number);
  else if (op == "OR" || op == "|")
    *color = static_cast<int>(process | number);
  else if (op == "MOD" || op == "%")
    *color = static_cast<int>(process % number);
  else if (op == "DIV" || op == "/")
    *color = static_cast<int>(process / number);
  else
    return false;
  return true;
}

}  // namespace

bool split_color(int process, int* color) {
  if (const char* split = std::getenv("NCCL_TESTS_SPLIT"); split != nullptr && *split != '\0') {
    return apply(split, process, color);
  }
  *color = 0;
  const char* mask = std::getenv("NCCL_TESTS_SPLIT_MASK");
  if (mask == nullptr || *mask == '\0') return true;
  char* end = nullptr;
  const unsigned long bits = std::strtoul(mask, &end, 16);
  if (*end != '\0') return false;
  *color = static_cast<int>(static_cast<unsigned long>(process) & bits);
  return true;
}

}  // namespace tessera::perf
