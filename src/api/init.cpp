// New communicators from an id: ncclGetUniqueId, ncclCommInitRank and its kin, ncclCommInitAll.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "api/births.h"
#include "api/errors.h"
#include "api/export.h"
#include "api/groups.h"
#include "api/handles.h"

namespace tessera::api {
namespace {

struct InitRequest {
  const char* function;
  ncclComm_t* out;
  int ranks;
  int rank;
  ncclUniqueId id;
  const ncclConfig_t* config;
  int device;
};

// Which library this is: several of the same name may be installed.
void tell_version() {
  Dl_info self{};
  const bool found = dladdr(reinterpret_cast<void*>(&tell_version), &self) != 0;
  log::write(log::Level::kVersion, -1,
             fmt::format("tessera {} (NCCL interface {}.{}.{}), {}", TESSERA_VERSION, NCCL_MAJOR,
                         NCCL_MINOR, NCCL_PATCH, found ? self.dli_fname : "of unknown path"),
             std::source_location::current());
}

Result<Config> read_environment() {
  Result<Config> config = Config::from_environment();
  if (!config.ok()) return config;
  log::configure(config->debug, config->debug_file);
  static std::once_flag told;
  if (config->debug == log::Level::kVersion || config->debug >= log::Level::kInfo)
    std::call_once(told, tell_version);
  return config;
}

// `at_once`: all ranks come now, or never.
Status get_unique_id(ncclUniqueId* out, bool at_once) {
  if (out == nullptr) return fail(Code::kInvalidArgument, "ncclGetUniqueId: uniqueId is NULL");
  Result<Config> config = read_environment();
  if (!config.ok()) return config.status();
  Result<UniqueId> id = create_unique_id(
      config.value(), at_once ? config->timeout : std::chrono::milliseconds::zero());
  if (!id.ok()) return id.status();
  static_assert(sizeof(out->internal) == sizeof(UniqueId));
  std::memcpy(out->internal, id->data(), id->size());
  return {};
}

Status check(const InitRequest& request) {
  if (request.out == nullptr)
    return fail(Code::kInvalidArgument, "{}: comm is NULL", request.function);
  if (request.ranks < 1)
    return fail(Code::kInvalidArgument, "{}: nranks is {}; a communicator has at least one rank",
                request.function, request.ranks);
  if (request.rank < 0 || request.rank >= request.ranks)
    return fail(Code::kInvalidArgument, "{}: rank {} is out of range; the ranks are 0 to {}",
                request.function, request.rank, request.ranks - 1);
  return {};
}

// The handle and the job that brings the communicator to it.
Result<Job> job_for(const InitRequest& request, bool* blocking) {
  if (Status status = check(request); !status.ok()) return status;
  *request.out = nullptr;
  Result<Config> config = read_environment();
  if (!config.ok()) return config.status();
  Result<Settings> settings = read_settings(request.config, config->blocking, nullptr);
  if (!settings.ok()) return settings.status();
  *blocking = settings->blocking();

  UniqueId id;
  std::memcpy(id.data(), request.id.internal, id.size());
  CommOptions options{config.value(), settings->comm_name};
  if (options.config.net.empty()) options.config.net = settings->net_name;
  Result<Prepared> child =
      prepare(std::move(settings).value(), Clique::find_or_make(mix(0, id.data(), id.size())),
              request.device);
  if (!child.ok()) return child.status();
  const std::shared_ptr<Stream> worker = child->state->worker;
  Birth birth{std::move(child).value(), request.out,
              [id, options = std::move(options), ranks = request.ranks, rank = request.rank] {
                return Communicator::create(id, ranks, rank, options);
              }};
  if (*blocking) return blocking_job(std::move(birth));
  return background_job(std::move(birth), [worker](Stream::Task task) {
    worker->enqueue(std::move(task));
    return Status();
  });
}

Status init_rank(const InitRequest& request) {
  bool blocking = true;
  Result<Job> job = job_for(request, &blocking);
  if (!job.ok()) return note_in_group(job.status());
  return run_or_collect(std::move(job).value(), blocking);
}

Status init_scalable(InitRequest request, int ids, const ncclUniqueId* all) {
  if (all == nullptr || ids < 1 || ids > request.ranks)
    return note_in_group(fail(Code::kInvalidArgument,
                              "{}: {} ids at {}; between 1 and nranks ({}) are needed",
                              request.function, ids, static_cast<const void*>(all), request.ranks));
  request.id = all[0];
  return init_rank(request);
}

Status check_devices(int ranks, const int* devices) {
  if (devices == nullptr) return {};
  for (int i = 0; i < ranks; ++i) {
    if (devices[i] < 0)
      return fail(Code::kInvalidUsage, "ncclCommInitAll: devlist[{}] is {}; devices start at 0", i,
                  devices[i]);
    const int* const twin = std::find(devices, devices + i, devices[i]);
    if (twin != devices + i)
      return fail(Code::kInvalidUsage, "ncclCommInitAll: devlist[{}] and devlist[{}] are both {}",
                  twin - devices, i, devices[i]);
  }
  return {};
}

Status init_all(ncclComm_t* comms, int ranks, const int* devices) {
  if (comms == nullptr || ranks < 0)
    return fail(Code::kInvalidArgument, "ncclCommInitAll: comm is {}, ndev is {}",
                static_cast<const void*>(comms), ranks);
  if (Status status = check_devices(ranks, devices); !status.ok()) return status;
  if (ranks == 0) return {};
  ncclUniqueId id;
  if (Status status = get_unique_id(&id, true); !status.ok()) return status;
  std::vector<Job> jobs;
  bool blocking = true;
  for (int rank = 0; rank < ranks; ++rank) {
    Result<Job> job = job_for({"ncclCommInitAll", comms + rank, ranks, rank, id, nullptr,
                               devices == nullptr ? rank : devices[rank]},
                              &blocking);
    if (!job.ok()) {
      for (const Job& earlier : jobs) earlier.settle(false);
      return job.status();
    }
    jobs.push_back(std::move(job).value());
  }
  if (!in_group()) return run_jobs(std::move(jobs));
  for (Job& job : jobs)
    if (Status status = run_or_collect(std::move(job), blocking); !status.ok()) return status;
  return {};
}

}  // namespace
}  // namespace tessera::api

using tessera::api::entry;
using tessera::api::init_rank;

TSR_API(ncclResult_t, GetUniqueId, (ncclUniqueId * uniqueId)) {
  return entry([&] { return tessera::api::get_unique_id(uniqueId, false); });
}
TSR_API(ncclResult_t, CommInitRank,
        (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank)) {
  return entry([&] {
    return init_rank({"ncclCommInitRank", comm, nranks, rank, commId, nullptr, 0});
  });
}
TSR_API(ncclResult_t, CommInitRankConfig,
        (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config)) {
  return entry([&] {
    return init_rank({"ncclCommInitRankConfig", comm, nranks, rank, commId, config, 0});
  });
}
TSR_API(ncclResult_t, CommInitRankScalable,
        (ncclComm_t * newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
         ncclConfig_t* config)) {
  return entry([&] {
    return tessera::api::init_scalable(
        {"ncclCommInitRankScalable", newcomm, nranks, myrank, {}, config, 0}, nId, commIds);
  });
}
TSR_API(ncclResult_t, CommInitAll, (ncclComm_t * comm, int ndev, const int* devlist)) {
  return entry(
      [&] { return tessera::api::note_in_group(tessera::api::init_all(comm, ndev, devlist)); });
}
