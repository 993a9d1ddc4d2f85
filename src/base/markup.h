// Text inside SVG and XML. Thread safety: a pure function.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// With '<', '>', '&' and '"' as entities: fit for content and for quoted attributes.
std::string escape_markup(std::string_view text);

}  // namespace tessera
