#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/markup.h"
#include "simulator/critical_path.h"
#include "simulator/timeline.h"

namespace tessera::simulator {
namespace {

constexpr int kLeft = 210, kTop = 56, kRow = 18, kBar = 13, kWidth = 1100;
constexpr double kLabelled = 46;  // pixels of a bar that can hold its name
constexpr double kTicks = 8;      // about

struct Colour {
  const char* step;
  const char* fill;
};
constexpr std::array kColours = {
    Colour{"copy", "#8fb8de"},   Colour{"put", "#2f7fc1"},        Colour{"get", "#52a7a0"},
    Colour{"reduce", "#f0b35a"}, Colour{"put-reduce", "#d97b29"}, Colour{"get-reduce", "#b8862d"},
    Colour{"signal", "#c9a0dc"}, Colour{"wait", "#bbbbbb"},       Colour{"sync", "#999999"},
};
constexpr const char* kLinkColour = "#5b8c5a";

const char* colour_of(const char* step) {
  for (const Colour& colour : kColours) {
    if (std::strcmp(colour.step, step) == 0) return colour.fill;
  }
  return "#000000";
}

// 1, 2 or 5 times a power of ten, so that about kTicks fit.
double tick_of(double span) {
  const double rough = span / kTicks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

class Drawing {
 public:
  Drawing(const Timeline& timeline, const Source& source, const topology::Graph& graph,
          const SvgLimits& limits)
      : timeline_(timeline), source_(source), graph_(graph), limits_(limits) {
    for (const StepRecord& record : timeline.steps) end_ = std::max(end_, record.end);
    if (end_ <= 0) end_ = 1;
    lanes_ = std::min(limits.lanes, timeline.lanes.size());
    choose_links();
  }

  std::string draw() {
    const int height = y_of(lanes_ + links_.size()) + 40;
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" "
        "fill=\"white\"/>\n",
        kLeft + kWidth + 30, height);
    put("<text x=\"10\" y=\"18\" font-size=\"14\">{} on {} ranks: {:.3f} us</text>\n",
        escape_markup(source_.name()), source_.ranks(), end_);
    legend();
    axis();
    lanes();
    for (size_t row = 0; row < links_.size(); ++row) link(row);
    note(height);
    put("</svg>\n");
    return std::move(out_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  static int y_of(size_t row) { return kTop + static_cast<int>(row) * kRow; }
  double x_of(double us) const { return kLeft + us / end_ * kWidth; }

  // Those that carried most, in the order of the graph.
  void choose_links() {
    std::vector<double> carried(graph_.links.size()), rate(graph_.links.size()),
        since(graph_.links.size());
    for (const LinkSample& sample : timeline_.links) {
      carried[sample.link] += rate[sample.link] * (sample.time - since[sample.link]);
      rate[sample.link] = sample.gbs;
      since[sample.link] = sample.time;
    }
    for (uint32_t link = 0; link < carried.size(); ++link) {
      if (carried[link] > 0) links_.push_back(link);
    }
    used_links_ = links_.size();
    if (links_.size() <= limits_.links) return;
    std::stable_sort(links_.begin(), links_.end(),
                     [&](uint32_t a, uint32_t b) { return carried[a] > carried[b]; });
    links_.resize(limits_.links);
    std::sort(links_.begin(), links_.end());
  }

  void legend() {
    double x = kLeft;
    for (const Colour& colour : kColours) {
      put("<rect x=\"{:.0f}\" y=\"26\" width=\"10\" height=\"10\" fill=\"{}\"/>"
          "<text x=\"{:.0f}\" y=\"35\">{}</text>\n",
          x, colour.fill, x + 14, colour.step);
      x += 30 + 7 * static_cast<double>(std::strlen(colour.step));
    }
    put("<rect x=\"{:.0f}\" y=\"26\" width=\"10\" height=\"10\" fill=\"{}\"/>"
        "<text x=\"{:.0f}\" y=\"35\">link in use</text>\n",
        x, kLinkColour, x + 14);
  }

  void axis() {
    const int bottom = y_of(lanes_ + links_.size());
    const double tick = tick_of(end_);
    for (int i = 0; i * tick <= end_ * (1 + 1e-9); ++i) {
      const double x = x_of(i * tick);
      put("<line x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\" stroke=\"#dddddd\"/>"
          "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g} us</text>\n",
          x, kTop - 4, x, bottom + 4, x, bottom + 16, i * tick);
    }
  }

  void label(size_t row, const std::string& text) {
    put("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kLeft - 8, y_of(row) + 11,
        escape_markup(text));
  }

  void lanes() {
    for (size_t row = 0; row < lanes_; ++row) {
      label(row,
            fmt::format("rank {} lane {}", timeline_.lanes[row].rank, timeline_.lanes[row].lane));
    }
    for (const StepRecord& record : timeline_.steps) {
      if (record.lane >= lanes_) continue;
      if (bars_++ >= limits_.bars) continue;
      bar(record);
    }
  }

  void bar(const StepRecord& record) {
    const LaneOf& lane = timeline_.lanes[record.lane];
    const char* name = source_.step(lane.rank, lane.lane, record.step).name;
    const double x = x_of(record.begin);
    const double width = std::max(0.5, x_of(record.end) - x);
    const int y = y_of(record.lane);
    put("<rect class=\"step\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" "
        "stroke=\"white\" stroke-width=\"0.3\"><title>{}: pass {}, step {}, {:.3f} to {:.3f} "
        "us</title></rect>\n",
        x, y, width, kBar, colour_of(name),
        escape_markup(source_.describe(lane.rank, lane.lane, record.step)), record.pass,
        record.step, record.begin, record.end);
    if (width >= kLabelled) {
      put("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\" font-size=\"9\">{}</text>\n",
          x + width / 2, y + 10, name);
    }
  }

  void link(size_t index) {
    const uint32_t link = links_[index];
    const size_t row = lanes_ + index;
    label(row, link_name(graph_, static_cast<int>(link)));
    const double full = graph_.links[link].bandwidth;
    double rate = 0, since = 0;
    const auto filled = [&](double until) {
      if (rate <= 0 || until <= since || bars_++ >= limits_.bars) return;
      const double height = kBar * std::min(1.0, rate / full);
      put("<rect class=\"link\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
          "fill=\"{}\"><title>{:.2f} of {:.2f} GB/s</title></rect>\n",
          x_of(since), y_of(row) + kBar - height, std::max(0.3, x_of(until) - x_of(since)), height,
          kLinkColour, rate, full);
    };
    for (const LinkSample& sample : timeline_.links) {
      if (sample.link != link) continue;
      filled(sample.time);
      rate = sample.gbs;
      since = sample.time;
    }
    filled(end_);
  }

  void note(int height) {
    std::string text;
    if (lanes_ < timeline_.lanes.size())
      text += fmt::format("{} of {} lanes are shown. ", lanes_, timeline_.lanes.size());
    if (links_.size() < used_links_)
      text += fmt::format("{} of {} links in use are shown. ", links_.size(), used_links_);
    if (bars_ > limits_.bars) text += fmt::format("{} of {} bars are shown.", limits_.bars, bars_);
    if (!text.empty())
      put("<text x=\"{}\" y=\"{}\" fill=\"#aa3333\">{}</text>\n", kLeft, height - 6, text);
  }

  const Timeline& timeline_;
  const Source& source_;
  const topology::Graph& graph_;
  const SvgLimits limits_;
  double end_ = 0;
  size_t lanes_ = 0, bars_ = 0, used_links_ = 0;
  std::vector<uint32_t> links_;
  std::string out_;
};

}  // namespace

std::string to_svg(const Timeline& timeline, const Source& source, const topology::Graph& graph,
                   const SvgLimits& limits) {
  return Drawing(timeline, source, graph, limits).draw();
}

}  // namespace tessera::simulator
