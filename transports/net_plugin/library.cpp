#include "transports/net_plugin/library.h"

#include <dlfcn.h>
#include <strings.h>

#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "transports/net_plugin/network.h"
#include "transports/net_plugin/process.h"

namespace tessera::net_plugin {
namespace {

constexpr const char* kVariable = "NCCL_NET_PLUGIN";

bool equal_in_any_case(const std::string& a, const char* b) {
  return ::strcasecmp(a.c_str(), b) == 0;
}

// Null, and what the loader says, if it cannot be loaded.
void* try_open(const char* name, std::string& why) {
  void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle != nullptr) return handle;
  const char* error = ::dlerror();
  why += (why.empty() ? "" : "; ") + std::string(error != nullptr ? error : "unknown error");
  return nullptr;
}

void* open_named(const std::string& setting, std::string& why) {
  if (equal_in_any_case(setting, "STATIC_PLUGIN")) return try_open(nullptr, why);
  void* handle = try_open(setting.c_str(), why);
  const bool whole =
      setting.find('/') != std::string::npos ||
      (std::string_view(setting).starts_with("lib") && std::string_view(setting).ends_with(".so"));
  if (handle == nullptr && !whole)
    handle = try_open(fmt::format("libnccl-net-{}.so", setting).c_str(), why);
  return handle;
}

// What plugins write to the log.
// NOLINTNEXTLINE(google-runtime-int,cert-dcl50-cpp): NCCL's signature
void write_log(int level, unsigned long, const char*, int, const char* format, ...) {
  const bool warning = level <= abi::kLogWarn;
  if (!warning && (level > abi::kLogAbort || log::level() < log::Level::kInfo)) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  if (warning) {
    log::warn(-1, "net plugin: {}", text);
  } else {
    log::info(-1, "net plugin: {}", text);
  }
}

std::vector<std::string> list_of(const std::string& setting) {
  std::vector<std::string> names;
  for (size_t at = 0; at <= setting.size();) {
    const size_t comma = std::min(setting.find(',', at), setting.size());
    if (comma > at) names.push_back(setting.substr(at, comma - at));
    at = comma + 1;
  }
  return names;
}

bool is_own_network(const std::string& net) {
  return equal_in_any_case(net, "Socket") || equal_in_any_case(net, "IB");
}

}  // namespace

Library::Library(std::unique_ptr<Driver> driver, const void* symbol)
    : driver_(std::move(driver)), symbol_(symbol) {
  const char* name = driver_->name();
  name_ = fmt::format("{} (version {})", name != nullptr ? name : "unnamed", driver_->version());
}

Outcome Library::init(uint64_t communicator, void*& context) const {
  if (driver_->has_contexts()) return driver_->init(communicator, write_log, context);
  PluginsOfProcess& plugins = plugins_of_process();
  const std::lock_guard lock(plugins.beginning);
  if (plugins.begun.contains(symbol_)) return 0;
  const Outcome outcome = driver_->init(communicator, write_log, context);
  if (outcome == 0) plugins.begun.insert(symbol_);
  return outcome;
}

Result<std::shared_ptr<const Library>> Library::open(const std::string& setting) {
  std::string why;
  void* handle = setting.empty() ? try_open("libnccl-net.so", why) : open_named(setting, why);
  if (handle == nullptr) {
    // Where nobody named one, a file that is not there is nothing to talk about.
    if (setting.empty() && why.find("No such file") != std::string::npos)
      return std::shared_ptr<const Library>();
    return Status::error(Code::kInvalidUsage, "cannot be loaded: {}", why);
  }
  const void* symbol = nullptr;
  int version = abi::kNewest + 1;
  while (symbol == nullptr && version > abi::kOldest)
    symbol = ::dlsym(handle, fmt::format("ncclNetPlugin_v{}", --version).c_str());
  if (symbol == nullptr) {
    return Status::error(Code::kInvalidUsage, "exports no ncclNetPlugin_v{} to _v{}", abi::kOldest,
                         abi::kNewest);
  }
  std::unique_ptr<Driver> driver = make_driver(symbol, version);
  if (driver == nullptr)
    return Status::error(Code::kInvalidUsage, "its table of version {} lacks a function", version);
  std::shared_ptr<const Library> library(new Library(std::move(driver), symbol));
  if (Status s = Network::try_out(library); !s.ok()) return s;
  return library;
}

Result<std::shared_ptr<const Library>> Library::load(const std::string& plugins,
                                                     const std::string& net) {
  const std::shared_ptr<const Library> none;
  if (is_own_network(net)) return none;
  bool wanted = !plugins.empty();
  std::string reasons;
  const std::vector<std::string> names =
      plugins.empty() ? std::vector<std::string>{""} : list_of(plugins);
  for (const std::string& name : names) {
    if (equal_in_any_case(name, "none")) {
      wanted = false;
      break;
    }
    Result<std::shared_ptr<const Library>> library = open(name);
    const bool usable = library.ok() && library.value() != nullptr;
    const char* found = usable ? library.value()->driver().name() : nullptr;
    if (usable && (net.empty() || equal_in_any_case(net, found != nullptr ? found : "")))
      return library;
    if (usable) {
      reasons +=
          fmt::format("{}{} is {}", reasons.empty() ? "" : "; ", name, library.value()->name());
    } else if (!library.ok()) {
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ",
                             name.empty() ? "libnccl-net.so" : name, library.status().message());
    }
  }
  if (!net.empty()) {
    return Status::error(Code::kInvalidUsage,
                         "NCCL_NET={}: there is no such network: the library's own are Socket and "
                         "IB, and {}={} gives {}",
                         net, kVariable, plugins, reasons.empty() ? "no plugin" : reasons);
  }
  if (reasons.empty()) return none;
  if (wanted)
    return Status::error(Code::kInvalidUsage, "{}={}: no plugin that can be used: {}", kVariable,
                         plugins, reasons);
  log::info(-1, "left alone: {}", reasons);
  return none;
}

std::string in_use(const Library* library) { return library == nullptr ? "none" : library->name(); }

}  // namespace tessera::net_plugin
