#include "tools/plan_tool/fused.h"

#include <array>
#include <cstdint>
#include <limits>

#include "command_line/help.h"
#include "fusion/onto.h"
#include "fusion/plans.h"
#include "plan/limits.h"
#include "tools/common/names.h"

namespace tessera::tools {
namespace {

constexpr std::array kFusable = {Collective::kReduceScatter, Collective::kAllReduce,
                                 Collective::kAllGather, Collective::kAllToAll};

Result<DataType> type_named(const std::string& name) {
  std::string names;
  for (int t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    if (name == to_string(type)) return type;
    names += (names.empty() ? "" : ", ") + std::string(to_string(type));
  }
  return Status::error(Code::kInvalidArgument, "no data type is called \"{}\"; there are {}", name,
                       names);
}

}  // namespace

CLI::App* add_fused_command(CLI::App& app, FusedOptions& options) {
  CLI::App* command = app.add_subcommand(
      "fused",
      "Print the plan of a fused operator, as tsrFusedCreateFromPlan takes it with --json");
  FusedDescription& matrix = options.matrix;
  const auto lines = command_line::between<int64_t>(1, std::numeric_limits<int32_t>::max());
  command->add_option("collective", options.collective, "Such as reduce-scatter")->required();
  command->add_option("--ranks", options.ranks, "How many ranks")
      ->required()
      ->check(command_line::between(1, kMaxRanks));
  command->add_option("--rows", matrix.rows, "Of the matrix")->required()->check(lines);
  command->add_option("--cols", matrix.cols, "Of the matrix")->required()->check(lines);
  command->add_option("--tile-rows", matrix.tile_rows, "Of a tile")->required()->check(lines);
  command->add_option("--tile-cols", matrix.tile_cols, "Of a tile")->required()->check(lines);
  command->add_option("--chunks", matrix.chunks, "Chunks per rank")
      ->default_str("as many as the library would choose")
      ->check(command_line::between(1, 64));
  command->add_option("--map", options.map, "Who talks to whom")
      ->capture_default_str()
      ->check(CLI::IsMember({"direct", "ring"}).description("direct or ring"));
  command->add_flag("--any-order", matrix.any_order, "Add parts in the order in which they come");
  command->add_flag("--onto", options.onto, "Kernels of two ranks add onto each other's output");
  command->add_option("--type", options.type, "Of an element")->capture_default_str();
  CLI::Option* json = command->add_flag("--json", options.json, "Print the loadable JSON form");
  command->add_option("--svg", options.svg, "Draw the timeline into this file (- for stdout)")
      ->excludes(json);
  return command;
}

Result<Plan> fused_plan_of(const FusedOptions& options) {
  const Result<Collective> collective = collective_named(options.collective, kFusable);
  if (!collective.ok()) return collective.status();
  const Result<DataType> type = type_named(options.type);
  if (!type.ok()) return type.status();
  FusedDescription wish = options.matrix;
  wish.collective = collective.value();
  wish.mapping = options.map == "ring" ? Mapping::kRing : Mapping::kDirect;
  wish.type = type.value();
  const Result<FusedDescription> d = complete(wish, options.ranks, 0);
  if (!d.ok()) return d.status();
  FusedDescription matrix = d.value();
  if (options.onto) {
    if (const char* obstacle = Onto::obstacle(matrix, options.ranks)) {
      return Status::error(Code::kInvalidArgument, "tiles cannot be added onto peers: {}",
                           obstacle);
    }
    matrix.onto = true;
  }
  return fused_plan(shape_of(matrix, Geometry(matrix, options.ranks, 0), options.ranks));
}

}  // namespace tessera::tools
