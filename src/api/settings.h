// The options of a communicator: ncclConfig_t read into a complete set of values.
//
// One table (settings_fields) says for every field where it lies, since which version it exists,
// its default, what is allowed and which variable of the environment NCCL gives it; reading,
// checking, inheritance and the tests follow it.
#pragma once

#include <nccl.h>

#include <span>
#include <string>

#include "base/status.h"

namespace tessera::api {

enum class FieldKind : uint8_t { kInt, kText };

struct SettingsField {
  const char* name;
  size_t offset;  // in ncclConfig_t
  FieldKind kind;
  int since;           // version code of the first NCCL that has it
  int fallback;        // default of an int
  long long min, max;  // allowed, ints only
  const char* env;     // NCCL's variable, for messages and documentation; "" when there is none
};
std::span<const SettingsField> settings_fields();

struct Settings {
  ncclConfig_t values;  // every int set; the pointers in it are null, the texts are below
  std::string net_name;
  std::string comm_name;

  bool blocking() const { return values.blocking != 0; }
};

// `config` null: the parent's settings, or the defaults without a parent. `env_blocking`:
// NCCL_COMM_BLOCKING, -1 when it is unset; it wins over the structure. kInvalidArgument names the
// field, its value and what is allowed.
Result<Settings> read_settings(const ncclConfig_t* config, int env_blocking,
                               const Settings* parent);

}  // namespace tessera::api
