// A strict JSON reader: no duplicate keys, no deep nesting, no trailing text, errors with line and
// column. For json.cpp, and other files of the kind.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/status.h"

namespace tessera {

// `what` begins the messages.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view what = "plan text");

}  // namespace tessera
