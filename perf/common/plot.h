// Draws time and bus bandwidth against message size as an SVG file: two log-log panels, ours and
// the baseline.
#pragma once

#include <string>
#include <vector>

namespace tessera::perf {

struct Series {
  std::string label;
  std::vector<double> x, y;  // positive values; others are left out
};

struct Panel {
  std::string title, x_label, y_label;
  std::vector<Series> series;
};

// The SVG document. Panels stand side by side.
std::string draw(const std::string& title, const std::vector<Panel>& panels);

}  // namespace tessera::perf
