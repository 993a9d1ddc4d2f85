#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <nlohmann/json.hpp>

#include "plan/json.h"
#include "plan/json_tree.h"
#include "plan/limits.h"
#include "plan/shape.h"

namespace tessera {
namespace {

using nlohmann::json;

// Where a value stands in the text. Links to its parent on the stack; put into words only for an
// error.
struct Path {
  const Path* parent = nullptr;
  const char* field = nullptr;  // nullptr: an element of an array
  size_t index = 0;

  Path at(const char* name) const { return {this, name, 0}; }
  Path at(size_t element) const { return {this, nullptr, element}; }

  std::string text() const {
    if (parent == nullptr) return "";
    const std::string before = parent->text();
    if (field == nullptr) return fmt::format("{}[{}]", before, index);
    return before.empty() ? field : fmt::format("{}.{}", before, field);
  }
};

std::string shown(const json& value) {
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

// Reads values; the first error is kept and everything after it fails.
class Reader {
 public:
  Status take_status() { return std::move(status_); }

  bool fail(const Path& path, const std::string& what) {
    const std::string place = path.text();
    status_ =
        Status(Code::kPlanInvalid, fmt::format("{}: {}", place.empty() ? "plan" : place, what));
    return false;
  }

  // An object that has exactly these fields.
  bool fields(const json& value, const Path& path, std::initializer_list<const char*> names) {
    if (!value.is_object()) return fail(path, fmt::format("{} is not an object", shown(value)));
    for (const char* name : names) {
      if (!value.contains(name)) return fail(path, fmt::format("field \"{}\" is missing", name));
    }
    if (value.size() == names.size()) return true;
    for (const auto& [key, unused] : value.items()) {
      const auto same = [&key = key](const char* name) { return key == name; };
      if (std::none_of(names.begin(), names.end(), same)) {
        return fail(path, fmt::format("unknown field {}", shown(json(key))));
      }
    }
    return true;
  }

  template <class T>
  bool whole(const json& object, const Path& path, const char* field, int64_t low, int64_t high,
             T& out) {
    const json& value = object[field];
    if (!value.is_number_integer())
      return fail(path.at(field), fmt::format("{} is not a whole number", shown(value)));
    const bool huge = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
    const int64_t number = huge ? 0 : value.get<int64_t>();
    if (huge || number < low || number > high) {
      return fail(path.at(field),
                  fmt::format("{} is out of range {}..{}", shown(value), low, high));
    }
    out = static_cast<T>(number);
    return true;
  }

  // One of `count` words, as the enumerator whose to_string it is.
  template <class T, class Words>
  bool word(const json& object, const Path& path, const char* field, int count, Words words,
            T& out) {
    const json& value = object[field];
    std::string known;
    for (int i = 0; i < count; ++i) {
      const char* name = words(static_cast<T>(i));
      if (value.is_string() && value.get_ref<const std::string&>() == name) {
        out = static_cast<T>(i);
        return true;
      }
      known += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", name);
    }
    return fail(path.at(field), fmt::format("{} is none of {}", shown(value), known));
  }

  bool array(const json& value, const Path& path, size_t cap) {
    if (!value.is_array()) return fail(path, fmt::format("{} is not an array", shown(value)));
    if (value.size() <= cap) return true;
    return fail(path, fmt::format("{} elements; {} are allowed", value.size(), cap));
  }

 private:
  Status status_;
};

const char* op_word(Op op) {
  switch (op) {
    case Op::kCopy:
      return "copy";
    case Op::kReduce:
      return "reduce";
    case Op::kSync:
      return "sync";
    case Op::kAccumulate:
      return "accumulate";
  }
  return "unknown";
}

class Loader {
 public:
  Result<Plan> load(const json& root) {
    if (head(root) && programs(root["programs"], Path{}.at("programs"))) return std::move(plan_);
    return in_.take_status();
  }

 private:
  bool head(const json& root) {
    const Path path;
    std::string format;
    int version = 0;
    if (!in_.fields(root, path,
                    {"format", "version", "name", "collective", "ranks", "root", "chunks_per_block",
                     "scratch_depth", "programs"})) {
      return false;
    }
    if (root["format"] != "tessera-plan") {
      return in_.fail(path.at("format"), shown(root["format"]) + " is not \"tessera-plan\"");
    }
    return in_.whole(root, path, "version", 1, 1, version) && name(root, path) &&
           in_.word(
               root, path, "collective", kCollectives, [](Collective c) { return to_string(c); },
               plan_.collective) &&
           in_.whole(root, path, "ranks", 1, kMaxRanks, plan_.ranks) && root_rank(root, path) &&
           in_.whole(root, path, "chunks_per_block", 1, kMaxChunksPerBlock,
                     plan_.chunks_per_block) &&
           in_.whole(root, path, "scratch_depth", 1, kMaxScratchDepth, plan_.scratch_depth);
  }

  bool name(const json& root, const Path& path) {
    const json& value = root["name"];
    if (!value.is_string())
      return in_.fail(path.at("name"), fmt::format("{} is not a string", shown(value)));
    plan_.name = value.get_ref<const std::string&>();
    if (is_plan_name(plan_.name)) return true;
    return in_.fail(path.at("name"),
                    fmt::format("{} is not a name of at most {} printable ASCII characters",
                                shown(value), kMaxNameBytes));
  }

  bool root_rank(const json& root, const Path& path) {
    const bool rooted = has_root(plan_.collective);
    return in_.whole(root, path, "root", rooted ? 0 : -1, rooted ? plan_.ranks - 1 : -1,
                     plan_.root);
  }

  // Sizes of all ranks first, since steps refer to those of peers.
  bool programs(const json& value, const Path& path) {
    if (!in_.array(value, path, kMaxRanks)) return false;
    if (value.size() != static_cast<size_t>(plan_.ranks)) {
      return in_.fail(path, fmt::format("{} programs for {} ranks", value.size(), plan_.ranks));
    }
    plan_.programs.resize(value.size());
    for (size_t rank = 0; rank < value.size(); ++rank) {
      const Path at = path.at(rank);
      if (!in_.fields(value[rank], at, {"scratch_chunks", "counters", "lanes"})) return false;
      if (!in_.whole(value[rank], at, "scratch_chunks", 0, kMaxScratchChunks,
                     plan_.programs[rank].scratch_chunks) ||
          !counters(value[rank]["counters"], at.at("counters"), plan_.programs[rank])) {
        return false;
      }
    }
    for (size_t rank = 0; rank < value.size(); ++rank) {
      const Path at = path.at(rank);
      if (!lanes(value[rank]["lanes"], at.at("lanes"), static_cast<int>(rank))) return false;
    }
    return true;
  }

  bool counters(const json& value, const Path& path, RankProgram& program) {
    if (!in_.array(value, path, kMaxCounters)) return false;
    for (size_t c = 0; c < value.size(); ++c) {
      const Path at = path.at(c);
      CounterInfo& counter = program.counters.emplace_back();
      const auto kind_word = [](CounterKind kind) {
        return kind == CounterKind::kStep ? "step" : "external";
      };
      if (!in_.fields(value[c], at, {"kind", "arrivals"}) ||
          !in_.word(value[c], at, "kind", 2, kind_word, counter.kind)) {
        return false;
      }
      const bool external = counter.kind == CounterKind::kExternal;
      if (!in_.whole(value[c], at, "arrivals", external ? 1 : 0, external ? kMaxIncrement : 0,
                     counter.arrivals)) {
        return false;
      }
    }
    return true;
  }

  bool lanes(const json& value, const Path& path, int rank) {
    if (!in_.array(value, path, kMaxLanes)) return false;
    for (size_t l = 0; l < value.size(); ++l) {
      const Path lane = path.at(l);
      if (!in_.fields(value[l], lane, {"steps"})) return false;
      const json& list = value[l]["steps"];
      const Path at = lane.at("steps");
      if (!in_.array(list, at, kMaxSteps)) return false;
      std::vector<Step>& steps =
          plan_.programs[static_cast<size_t>(rank)].lanes.emplace_back().steps;
      steps.resize(list.size());
      for (size_t s = 0; s < steps.size(); ++s) {
        if (!step(list[s], at.at(s), rank, steps[s])) return false;
      }
    }
    return true;
  }

  bool step(const json& value, const Path& path, int rank, Step& step) {
    if (!value.is_object() || !value.contains("op")) return in_.fields(value, path, {"op"});
    if (!in_.word(value, path, "op", 4, op_word, step.op)) return false;
    if (step.op == Op::kSync) {
      if (!in_.fields(value, path, {"op", "waits", "signals"})) return false;
    } else if (!in_.fields(value, path,
                           {"op", "chunk", "chunks", "dsts", "srcs", "waits", "signals"}) ||
               !in_.whole(value, path, "chunk", 0, plan_.chunks_per_block - 1, step.chunk) ||
               !in_.whole(value, path, "chunks", 1, INT32_MAX, step.chunks) ||
               !refs(value["dsts"], path.at("dsts"), step.chunks, step.dsts) ||
               !refs(value["srcs"], path.at("srcs"), step.chunks, step.srcs)) {
      return false;
    }
    return waits(value["waits"], path.at("waits"), rank, step.waits) &&
           signals(value["signals"], path.at("signals"), step.signals);
  }

  int size_of_buffer(const Ref& ref) const {
    const auto blocks = ref.buffer == Buffer::kInput ? input_blocks : output_blocks;
    if (ref.buffer == Buffer::kScratch) {
      return plan_.programs[static_cast<size_t>(ref.rank)].scratch_chunks;
    }
    return blocks(plan_.collective, plan_.ranks, plan_.root, ref.rank) * plan_.chunks_per_block;
  }

  bool refs(const json& value, const Path& path, int chunks, std::vector<Ref>& out) {
    if (!in_.array(value, path, kMaxOperands)) return false;
    out.resize(value.size());
    for (size_t i = 0; i < out.size(); ++i) {
      const Path at = path.at(i);
      Ref& ref = out[i];
      if (!in_.fields(value[i], at, {"rank", "buffer", "chunk"}) ||
          !in_.whole(value[i], at, "rank", 0, plan_.ranks - 1, ref.rank) ||
          !in_.word(
              value[i], at, "buffer", 3, [](Buffer b) { return to_string(b); }, ref.buffer)) {
        return false;
      }
      const int size = size_of_buffer(ref);
      if (chunks > size) {
        return in_.fail(at, fmt::format("a run of {} chunks, but the {} of rank {} has {}", chunks,
                                        to_string(ref.buffer), ref.rank, size));
      }
      if (!in_.whole(value[i], at, "chunk", 0, size - chunks, ref.chunk)) return false;
    }
    return true;
  }

  bool waits(const json& value, const Path& path, int rank, std::vector<Wait>& out) {
    if (!in_.array(value, path, kMaxOperands)) return false;
    out.resize(value.size());
    for (size_t i = 0; i < out.size(); ++i) {
      const Path at = path.at(i);
      if (!in_.fields(value[i], at, {"counter", "increment", "lag"}) ||
          !counter_id(value[i], at, rank, out[i].counter) ||
          !in_.whole(value[i], at, "increment", 1, kMaxIncrement, out[i].increment) ||
          !in_.whole(value[i], at, "lag", 0, kMaxLag, out[i].lag)) {
        return false;
      }
    }
    return true;
  }

  bool signals(const json& value, const Path& path, std::vector<Signal>& out) {
    if (!in_.array(value, path, kMaxOperands)) return false;
    out.resize(value.size());
    for (size_t i = 0; i < out.size(); ++i) {
      const Path at = path.at(i);
      if (!in_.fields(value[i], at, {"rank", "counter", "increment"}) ||
          !in_.whole(value[i], at, "rank", 0, plan_.ranks - 1, out[i].rank) ||
          !counter_id(value[i], at, out[i].rank, out[i].counter) ||
          !in_.whole(value[i], at, "increment", 1, kMaxIncrement, out[i].increment)) {
        return false;
      }
    }
    return true;
  }

  bool counter_id(const json& object, const Path& path, int rank, int& out) {
    const size_t counters = plan_.programs[static_cast<size_t>(rank)].counters.size();
    if (counters == 0)
      return in_.fail(path.at("counter"), fmt::format("rank {} has no counters", rank));
    return in_.whole(object, path, "counter", 0, static_cast<int64_t>(counters) - 1, out);
  }

  Reader in_;
  Plan plan_;
};

}  // namespace

Result<Plan> load_json(std::string_view text) {
  if (text.size() > kMaxPlanText) {
    return Status::error(Code::kPlanInvalid, "plan text: {} bytes; {} are allowed", text.size(),
                         kMaxPlanText);
  }
  try {
    Result<json> root = parse_json(text);
    if (!root.ok()) return root.status();
    return Loader().load(root.value());
  } catch (const std::bad_alloc&) {
    return Status(Code::kSystem, "plan text: not enough memory to load it");
  }
}

}  // namespace tessera
