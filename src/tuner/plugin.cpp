#include "tuner/plugin.h"

#include <dlfcn.h>
#include <strings.h>

#include <cstdarg>
#include <cstdio>
#include <string_view>

#include "base/log.h"

namespace tessera {
namespace {

using namespace plugin_abi;  // NOLINT(google-build-using-namespace): the words of this file

constexpr const char* kVariable = "NCCL_TUNER_PLUGIN";
constexpr int kNewest = 6, kOldest = 2;

bool equal_in_any_case(const std::string& a, const char* b) {
  return ::strcasecmp(a.c_str(), b) == 0;
}

// Null, and what the loader says, if it cannot be loaded.
void* try_open(const char* name, std::string& why) {
  void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
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
    handle = try_open(fmt::format("libnccl-tuner-{}.so", setting).c_str(), why);
  return handle;
}

// What plugins write to the log.
// NOLINTNEXTLINE(google-runtime-int,cert-dcl50-cpp): NCCL's signature
void write_log(int level, unsigned long, const char*, int, const char* format, ...) {
  const bool warning = level <= kLogWarn;
  if (!warning && (level > kLogAbort || log::level() < log::Level::kInfo)) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  if (warning) {
    log::warn(-1, "tuner plugin: {}", text);
  } else {
    log::info(-1, "tuner plugin: {}", text);
  }
}

bool has_functions(const void* table, int version) {
  const auto complete = [](const auto& tuner) {
    return tuner.init != nullptr && tuner.ask != nullptr;
  };
  if (version == 2) return complete(*static_cast<const TunerV2*>(table));
  if (version == 3) return complete(*static_cast<const TunerV3*>(table));
  if (version == 4) return complete(*static_cast<const TunerV4*>(table));
  return complete(*static_cast<const TunerV5*>(table));
}

}  // namespace

Result<std::shared_ptr<const TunerLibrary>> TunerLibrary::load(const std::string& setting) {
  const std::shared_ptr<const TunerLibrary> none;
  if (equal_in_any_case(setting, "none")) return none;
  const bool named = !setting.empty();
  std::string why;
  void* handle = named ? open_named(setting, why) : try_open("libnccl-tuner.so", why);
  if (handle == nullptr) {
    if (named)
      return Status::error(Code::kInvalidUsage, "{}={}: this plugin cannot be loaded: {}",
                           kVariable, setting, why);
    if (why.find("No such file") == std::string::npos)
      log::info(-1, "libnccl-tuner.so is there and cannot be loaded: {}", why);
    return none;
  }
  std::shared_ptr<TunerLibrary> library(new TunerLibrary(handle));
  for (int version = kNewest; version >= kOldest && library->table_ == nullptr; --version) {
    library->table_ = ::dlsym(handle, fmt::format("ncclTunerPlugin_v{}", version).c_str());
    library->version_ = version;
  }
  if (library->table_ != nullptr && has_functions(library->table_, library->version_))
    return std::shared_ptr<const TunerLibrary>(std::move(library));
  const std::string lack =
      library->table_ == nullptr
          ? fmt::format("it exports no ncclTunerPlugin_v{} to _v{}", kOldest, kNewest)
          : fmt::format("its table of version {} lacks a function", library->version_);
  if (named) return Status::error(Code::kInvalidUsage, "{}={}: {}", kVariable, setting, lack);
  log::info(-1, "libnccl-tuner.so is no tuner plugin: {}", lack);
  return none;
}

TunerLibrary::~TunerLibrary() { ::dlclose(handle_); }

std::string TunerLibrary::name() const {
  const char* name = table<TunerV2>().name;  // the first member of every version
  return fmt::format("{} (version {})", name != nullptr ? name : "unnamed", version_);
}

std::string in_use(const TunerLibrary* library) {
  return library == nullptr ? "none" : library->name();
}

Result<std::unique_ptr<TunerPlugin>> TunerPlugin::create(
    std::shared_ptr<const TunerLibrary> library, uint64_t communicator, int ranks) {
  std::unique_ptr<TunerPlugin> plugin;
  if (library == nullptr) return plugin;
  plugin.reset(new TunerPlugin(std::move(library)));
  if (const Outcome outcome = plugin->begin(communicator, ranks); outcome != 0)
    return Status::error(Code::kInvalidUsage,
                         "tuner plugin {}: its init() failed with result {}; {}=none does without",
                         plugin->name(), outcome, kVariable);
  plugin->begun_ = true;
  return plugin;
}

Outcome TunerPlugin::begin(uint64_t communicator, int ranks) {
  const auto size = static_cast<size_t>(ranks);
  if (library_->version() < 5)  // the same up to version 4
    return library_->table<TunerV2>().init(size, 1, write_log, &context_);
  NvlDomains domains{1, ranks, ranks};
  Constants constants{};
  return library_->table<TunerV5>().init(&context_, communicator, size, 1, write_log, &domains,
                                         &constants);
}

TunerPlugin::~TunerPlugin() {
  const Finalize finalize = library_->table<TunerV2>().finalize;  // in the same place in all
  if (begun_ && finalize != nullptr) finalize(context_);
}

// Version 2 names its choice, which becomes the cheapest.
Outcome TunerPlugin::ask_v2(int function, size_t bytes, CostTable& costs) {
  int algorithm = kUndefined, protocol = kUndefined, channels = 0;
  const Outcome outcome = library_->table<TunerV2>().ask(context_, function, bytes, 0, 0, 1,
                                                         &algorithm, &protocol, &channels);
  const bool named =
      algorithm >= 0 && algorithm < kAlgorithms && protocol >= 0 && protocol < kProtocols;
  if (outcome == 0 && named && costs[algorithm][protocol] >= 0) costs[algorithm][protocol] = 0;
  return outcome;
}

bool TunerPlugin::ask(Function function, size_t bytes, CostTable& costs) {
  const CostTable before = costs;
  const auto table = reinterpret_cast<Table>(costs.data());
  int channels = 0;
  Outcome outcome = 0;
  if (library_->version() == 2) {
    outcome = ask_v2(function, bytes, costs);
  } else if (library_->version() == 3) {
    outcome = library_->table<TunerV3>().ask(context_, function, bytes, 1, table, kAlgorithms,
                                             kProtocols, &channels);
  } else {  // the same in versions 4 to 6
    outcome = library_->table<TunerV4>().ask(context_, function, bytes, 1, table, kAlgorithms,
                                             kProtocols, 0, &channels);
  }
  if (outcome == 0) return true;
  costs = before;
  failed("getCollInfo", outcome);
  return false;
}

size_t TunerPlugin::chunk(Function function, size_t bytes, int algorithm, int protocol,
                          size_t chunk) {
  if (library_->version() < 6 || library_->table<TunerV6>().chunk == nullptr) return chunk;
  size_t wanted = chunk;
  const Outcome outcome =
      library_->table<TunerV6>().chunk(context_, function, bytes, algorithm, protocol, 1, &wanted);
  if (outcome == 0) return wanted;
  failed("getChunkSize", outcome);
  return chunk;
}

void TunerPlugin::failed(const char* function, Outcome outcome) {
  if (complained_) return;
  complained_ = true;
  log::warn(-1, "tuner plugin {}: its {}() failed with result {}; such calls run as without it",
            name(), function, outcome);
}

}  // namespace tessera
