// The timeline: walks one pass with simple costs, then draws what the walk found.
#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

#include "base/markup.h"
#include "plan/printer.h"

namespace tessera {
namespace {

constexpr size_t kMostSteps = 20000;
constexpr int kRowHeight = 34;
constexpr int kBoxHeight = 22;
constexpr int kLeft = 110;
constexpr int kTop = 40;
constexpr double kMinWidth = 12;     // of the narrowest box, in pixels
constexpr double kMinLabelled = 60;  // of the narrowest box that can hold its name
constexpr double kMostPixels = 30000;

struct Box {
  size_t row = 0;
  double start = 0, end = 0;
  const Step* step = nullptr;
  int rank = 0;
};

struct Arrow {
  size_t from = 0, to = 0;  // boxes
};

// A counter's adds of one pass, in the order of the walk.
struct CounterTrack {
  struct Add {
    size_t box = 0;
    double arrives = 0;
    uint64_t sum = 0;
  };
  std::vector<Add> adds;
  std::vector<size_t> sleepers;  // rows
};

class Timeline {
 public:
  Timeline(const Plan& plan, const TimelineCosts& costs) : plan_(plan), costs_(costs) {
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const RankProgram& program = plan.programs[static_cast<size_t>(rank)];
      tracks_.emplace_back(program.counters.size());
      for (size_t lane = 0; lane < program.lanes.size(); ++lane) {
        rows_.push_back({rank, lane, &program.lanes[lane].steps, 0, 0});
        total_ += program.lanes[lane].steps.size();
      }
    }
    for (size_t row = 0; row < rows_.size(); ++row) ready_.push_back(row);
    while (!ready_.empty()) {
      const size_t row = ready_.front();
      ready_.pop_front();
      advance(row);
    }
  }

  std::string draw() const;

 private:
  struct Row {
    int rank = 0;
    size_t lane = 0;
    const std::vector<Step>* steps = nullptr;
    size_t next = 0;
    double time = 0;
  };

  void advance(size_t r) {
    Row& row = rows_[r];
    while (row.next < row.steps->size()) {
      const Step& step = (*row.steps)[row.next];
      double start = row.time;
      std::vector<size_t> after;
      for (const Wait& wait : step.waits) {
        if (!pass(r, wait, start, after)) return;
      }
      const size_t box = boxes_.size();
      row.time = start + duration(step, row.rank);
      boxes_.push_back({r, start, row.time, &step, row.rank});
      for (const size_t from : after) arrows_.push_back({from, box});
      ++row.next;
      for (const Signal& signal : step.signals) raise(box, signal);
    }
  }

  // Whether the wait is met; moves `start` to when, and notes which steps it was for.
  bool pass(size_t r, const Wait& wait, double& start, std::vector<size_t>& after) {
    const RankProgram& program = plan_.programs[static_cast<size_t>(rows_[r].rank)];
    const auto c = static_cast<size_t>(wait.counter);
    if (wait.lag > 0 || program.counters[c].kind == CounterKind::kExternal) return true;
    CounterTrack& track = tracks_[static_cast<size_t>(rows_[r].rank)][c];
    if (track.adds.empty() || track.adds.back().sum < wait.increment) {
      track.sleepers.push_back(r);
      return false;
    }
    for (const CounterTrack::Add& add : track.adds) {
      start = std::max(start, add.arrives);
      if (boxes_[add.box].row != r) after.push_back(add.box);
      if (add.sum >= wait.increment) break;
    }
    return true;
  }

  double duration(const Step& step, int rank) const {
    double cost = costs_.overhead;
    for (const std::vector<Ref>* refs : {&step.dsts, &step.srcs}) {
      for (const Ref& ref : *refs) {
        cost += (ref.rank == rank ? costs_.per_chunk : costs_.per_remote_chunk) * step.chunks;
      }
    }
    return cost;
  }

  void raise(size_t box, const Signal& signal) {
    CounterTrack& track =
        tracks_[static_cast<size_t>(signal.rank)][static_cast<size_t>(signal.counter)];
    const double latency = signal.rank == boxes_[box].rank ? 0 : costs_.latency;
    const uint64_t sum = track.adds.empty() ? 0 : track.adds.back().sum;
    track.adds.push_back({box, boxes_[box].end + latency, sum + signal.increment});
    ready_.insert(ready_.end(), track.sleepers.begin(), track.sleepers.end());
    track.sleepers.clear();
  }

  const Plan& plan_;
  TimelineCosts costs_;
  std::vector<std::vector<CounterTrack>> tracks_;
  std::vector<Row> rows_;
  std::vector<Box> boxes_;
  std::vector<Arrow> arrows_;
  std::deque<size_t> ready_;
  size_t total_ = 0;
};

const char* colour(const Box& box) {
  const std::string_view name = step_name(*box.step, box.rank);
  if (box.step->op == Op::kSync) return "#d9d9d9";
  if (box.step->op == Op::kAccumulate) return "#f4a261";
  if (box.step->op == Op::kReduce) return name == "reduce" ? "#f4a261" : "#e76f51";
  return name == "copy" ? "#a8dadc" : "#5b9bd5";
}

// Writes what a timeline holds; times become pixels.
class Drawing {
 public:
  Drawing(double end, double narrowest, size_t rows)
      : scale_(std::min(kMinWidth / narrowest, kMostPixels / end)) {
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n",
        x(end) + 20, y(rows) + 10);
    put("<defs><marker id=\"tip\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" markerWidth=\"6\" "
        "markerHeight=\"6\" orient=\"auto\"><path d=\"M0,0 L6,3 L0,6 z\" "
        "fill=\"#555\"/></marker></defs>\n");
  }

  void caption(const std::string& text) {
    put("<text x=\"10\" y=\"20\" font-size=\"14\">{}</text>\n", escape_markup(text));
  }

  void row(size_t row, int rank, size_t lane) {
    put("<text x=\"10\" y=\"{}\">rank {} lane {}</text>\n", y(row) + 16, rank, lane);
  }

  void box(const Box& box) {
    const char* name = step_name(*box.step, box.rank);
    const double width = (box.end - box.start) * scale_;
    put("<g><title>{} {:.1f} to {:.1f}</title><rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" "
        "height=\"{}\" fill=\"{}\" stroke=\"#444\"/>",
        name, box.start, box.end, x(box.start), y(box.row), width, kBoxHeight, colour(box));
    if (width > kMinLabelled) {
      put("<text x=\"{:.1f}\" y=\"{}\">{}</text>", x(box.start) + 4, y(box.row) + 15, name);
    }
    put("</g>\n");
  }

  void arrow(const Box& from, const Box& to) {
    put("<line x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\" stroke=\"#555\" "
        "stroke-width=\"0.7\" marker-end=\"url(#tip)\"/>\n",
        x(from.end), y(from.row) + kBoxHeight / 2, x(to.start), y(to.row) + kBoxHeight / 2);
  }

  std::string finish() && {
    put("</svg>\n");
    return std::move(out_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  double x(double time) const { return kLeft + time * scale_; }
  static int y(size_t row) { return kTop + static_cast<int>(row) * kRowHeight; }

  double scale_;
  std::string out_;
};

std::string Timeline::draw() const {
  double end = 1;
  double narrowest = kMinWidth;
  for (const Box& box : boxes_) {
    end = std::max(end, box.end);
    narrowest = std::min(narrowest, box.end - box.start);
  }
  Drawing drawing(end, narrowest, rows_.size());
  std::string caption = fmt::format("{}: {} over {} rank(s), one pass", plan_.name,
                                    to_string(plan_.collective), plan_.ranks);
  if (boxes_.size() < total_)
    caption += fmt::format("; {} step(s) never run", total_ - boxes_.size());
  drawing.caption(caption);
  for (size_t r = 0; r < rows_.size(); ++r) drawing.row(r, rows_[r].rank, rows_[r].lane);
  for (const Box& box : boxes_) drawing.box(box);
  for (const Arrow& arrow : arrows_) drawing.arrow(boxes_[arrow.from], boxes_[arrow.to]);
  return std::move(drawing).finish();
}

}  // namespace

Result<std::string> to_svg(const Plan& plan, const TimelineCosts& costs) {
  size_t steps = 0;
  for (const RankProgram& program : plan.programs) {
    for (const Lane& lane : program.lanes) steps += lane.steps.size();
  }
  if (steps > kMostSteps) {
    return Status::error(
        Code::kInvalidArgument,
        "a picture shows at most {} steps, but plan \"{}\" has {}: use fewer ranks", kMostSteps,
        plan.name, steps);
  }
  return Timeline(plan, costs).draw();
}

}  // namespace tessera
