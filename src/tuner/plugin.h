// Tuner plugins of NCCL, versions 2 to 6: found by NCCL_TUNER_PLUGIN, loaded, asked.
//
//   NCCL_TUNER_PLUGIN   library
//   unset               libnccl-tuner.so, if there is one
//   NAME                NAME; if there is none, libnccl-tuner-NAME.so (not for paths and lib*.so)
//   STATIC_PLUGIN       the program itself
//   none                none
//
// Of a library the newest version that it exports is used. A named plugin that cannot be used is an
// error; one that nobody named and that cannot be loaded is left alone (an INFO line says why).
//
// Host ranks drive one channel, so the number of channels that a plugin asks for has no effect; so
// have the constants of NCCL's model, which versions 5 and 6 may change: they are given as zeros.
//
// Thread safety: one thread at a time per object; the plugin itself may be called for different
// communicators at once, as by NCCL. Source: NCCL's plugin interface (tuner/plugin_abi.h).
#pragma once

#include <array>
#include <memory>
#include <string>

#include "base/status.h"
#include "tuner/plugin_abi.h"

namespace tessera {

class TunerLibrary {
 public:
  // `setting`: NCCL_TUNER_PLUGIN, empty for unset. Null: no plugin.
  static Result<std::shared_ptr<const TunerLibrary>> load(const std::string& setting);
  ~TunerLibrary();
  TunerLibrary(const TunerLibrary&) = delete;
  TunerLibrary& operator=(const TunerLibrary&) = delete;

  int version() const { return version_; }
  std::string name() const;  // "example (version 4)"
  template <class Tuner>
  const Tuner& table() const {
    return *static_cast<const Tuner*>(table_);
  }

 private:
  explicit TunerLibrary(void* handle) : handle_(handle) {}

  void* handle_;
  const void* table_ = nullptr;
  int version_ = 0;
};

// What ranks compare: the plugin's name and version, or "none".
std::string in_use(const TunerLibrary* library);

// Microseconds by NCCL's algorithm and protocol; negative: there is nothing to choose.
using CostTable = std::array<std::array<float, plugin_abi::kProtocols>, plugin_abi::kAlgorithms>;

// A plugin at work for one communicator.
class TunerPlugin {
 public:
  // `communicator`: equal on its ranks.
  static Result<std::unique_ptr<TunerPlugin>> create(std::shared_ptr<const TunerLibrary> library,
                                                     uint64_t communicator, int ranks);
  ~TunerPlugin();  // finalizes it
  TunerPlugin(const TunerPlugin&) = delete;
  TunerPlugin& operator=(const TunerPlugin&) = delete;

  std::string name() const { return library_->name(); }

  // Lets the plugin change the costs of a call of `bytes`. False if it failed; the first time a
  // warning says so. The costs are then as they were.
  bool ask(plugin_abi::Function function, size_t bytes, CostTable& costs);
  // The chunk it wants instead of `chunk` bytes.
  size_t chunk(plugin_abi::Function function, size_t bytes, int algorithm, int protocol,
               size_t chunk);

 private:
  explicit TunerPlugin(std::shared_ptr<const TunerLibrary> library)
      : library_(std::move(library)) {}
  plugin_abi::Outcome begin(uint64_t communicator, int ranks);
  plugin_abi::Outcome ask_v2(int function, size_t bytes, CostTable& costs);
  void failed(const char* function, plugin_abi::Outcome outcome);

  std::shared_ptr<const TunerLibrary> library_;
  void* context_ = nullptr;
  bool begun_ = false;
  bool complained_ = false;
};

}  // namespace tessera
