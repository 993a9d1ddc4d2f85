#include "simulator/timeline.h"

#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "simulator/critical_path.h"

namespace tessera::simulator {
namespace {

// Events one by one, as text: a tree of all of them would take many times their room.
class TraceWriter {
 public:
  TraceWriter() : out_("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [") {}

  void add(const nlohmann::json& event) {
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
    out_ += event.dump();
  }
  // ph "M": names of processes and threads.
  void name(const char* what, int process, int thread, const std::string& text) {
    add({{"ph", "M"},
         {"name", what},
         {"pid", process},
         {"tid", thread},
         {"args", {{"name", text}}}});
  }
  std::string done() && { return std::move(out_) + "\n]}\n"; }

 private:
  std::string out_;
  bool first_ = true;
};

}  // namespace

std::string to_trace_json(const Timeline& timeline, const Source& source,
                          const topology::Graph& graph) {
  TraceWriter writer;
  std::set<int> named;
  for (const LaneOf& lane : timeline.lanes) {
    if (named.insert(lane.rank).second)
      writer.name("process_name", lane.rank, 0, fmt::format("rank {}", lane.rank));
    writer.name("thread_name", lane.rank, lane.lane, fmt::format("lane {}", lane.lane));
  }
  for (const StepRecord& record : timeline.steps) {
    const LaneOf& lane = timeline.lanes[record.lane];
    writer.add({{"ph", "X"},
                {"name", source.step(lane.rank, lane.lane, record.step).name},
                {"pid", lane.rank},
                {"tid", lane.lane},
                {"ts", record.begin},
                {"dur", record.end - record.begin},
                {"args",
                 {{"step", record.step},
                  {"pass", record.pass},
                  {"what", source.describe(lane.rank, lane.lane, record.step)}}}});
  }
  const int links = source.ranks();  // the process after the last rank's
  if (!timeline.links.empty()) writer.name("process_name", links, 0, "links, GB/s");
  for (const LinkSample& sample : timeline.links) {
    writer.add({{"ph", "C"},
                {"name", link_name(graph, static_cast<int>(sample.link))},
                {"pid", links},
                {"tid", 0},
                {"ts", sample.time},
                {"args", {{"GB/s", sample.gbs}}}});
  }
  return std::move(writer).done();
}

}  // namespace tessera::simulator
