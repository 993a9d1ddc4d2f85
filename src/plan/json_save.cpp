#include <iterator>

#include "plan/json.h"

namespace tessera {
namespace {

class Writer {
 public:
  std::string plan(const Plan& plan) {
    put("{{\"format\": \"tessera-plan\", \"version\": 1, \"name\": \"{}\", \"collective\": "
        "\"{}\",\n",
        escaped(plan.name), to_string(plan.collective));
    put(" \"ranks\": {}, \"root\": {}, \"chunks_per_block\": {}, \"scratch_depth\": {},\n",
        plan.ranks, plan.root, plan.chunks_per_block, plan.scratch_depth);
    put(" \"programs\": ");
    list(plan.programs, ",\n  ", [this](const RankProgram& p) { program(p); });
    put("}}\n");
    return std::move(out_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  template <class T, class Write>
  void list(const std::vector<T>& elements, const char* separator, Write write) {
    put("[");
    for (size_t i = 0; i < elements.size(); ++i) {
      if (i != 0) put("{}", separator);
      write(elements[i]);
    }
    put("]");
  }

  static std::string escaped(const std::string& name) {
    std::string text;
    for (const char c : name) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    return text;
  }

  void program(const RankProgram& program) {
    put("{{\"scratch_chunks\": {}, \"counters\": ", program.scratch_chunks);
    list(program.counters, ", ", [this](const CounterInfo& counter) {
      put("{{\"kind\": \"{}\", \"arrivals\": {}}}",
          counter.kind == CounterKind::kStep ? "step" : "external", counter.arrivals);
    });
    put(",\n   \"lanes\": ");
    list(program.lanes, ",\n    ", [this](const Lane& lane) {
      put("{{\"steps\": ");
      list(lane.steps, ",\n     ", [this](const Step& s) { step(s); });
      put("}}");
    });
    put("}}");
  }

  void refs(const char* name, const std::vector<Ref>& refs) {
    put(", \"{}\": ", name);
    list(refs, ", ", [this](const Ref& ref) {
      put("{{\"rank\": {}, \"buffer\": \"{}\", \"chunk\": {}}}", ref.rank, to_string(ref.buffer),
          ref.chunk);
    });
  }

  void step(const Step& step) {
    if (step.op == Op::kSync) {
      put("{{\"op\": \"sync\"");
    } else {
      const char* const op = step.op == Op::kCopy     ? "copy"
                             : step.op == Op::kReduce ? "reduce"
                                                      : "accumulate";
      put("{{\"op\": \"{}\", \"chunk\": {}, \"chunks\": {}", op, step.chunk, step.chunks);
      refs("dsts", step.dsts);
      refs("srcs", step.srcs);
    }
    put(", \"waits\": ");
    list(step.waits, ", ", [this](const Wait& wait) {
      put("{{\"counter\": {}, \"increment\": {}, \"lag\": {}}}", wait.counter, wait.increment,
          wait.lag);
    });
    put(", \"signals\": ");
    list(step.signals, ", ", [this](const Signal& signal) {
      put("{{\"rank\": {}, \"counter\": {}, \"increment\": {}}}", signal.rank, signal.counter,
          signal.increment);
    });
    put("}}");
  }

  std::string out_;
};

}  // namespace

std::string save_json(const Plan& plan) { return Writer().plan(plan); }

}  // namespace tessera
