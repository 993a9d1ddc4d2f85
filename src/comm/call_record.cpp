#include "comm/call_record.h"

#include <fmt/format.h>

#include <bit>

namespace tessera {
namespace {

// Mixes one more value into a hash (the finaliser of splitmix64).
constexpr uint64_t mix(uint64_t hash, uint64_t value) {
  uint64_t x = hash ^ (value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2));
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

Collective collective_of(const CallRecord& record) {
  return static_cast<Collective>(record.collective);
}

bool is_eager(uint16_t way) {
  return way != 0 && static_cast<Protocol>((way - 1) % kProtocols) == Protocol::kLowLatency;
}

// Who runs eagerly knows it at once, others when they have met.
bool ways_differ(const CallRecord& a, const CallRecord& b) {
  if (a.way == 0 || b.way == 0) return is_eager(a.way) != is_eager(b.way);
  return a.way != b.way;
}

std::string describe_way(const CallRecord& record) {
  if (record.way == 0) return "something for which ranks meet first";
  const auto all = algorithms(collective_of(record));
  const size_t code = record.way - 1u;
  const size_t slot = code / kProtocols / all.size();
  return fmt::format("{}{}",
                     describe(Candidate{static_cast<Protocol>(code % kProtocols),
                                        &all[code / kProtocols % all.size()]}),
                     slot == 0 ? "" : fmt::format(" with slots below {} bytes", size_t{1} << slot));
}

}  // namespace

CallRecord next_record(const CallRecord& last, const Call& call) {
  CallRecord record;
  record.fingerprint = last.fingerprint;
  record.number = last.number;
  record.count = call.count;
  record.collective = static_cast<uint8_t>(call.collective);
  record.type = static_cast<uint8_t>(call.type);
  record.op = reduces(call.collective) ? static_cast<uint8_t>(call.op) : 0;
  record.root = static_cast<int16_t>(has_root(call.collective) ? call.root : -1);
  if (call.collective == Collective::kSendRecv)
    record.kind = static_cast<uint8_t>(call.receives ? CallKind::kReceive : CallKind::kSend);
  return repeated_record(record);
}

CallRecord repeated_record(const CallRecord& last) {
  CallRecord record = last;
  ++record.number;
  const uint64_t what = uint64_t{record.collective} | uint64_t{record.type} << 8 |
                        uint64_t{record.op} << 16 |
                        uint64_t{static_cast<uint32_t>(record.root)} << 32;
  record.fingerprint = mix(mix(record.fingerprint, what), record.count);
  return record.way == 0 ? record : with_way(record, record.way);
}

CallRecord with_way(const CallRecord& record, uint16_t way) {
  CallRecord known = record;
  known.way = way;
  known.fingerprint = mix(record.fingerprint, way);
  return known;
}

uint16_t way_of(const Candidate& candidate, const Choice& choice) {
  const auto all = algorithms(candidate.algorithm->collective);
  const auto which = static_cast<uint64_t>(candidate.algorithm - all.data());
  const auto slot = static_cast<uint64_t>(std::bit_width(choice.slot_bytes));
  return static_cast<uint16_t>(1 + (slot * all.size() + which) * kProtocols +
                               static_cast<uint64_t>(candidate.protocol));
}

std::string describe(const CallRecord& record) {
  const Collective collective = collective_of(record);
  if (collective == Collective::kSendRecv) {
    return fmt::format("{} {} (count {}, {})",
                       record.kind == static_cast<uint8_t>(CallKind::kSend) ? "send" : "receive",
                       record.number, record.count, to_string(static_cast<DataType>(record.type)));
  }
  std::string text = fmt::format("{} (call {}, count {}, {}", to_string(collective), record.number,
                                 record.count, to_string(static_cast<DataType>(record.type)));
  if (reduces(collective)) text += fmt::format(", {}", to_string(static_cast<ReduceOp>(record.op)));
  if (has_root(collective)) text += fmt::format(", root {}", record.root);
  return text + ")";
}

std::string difference(int rank_a, const CallRecord& a, int rank_b, const CallRecord& b) {
  const auto both = [&](const char* what, const auto& value_a, const auto& value_b) {
    return fmt::format("rank {} passes {} {}, rank {} passes {} {}", rank_a, what, value_a, rank_b,
                       what, value_b);
  };
  if (a.collective != b.collective) {
    return fmt::format("rank {} calls {}, rank {} calls {}", rank_a, describe(a), rank_b,
                       describe(b));
  }
  if (a.number != b.number) {
    return fmt::format("rank {} is at {}, rank {} is at {}", rank_a, describe(a), rank_b,
                       describe(b));
  }
  if (a.count != b.count) return both("count", a.count, b.count);
  if (a.type != b.type) {
    return both("type", to_string(static_cast<DataType>(a.type)),
                to_string(static_cast<DataType>(b.type)));
  }
  if (a.op != b.op) {
    return both("operation", to_string(static_cast<ReduceOp>(a.op)),
                to_string(static_cast<ReduceOp>(b.op)));
  }
  if (a.root != b.root) return both("root", a.root, b.root);
  if (ways_differ(a, b)) {
    return fmt::format(
        "rank {} runs {} as {}, rank {} as {}: their tuner plugins answer differently", rank_a,
        describe(a), describe_way(a), rank_b, describe_way(b));
  }
  return {};
}

std::string first_difference(int rank_a, const CallLog& a, int rank_b, const CallLog& b,
                             uint64_t number) {
  const uint64_t first = number > kLoggedCalls ? number - kLoggedCalls + 1 : 1;
  for (uint64_t n = first; n <= number; ++n) {
    const std::optional<CallRecord> record_a = a.read(n), record_b = b.read(n);
    if (!record_a || !record_b) continue;
    std::string text = difference(rank_a, *record_a, rank_b, *record_b);
    if (text.empty()) continue;
    if (n < number) text += fmt::format(" (in {}, {} calls ago)", describe(*record_a), number - n);
    return text;
  }
  return {};
}

}  // namespace tessera
