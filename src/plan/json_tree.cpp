#include "plan/json_tree.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace tessera {
namespace {

using nlohmann::json;

constexpr size_t kMaxNesting = 16;
constexpr size_t kMaxShownText = 64;  // of a wrong key

class TreeBuilder : public nlohmann::json_sax<json> {
 public:
  bool null() override { return add(nullptr) != nullptr; }
  bool boolean(bool value) override { return add(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return add(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return add(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override {
    return add(value) != nullptr;
  }
  bool string(string_t& value) override { return add(std::move(value)) != nullptr; }
  bool binary(binary_t&) override { return false; }  // not in text
  bool start_object(size_t) override { return open(json::object()); }
  bool start_array(size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (open_.back()->contains(name)) {
      error_ = fmt::format("{}: the field occurs twice", path(name.substr(0, kMaxShownText)));
      return false;
    }
    key_ = std::move(name);
    return true;
  }

  bool parse_error(size_t, const std::string&, const json::exception& exception) override {
    const std::string text =
        exception.what();  // "[json.exception.parse_error.101] parse error at line ..."
    const size_t prefix = text.find("] ");
    error_ = prefix == std::string::npos ? text : text.substr(prefix + 2);
    return false;
  }

  json& root() { return root_; }
  const std::string& error() const { return error_; }

 private:
  json* add(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    keys_.back() = key_;
    json& slot = parent[key_];
    slot = std::move(value);
    return &slot;
  }

  bool open(json container) {
    if (open_.size() == kMaxNesting) {
      error_ = fmt::format("{}: nested deeper than {} levels", path(""), kMaxNesting);
      return false;
    }
    open_.push_back(add(std::move(container)));
    keys_.emplace_back();
    return true;
  }

  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  // Of the field `last` in the innermost open object.
  std::string path(const std::string& last) const {
    std::string text;
    for (size_t i = 0; i < open_.size(); ++i) {
      if (open_[i]->is_array()) {
        text += fmt::format("[{}]", open_[i]->size() - (open_[i]->empty() ? 0 : 1));
        continue;
      }
      const std::string& key = i + 1 == open_.size() ? last : keys_[i];
      if (key.empty()) continue;
      if (!text.empty()) text += '.';
      text += key.substr(0, kMaxShownText);
    }
    return text;
  }

  json root_;
  std::vector<json*>
      open_;  // containers not closed yet; only the innermost grows, so the others stay in place
  std::vector<std::string> keys_;  // the field last begun in each
  std::string key_;
  std::string error_;
};

}  // namespace

Result<json> parse_json(std::string_view text, std::string_view what) {
  TreeBuilder builder;
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    return Status::error(Code::kPlanInvalid, "{}: {}", what, builder.error());
  }
  return std::move(builder.root());
}

}  // namespace tessera
