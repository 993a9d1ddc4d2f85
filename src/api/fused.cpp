// tsrFused*: operators that a compute kernel drives tile by tile.
#include "api/fused.h"

#include <bit>
#include <cstring>

#include "api/errors.h"
#include "api/export.h"
#include "api/groups.h"
#include "api/handles.h"
#include "api/requests.h"
#include "api/streams.h"
#include "fusion/operator.h"
#include "plan/json.h"

namespace tessera::api {
namespace {

using FusedPtr = std::shared_ptr<Fused>;

Result<Collective> collective_of(tsrFusedCollective_t collective, const char* function) {
  switch (static_cast<int>(collective)) {
    case tsrFusedReduceScatter:
      return Collective::kReduceScatter;
    case tsrFusedAllReduce:
      return Collective::kAllReduce;
    case tsrFusedAllGather:
      return Collective::kAllGather;
    case tsrFusedAllToAll:
      return Collective::kAllToAll;
    default:
      return fail(Code::kInvalidArgument, "{}: collective {} is unknown", function,
                  static_cast<int>(collective));
  }
}

// Before any_order.
constexpr size_t kFirstConfigBytes = offsetof(tsrFusedConfig_t, any_order);

Result<FusedDescription> read_config(const tsrFusedConfig_t* config, const char* function) {
  if (config == nullptr) return fail(Code::kInvalidArgument, "{}: config is NULL", function);
  if (config->size < kFirstConfigBytes || config->size > sizeof(tsrFusedConfig_t)) {
    return fail(Code::kInvalidArgument,
                "{}: the config says {} bytes, this library's has {}; begin with "
                "TSR_FUSED_CONFIG_INITIALIZER",
                function, config->size, sizeof(tsrFusedConfig_t));
  }
  tsrFusedConfig_t known = TSR_FUSED_CONFIG_INITIALIZER;
  std::memcpy(&known, config, config->size);
  config = &known;
  Result<Collective> collective = collective_of(config->collective, function);
  if (!collective.ok()) return collective.status();
  const int map = config->map, type = config->type, op = config->op;
  if (map != tsrMapDirect && map != tsrMapRing)
    return fail(Code::kInvalidArgument, "{}: map {} is unknown", function, map);
  if (type < 0 || type >= ncclNumTypes)
    return fail(Code::kInvalidArgument, "{}: data type {} is unknown", function, type);
  if (op < 0 || op >= ncclNumOps)
    return fail(Code::kInvalidArgument, "{}: operation {} is not a built-in one", function, op);
  FusedDescription d;
  d.collective = collective.value();
  d.mapping = map == tsrMapRing ? Mapping::kRing : Mapping::kDirect;
  d.type = static_cast<DataType>(type);
  d.op = static_cast<ReduceOp>(op);
  d.column_major = config->column_major != 0;
  d.rows = config->rows;
  d.cols = config->cols;
  d.tile_rows = config->tile_rows;
  d.tile_cols = config->tile_cols;
  d.parts = config->parts;
  d.chunks = config->chunks;
  d.remote = config->remote != 0;
  d.any_order = config->any_order != 0;
  if (config->onto < tsrOntoOff || config->onto > tsrOntoRequire)
    return fail(Code::kInvalidArgument, "{}: onto {} is unknown", function, config->onto);
  d.onto_wish = static_cast<OntoWish>(config->onto);
  d.remote_chunks = config->remote_chunks;
  if (d.remote_chunks != 0 && d.chunks == 0) {
    return fail(Code::kInvalidArgument, "{}: remote_chunks name chunks, of which `chunks` says 0",
                function);
  }
  d.input_ld = config->input_ld;
  d.output_ld = config->output_ld;
  return d;
}

// A plan that cannot be read is the caller's mistake.
Result<Plan> brought(const std::string& text_or_file) {
  Result<Plan> plan = read_plan(text_or_file);
  if (plan.ok() || plan.status().code() == Code::kSystem) return plan;
  return Status(Code::kInvalidArgument, plan.status().message());
}

// `plan`: null for one of the library's.
Status create(const std::string* plan, const tsrFusedConfig_t* config, ncclComm_t comm,
              tsrFused_t* out, const char* function) {
  if (out == nullptr) return fail(Code::kInvalidArgument, "{}: op is NULL", function);
  if (in_group()) return fail(Code::kInvalidUsage, "{}: not inside a group", function);
  Result<FusedDescription> description = read_config(config, function);
  if (!description.ok()) return description.status();
  Result<CommLock> lock = CommLock::acquire(comm, function);
  if (!lock.ok()) return lock.status();
  CommState& state = *lock.value();
  if (Status s = check_usable(state, function); !s.ok()) return s;
  const Turn turn(&state.turns);  // after what streams still do on the communicator
  auto& ranks = static_cast<HostCommunicator&>(*state.comm);
  Result<std::unique_ptr<FusedOperator>> op =
      plan == nullptr ? FusedOperator::create(ranks, description.value())
                      : FusedOperator::create(ranks, description.value(), brought(*plan));
  if (!op.ok()) return op.status();
  *out = add_fused(std::make_shared<Fused>(
      Fused{comm, lock.value().shared(), state.comm, std::move(op).value()}));
  return {};
}

Status destroy(tsrFused_t handle) {
  Result<FusedPtr> fused = find_fused(handle, "tsrFusedDestroy");
  if (!fused.ok()) return fused.status();
  // A communicator that has ended needs no linked plan back.
  bool closed = false;
  if (std::optional<CommLock> lock = CommLock::find(fused.value()->comm)) {
    if (lock->shared() == fused.value()->state) {
      if (Status s = fused.value()->op->close(); !s.ok()) return s;
      closed = true;
    }
  }
  if (!closed) fused.value()->op->abandon();
  drop_fused(handle);
  return {};
}

// The first row of tiles of the staggered order is the one above this row of the matrix.
int64_t order_row(const FusedOperator& op, bool input) {
  const FusedDescription& d = op.description();
  const bool whole = (input ? op.geometry().input_rows() : op.geometry().output_rows()) == d.rows;
  if (!whole) return 0;
  const RowRange owned = op.geometry().owned(op.rank());
  return input && !op.onto() ? owned.begin : owned.end;
}

Status tiles(FusedOperator& op, bool input, void* matrix, tsrTiles* out) {
  if (out == nullptr) return fail(Code::kInvalidArgument, "tsrFusedInput: tiles is NULL");
  const FusedDescription& d = op.description();
  const Geometry& geometry = op.geometry();
  const TileGrid grid{input ? geometry.input_rows() : geometry.output_rows(), d.cols, d.tile_rows,
                      d.tile_cols};
  *out = {};
  out->op = &op;
  out->matrix = matrix;
  out->rows = grid.rows;
  out->cols = grid.cols;
  out->ld = op.ld(input);
  out->block_rows = geometry.block_rows();
  out->tile_rows = static_cast<int32_t>(d.tile_rows);
  out->tile_cols = static_cast<int32_t>(d.tile_cols);
  out->down = static_cast<int32_t>(grid.down());
  out->across = static_cast<int32_t>(grid.across());
  // Tiles count to the rank that owns their first row.
  out->start = static_cast<int32_t>(round_up_div(order_row(op, input), d.tile_rows));
  out->parts = input ? d.parts : 0;
  out->rank = op.rank();
  out->ranks = op.ranks();
  out->element_bytes = static_cast<int32_t>(size_of(d.type));
  out->column_major = d.column_major ? 1 : 0;
  out->onto = input && d.onto ? 1 : 0;
  if (!input || !d.remote) return {};
  const FusedOperator::RemoteSpace space = op.remote_space();
  out->remote_base = reinterpret_cast<char*>(space.first);
  out->remote_rank_bytes = space.rank_bytes;
  out->remote_slot_bytes = space.slot_bytes;
  out->chunks = d.chunks;
  out->chunk_rows = static_cast<int32_t>(geometry.block_rows() / d.chunks);
  out->remote_chunks = d.remote_chunks;
  out->ring = d.mapping == Mapping::kRing ? 1 : 0;
  return {};
}

Status launch(tsrFused_t handle, const void* input, void* output, cudaStream_t stream) {
  Result<FusedPtr> found = find_fused(handle, "tsrFusedLaunch");
  if (!found.ok()) return found.status();
  const FusedPtr fused = found.value();
  if (!is_stream_handle(stream)) return fused->op->launch(input, output);
  Result<std::shared_ptr<Stream>> thread = find_stream(stream);
  if (!thread.ok()) return thread.status();
  if (Status s = fused->op->announce(input, output); !s.ok()) return s;
  thread.value()->enqueue([fused, input, output] { return fused->op->run(input, output); });
  return {};
}

Status query(FusedOperator& op) {
  if (op.done()) return {};
  Status status = op.error();
  return status.ok() ? in_progress() : status;
}

Status set_budget(FusedOperator& op, int share, int every) {
  if (share < 0 || share > 100 || every < 1 || !std::has_single_bit(unsigned(every))) {
    return fail(Code::kInvalidArgument,
                "tsrFusedSetBudget: share {} is to be 0 to 100, every {} a power of two", share,
                every);
  }
  op.set_budget({share, every});
  return {};
}

Status estimate(FusedOperator& op, double produce_us, double consume_us, tsrFusedCosts_t* costs) {
  if (costs == nullptr) return fail(Code::kInvalidArgument, "tsrFusedEstimate: costs is NULL");
  const bool times = produce_us >= 0 && consume_us >= 0 && produce_us + consume_us < 1e15;
  if (!times) {
    return fail(Code::kInvalidArgument,
                "tsrFusedEstimate: kernels of {} and {} us: times are finite and not negative",
                produce_us, consume_us);
  }
  Result<FusedOperator::Forecast> forecast = op.forecast(produce_us, consume_us);
  if (!forecast.ok()) return forecast.status();
  const FusedOperator::Forecast& f = forecast.value();
  *costs = {f.fused_us, f.in_order_us,   f.collective_us,    f.unfused_us,   f.pays() ? 1 : 0,
            0,          f.operands.read, f.operands.written, f.merging.read, f.merging.written};
  return {};
}

template <class Body>
ncclResult_t with(tsrFused_t handle, const char* function, Body&& body) {
  return entry([&]() -> Status {
    Result<FusedPtr> fused = find_fused(handle, function);
    return fused.ok() ? body(*fused.value()->op) : fused.status();
  });
}

FusedOperator* operator_of(const tsrTiles* tiles) {
  return tiles == nullptr ? nullptr : static_cast<FusedOperator*>(tiles->op);
}

}  // namespace
}  // namespace tessera::api

using tessera::Code;
using tessera::FusedOperator;
using tessera::Status;
using tessera::api::entry;
using tessera::api::fail;
using tessera::api::with;

extern "C" TSR_VISIBLE ncclResult_t tsrFusedCreate(const tsrFusedConfig_t* config, ncclComm_t comm,
                                                   tsrFused_t* op) {
  return entry([&] { return tessera::api::create(nullptr, config, comm, op, "tsrFusedCreate"); });
}

extern "C" TSR_VISIBLE ncclResult_t tsrFusedCreateFromPlan(const char* plan,
                                                           const tsrFusedConfig_t* config,
                                                           ncclComm_t comm, tsrFused_t* op) {
  constexpr const char* kFunction = "tsrFusedCreateFromPlan";
  return entry([&]() -> Status {
    if (plan == nullptr) return fail(Code::kInvalidArgument, "{}: plan is NULL", kFunction);
    const std::string text_or_file(plan);
    return tessera::api::create(&text_or_file, config, comm, op, kFunction);
  });
}

extern "C" TSR_VISIBLE ncclResult_t tsrFusedDestroy(tsrFused_t op) {
  return entry([&] { return tessera::api::destroy(op); });
}

extern "C" TSR_VISIBLE ncclResult_t tsrFusedInput(tsrFused_t op, void* input, tsrTiles* tiles) {
  return with(op, "tsrFusedInput",
              [&](FusedOperator& o) { return tessera::api::tiles(o, true, input, tiles); });
}

extern "C" TSR_VISIBLE ncclResult_t tsrFusedOutput(tsrFused_t op, void* output, tsrTiles* tiles) {
  return with(op, "tsrFusedOutput",
              [&](FusedOperator& o) { return tessera::api::tiles(o, false, output, tiles); });
}

extern "C" TSR_VISIBLE ncclResult_t tsrFusedLaunch(tsrFused_t op, const void* input, void* output,
                                                   cudaStream_t stream) {
  return entry([&] { return tessera::api::launch(op, input, output, stream); });
}

extern "C" TSR_VISIBLE ncclResult_t tsrFusedWait(tsrFused_t op) {
  return with(op, "tsrFusedWait", [](FusedOperator& o) { return o.wait(); });
}

extern "C" TSR_VISIBLE ncclResult_t tsrFusedQuery(tsrFused_t op) {
  return with(op, "tsrFusedQuery", [](FusedOperator& o) { return tessera::api::query(o); });
}

extern "C" TSR_VISIBLE ncclResult_t tsrFusedSetBudget(tsrFused_t op, int share, int every) {
  return with(op, "tsrFusedSetBudget",
              [&](FusedOperator& o) { return tessera::api::set_budget(o, share, every); });
}

extern "C" TSR_VISIBLE ncclResult_t tsrFusedSetLines(tsrFused_t op, int64_t input_ld,
                                                     int64_t output_ld) {
  return with(op, "tsrFusedSetLines",
              [&](FusedOperator& o) { return o.set_lines(input_ld, output_ld); });
}

extern "C" TSR_VISIBLE ncclResult_t tsrFusedEstimate(tsrFused_t op, double produce_us,
                                                     double consume_us, tsrFusedCosts_t* costs) {
  return with(op, "tsrFusedEstimate", [&](FusedOperator& o) {
    return tessera::api::estimate(o, produce_us, consume_us, costs);
  });
}

extern "C" TSR_VISIBLE ncclResult_t tsrFusedExplain(tsrFused_t op, char* text, size_t bytes) {
  return with(op, "tsrFusedExplain", [&](FusedOperator& o) -> Status {
    if (text == nullptr || bytes == 0)
      return fail(Code::kInvalidArgument, "tsrFusedExplain: there is no room for a text");
    const std::string explanation = o.explain();
    text[explanation.copy(text, bytes - 1)] = '\0';
    return {};
  });
}

// What kernels call: no registry, no lock, no allocation while all is well.
extern "C" TSR_VISIBLE ncclResult_t tsrTileDone(const tsrTiles* tiles, int32_t row, int32_t col) {
  return entry([&]() -> Status {
    FusedOperator* const op = tessera::api::operator_of(tiles);
    if (op == nullptr) return fail(Code::kInvalidArgument, "tsrTileDone: tiles is NULL or empty");
    if (tiles->parts == 0)
      return fail(Code::kInvalidArgument, "tsrTileDone: these are tiles of the output");
    return op->tile_done(row, col);
  });
}

extern "C" TSR_VISIBLE ncclResult_t tsrTileOnto(const tsrTiles* tiles, int32_t row, int32_t col,
                                                void** where, int64_t* ld, int32_t* add) {
  return entry([&]() -> Status {
    FusedOperator* const op = tessera::api::operator_of(tiles);
    if (op == nullptr) return fail(Code::kInvalidArgument, "tsrTileOnto: tiles is NULL or empty");
    if (where == nullptr || ld == nullptr || add == nullptr)
      return fail(Code::kInvalidArgument, "tsrTileOnto: where, ld or add is NULL");
    if (tiles->parts == 0)
      return fail(Code::kInvalidArgument, "tsrTileOnto: these are tiles of the output");
    if (!op->onto()) {
      if (Status s = op->check_tile(row, col); !s.ok()) return s;
      *where = tsrTilePtr(tiles, row, col, ld);
      *add = 0;
      return {};
    }
    const tessera::Result<FusedOperator::TilePlace> place = op->tile_onto(row, col);
    if (!place.ok()) return place.status();
    *where = place.value().first;
    *ld = place.value().ld;
    *add = place.value().add ? 1 : 0;
    return {};
  });
}

extern "C" TSR_VISIBLE ncclResult_t tsrTileWait(const tsrTiles* tiles, int64_t first_row,
                                                int64_t rows, const void** where) {
  return entry([&]() -> Status {
    FusedOperator* const op = tessera::api::operator_of(tiles);
    if (op == nullptr) return fail(Code::kInvalidArgument, "tsrTileWait: tiles is NULL or empty");
    if (tiles->parts != 0)
      return fail(Code::kInvalidArgument, "tsrTileWait: these are tiles of the input");
    if (Status s = op->rows_wait(first_row, rows); !s.ok()) return s;
    if (where != nullptr) {
      const int64_t apart = tiles->column_major != 0 ? 1 : tiles->ld;
      *where = static_cast<const char*>(tiles->matrix) + first_row * apart * tiles->element_bytes;
    }
    return {};
  });
}
