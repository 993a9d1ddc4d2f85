#include "common/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tessera::perf {
namespace {

constexpr double kWidth = 560, kHeight = 400;                       // of a panel
constexpr double kLeft = 70, kRight = 20, kTop = 70, kBottom = 60;  // margins within it
constexpr const char* kColours[] = {"#1f6fb4", "#7db8e8", "#d1591a",
                                    "#f2a673", "#3a8f3a", "#8a5aa8"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

// A logarithmic axis: values from 10^low to 10^high between two positions.
struct Axis {
  double low, high, from, to;
  double operator()(double value) const {
    return from + (std::log10(value) - low) / (high - low) * (to - from);
  }
};

Axis fit(const Panel& panel, std::vector<double> Series::*values, double from, double to,
         bool decades) {
  double low = 1e300, high = 0;
  for (const Series& s : panel.series) {
    for (size_t i = 0; i < s.x.size(); ++i) {
      if (!(s.x[i] > 0) || !(s.y[i] > 0)) continue;
      low = std::min(low, (s.*values)[i]);
      high = std::max(high, (s.*values)[i]);
    }
  }
  if (high == 0) low = 1, high = 10;
  double a = std::log10(low), b = std::log10(high);
  if (decades) a = std::floor(a), b = std::ceil(b);
  if (b - a < 1e-9) a -= 0.5, b += 0.5;
  return {a, b, from, to};
}

std::string size_name(double bytes) {
  const char* units[] = {"", "K", "M", "G", "T"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit) bytes /= 1024;
  return fmt::format("{:g}{}", bytes, units[unit]);
}

std::string text_at(double x, double y, const char* style, const std::string& text) {
  return fmt::format("<text x='{:.1f}' y='{:.1f}' {}>{}</text>\n", x, y, style, escaped(text));
}

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  return fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' stroke='{}'/>\n", x1,
                     y1, x2, y2, colour);
}

std::string draw_axes(const Panel& panel, const Axis& x, const Axis& y) {
  std::string out;
  const double bottom = kHeight - kBottom, right = kWidth - kRight;
  int powers = 0;
  for (double v = 1; v <= std::pow(10, x.high) * 1.001; v *= 2)
    powers += v >= std::pow(10, x.low) * 0.999;
  const int every = std::max(1, (powers + 7) / 8);
  int index = 0;
  for (double v = 1; v <= std::pow(10, x.high) * 1.001; v *= 2) {
    if (v < std::pow(10, x.low) * 0.999 || index++ % every != 0) continue;
    out += line(x(v), kTop, x(v), bottom, "#e4e4e4");
    out += text_at(x(v), bottom + 16, "text-anchor='middle'", size_name(v));
  }
  for (int p = static_cast<int>(std::ceil(y.low)); p <= static_cast<int>(std::floor(y.high)); ++p) {
    const double at = y(std::pow(10, p));
    out += line(kLeft, at, right, at, "#e4e4e4");
    out += text_at(kLeft - 6, at + 4, "text-anchor='end'", fmt::format("{:g}", std::pow(10, p)));
  }
  out += fmt::format(
      "<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' fill='none' stroke='#888'/>\n",
      kLeft, kTop, right - kLeft, bottom - kTop);
  out += text_at((kLeft + right) / 2, kHeight - 22, "text-anchor='middle'", panel.x_label);
  out += fmt::format(
      "<text transform='translate(18 {:.1f}) rotate(-90)' text-anchor='middle'>{}</text>\n",
      (kTop + bottom) / 2, escaped(panel.y_label));
  out += text_at((kLeft + right) / 2, kTop - 14, "text-anchor='middle' font-weight='bold'",
                 panel.title);
  return out;
}

std::string draw_series(const Series& series, const char* colour, const Axis& x, const Axis& y) {
  std::string points, dots;
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (!(series.x[i] > 0) || !(series.y[i] > 0)) continue;
    const double px = x(series.x[i]), py = y(series.y[i]);
    points += fmt::format("{:.1f},{:.1f} ", px, py);
    dots += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='2.6' fill='{}'/>\n", px, py, colour);
  }
  return fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='1.8'/>\n", points,
                     colour) +
         dots;
}

// In the corner that the curves leave free: top left for rising ones.
std::string draw_legend(const Panel& panel) {
  const double height = 16.0 * static_cast<double>(panel.series.size()) + 8;
  std::string out = fmt::format(
      "<rect x='{:.1f}' y='{:.1f}' width='150' height='{:.1f}' fill='white' fill-opacity='0.85' "
      "stroke='#ccc'/>\n",
      kLeft + 8, kTop + 8, height);
  for (size_t i = 0; i < panel.series.size(); ++i) {
    const double y = kTop + 24 + 16.0 * static_cast<double>(i);
    const char* colour = kColours[i % std::size(kColours)];
    out += fmt::format(
        "<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' stroke='{}' stroke-width='3'/>\n",
        kLeft + 16, y - 4, kLeft + 36, y - 4, colour);
    out += text_at(kLeft + 42, y, "", panel.series[i].label);
  }
  return out;
}

}  // namespace

std::string draw(const std::string& title, const std::vector<Panel>& panels) {
  const double width = kWidth * static_cast<double>(panels.size());
  std::string out = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0:.0f}' height='{1:.0f}' viewBox='0 0 "
      "{0:.0f} {1:.0f}' "
      "font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' fill='white'/>\n",
      width, kHeight);
  out += text_at(width / 2, 26, "text-anchor='middle' font-size='16'", title);
  for (size_t p = 0; p < panels.size(); ++p) {
    const Axis x = fit(panels[p], &Series::x, kLeft + 8, kWidth - kRight - 8, false);
    const Axis y = fit(panels[p], &Series::y, kHeight - kBottom, kTop, true);
    out += fmt::format("<g transform='translate({:.0f} 0)'>\n", kWidth * static_cast<double>(p));
    out += draw_axes(panels[p], x, y);
    for (size_t s = 0; s < panels[p].series.size(); ++s) {
      out += draw_series(panels[p].series[s], kColours[s % std::size(kColours)], x, y);
    }
    out += draw_legend(panels[p]) + "</g>\n";
  }
  return out + "</svg>\n";
}

}  // namespace tessera::perf
