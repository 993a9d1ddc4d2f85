#include "api/settings.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>

#include "api/errors.h"

namespace tessera::api {
namespace {

constexpr unsigned kMagic = 0xcafebeef;
constexpr size_t kHeader = offsetof(ncclConfig_t, blocking);
constexpr int kUnset = NCCL_CONFIG_UNDEF_INT;
constexpr long long kAny = LLONG_MIN;

constexpr SettingsField int_field(const char* name, size_t offset, int since, int fallback,
                                  long long min, long long max, const char* env) {
  return {name, offset, FieldKind::kInt, since, fallback, min, max, env};
}
constexpr SettingsField text_field(const char* name, size_t offset, int since, const char* env) {
  return {name, offset, FieldKind::kText, since, 0, 0, 0, env};
}

// Fallback kUnset: chosen by the library.
constexpr SettingsField kFields[] = {
    int_field("blocking", offsetof(ncclConfig_t, blocking), 21400, 1, 0, 1, "NCCL_COMM_BLOCKING"),
    int_field("cgaClusterSize", offsetof(ncclConfig_t, cgaClusterSize), 21700, 4, 0, INT_MAX,
              "NCCL_CGA_CLUSTER_SIZE"),
    int_field("minCTAs", offsetof(ncclConfig_t, minCTAs), 21700, 1, 1, INT_MAX, "NCCL_MIN_CTAS"),
    int_field("maxCTAs", offsetof(ncclConfig_t, maxCTAs), 21700, 64, 1, INT_MAX, "NCCL_MAX_CTAS"),
    text_field("netName", offsetof(ncclConfig_t, netName), 21700, "NCCL_NET"),
    int_field("splitShare", offsetof(ncclConfig_t, splitShare), 21800, 0, 0, 1,
              "NCCL_COMM_SPLIT_SHARE_RESOURCES"),
    int_field("trafficClass", offsetof(ncclConfig_t, trafficClass), 22500, kUnset, kAny, INT_MAX,
              ""),
    text_field("commName", offsetof(ncclConfig_t, commName), 22500, ""),
    int_field("collnetEnable", offsetof(ncclConfig_t, collnetEnable), 22700, 0, 0, 1,
              "NCCL_COLLNET_ENABLE"),
    int_field("CTAPolicy", offsetof(ncclConfig_t, CTAPolicy), 22700, 0, 0, 3, "NCCL_CTA_POLICY"),
    int_field("shrinkShare", offsetof(ncclConfig_t, shrinkShare), 22700, 0, 0, 1,
              "NCCL_COMM_SHRINK_SHARE_RESOURCES"),
    int_field("nvlsCTAs", offsetof(ncclConfig_t, nvlsCTAs), 22700, kUnset, 1, INT_MAX,
              "NCCL_NVLS_NCHANNELS"),
    int_field("nChannelsPerNetPeer", offsetof(ncclConfig_t, nChannelsPerNetPeer), 22800, kUnset, 1,
              64, "NCCL_NCHANNELS_PER_NET_PEER"),
    int_field("nvlinkCentricSched", offsetof(ncclConfig_t, nvlinkCentricSched), 22800, 0, 0, 1,
              "NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE"),
};

int read_int(const ncclConfig_t& config, const SettingsField& field) {
  int value;
  std::memcpy(&value, reinterpret_cast<const char*>(&config) + field.offset, sizeof(value));
  return value;
}
void write_int(ncclConfig_t* config, const SettingsField& field, int value) {
  std::memcpy(reinterpret_cast<char*>(config) + field.offset, &value, sizeof(value));
}
const char* read_text(const ncclConfig_t& config, const SettingsField& field) {
  const char* value;
  std::memcpy(&value, reinterpret_cast<const char*>(&config) + field.offset, sizeof(value));
  return value;
}
void clear_text(ncclConfig_t* config, const SettingsField& field) {
  std::memset(reinterpret_cast<char*>(config) + field.offset, 0, sizeof(const char*));
}

Settings defaults() {
  Settings settings{NCCL_CONFIG_INITIALIZER, "", ""};
  for (const SettingsField& field : kFields)
    if (field.kind == FieldKind::kInt) write_int(&settings.values, field, field.fallback);
  return settings;
}

// The caller's structure may be shorter or longer than ours: only what both know is read.
Result<ncclConfig_t> copy_known_part(const ncclConfig_t* config) {
  size_t size;
  std::memcpy(&size, config, sizeof(size));
  if (size < kHeader || config->magic != kMagic)
    return fail(Code::kInvalidArgument,
                "config {}: size {} and magic {:#x} do not look like an ncclConfig_t. Start from "
                "NCCL_CONFIG_INITIALIZER.",
                static_cast<const void*>(config), size, size < kHeader ? 0u : config->magic);
  ncclConfig_t known = NCCL_CONFIG_INITIALIZER;
  std::memcpy(&known, config, std::min(size, sizeof(known)));
  for (const SettingsField& field : kFields) {
    if (static_cast<int>(known.version) >= field.since) continue;
    if (field.kind == FieldKind::kInt) write_int(&known, field, kUnset);
    if (field.kind == FieldKind::kText) clear_text(&known, field);
  }
  return known;
}

Status check_int(const SettingsField& field, int value) {
  if (value >= field.min && value <= field.max) return {};
  return fail(Code::kInvalidArgument,
              "config field {} is {}; allowed: {} to {}. Leave it at NCCL_CONFIG_UNDEF_INT for "
              "the default.",
              field.name, value, field.min, field.max);
}

Status check_together(const ncclConfig_t& values) {
  if (values.minCTAs <= values.maxCTAs) return {};
  return fail(Code::kInvalidArgument, "config: minCTAs {} is larger than maxCTAs {}",
              values.minCTAs, values.maxCTAs);
}

}  // namespace

std::span<const SettingsField> settings_fields() { return kFields; }

Result<Settings> read_settings(const ncclConfig_t* config, int env_blocking,
                               const Settings* parent) {
  Settings settings = parent != nullptr ? *parent : defaults();
  if (parent != nullptr) settings.comm_name.clear();  // a name is for one communicator
  if (config != nullptr) {
    Result<ncclConfig_t> known = copy_known_part(config);
    if (!known.ok()) return known.status();
    for (const SettingsField& field : kFields) {
      if (field.kind == FieldKind::kText) {
        const char* text = read_text(known.value(), field);
        if (text == nullptr) continue;
        (field.offset == offsetof(ncclConfig_t, netName) ? settings.net_name : settings.comm_name) =
            text;
        continue;
      }
      const int value = read_int(known.value(), field);
      if (value == kUnset) continue;
      if (Status status = check_int(field, value); !status.ok()) return status;
      write_int(&settings.values, field, value);
    }
  }
  if (settings.values.CTAPolicy == (NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO)) {
    log::warn_text(-1, "config: CTAPolicy names EFFICIENCY and ZERO; EFFICIENCY is dropped");
    settings.values.CTAPolicy = NCCL_CTA_POLICY_ZERO;
  }
  if (Status status = check_together(settings.values); !status.ok()) return status;
  if (env_blocking >= 0) settings.values.blocking = env_blocking != 0;
  return settings;
}

}  // namespace tessera::api
