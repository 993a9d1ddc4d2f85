#include "comm/sharing.h"

#include <algorithm>

#include "device/host/memory.h"
#include "transports/cma/cma.h"
#include "transports/inproc/inproc.h"

namespace tessera {

BufferNote Sharing::note(const void* pointer, size_t bytes) {
  BufferNote note;
  if (pointer == nullptr) return note;
  note.address = reinterpret_cast<uint64_t>(pointer);
  if (core_.one_process || !core_.config.share_memory) return note;
  const host::Allocation allocation = host::memory_find(pointer, bytes);
  if (allocation.base == nullptr) return note;
  note.allocation = allocation.id;
  note.offset = note.address - reinterpret_cast<uint64_t>(allocation.base);
  return note;
}

Result<bool> Sharing::give(int peer, const BufferNote& note) {
  if (note.allocation == 0 || core_.same_process(peer) || core_.elsewhere(peer)) return true;
  auto given = std::find_if(given_.begin(), given_.end(),
                            [&](const Given& g) { return g.allocation == note.allocation; });
  if (given == given_.end()) {
    const auto* base = reinterpret_cast<const void*>(note.address - note.offset);
    given_.push_back({note.allocation, base, std::vector<bool>(core_.ranks)});
    given = std::prev(given_.end());
  }
  if (given->to[peer]) return true;
  const host::Allocation allocation = host::memory_find(given->base, 1);
  if (allocation.id != note.allocation) {
    return Status::error(Code::kInvalidUsage,
                         "{}: a buffer of this call was freed while the call was running",
                         core_.health->who());
  }
  const Status sent = core_.mailbox->send(core_.socket_names[peer], allocation.fd, note.allocation,
                                          Deadline::after(std::chrono::nanoseconds(0)));
  if (sent.code() == Code::kTimeout) return false;
  if (!sent.ok()) return sent;
  given->to[peer] = true;
  core_.ring(peer);
  return true;
}

Result<bool> Sharing::take(int peer, const BufferNote& note) {
  if (note.allocation == 0 || core_.same_process(peer) || core_.elsewhere(peer)) return true;
  if (mappings_.find(peer, note.allocation) != nullptr) return true;
  Result<Fd> fd =
      core_.mailbox->receive(peer, note.allocation, Deadline::after(std::chrono::nanoseconds(0)));
  if (fd.status().code() == Code::kTimeout) return false;
  if (!fd.ok()) return fd.status();
  if (Status s = mappings_.add(peer, note.allocation, fd.value()); !s.ok()) return s;
  return true;
}

uint64_t Sharing::freed(int peer) {
  for (size_t i = 0; i < given_.size(); ++i) {
    Given& given = given_[i];
    if (peer >= 0 && !given.to[peer]) continue;
    if (host::memory_find(given.base, 1).id == given.allocation) continue;
    const uint64_t allocation = given.allocation;
    if (peer >= 0) {
      given.to[peer] = false;
    } else {
      given_.erase(given_.begin() + static_cast<ptrdiff_t>(i));
    }
    return allocation;
  }
  return 0;
}

host::Place Sharing::place(int peer, const BufferNote& note) const {
  if (note.address == 0) return {};
  if (core_.same_process(peer)) return inproc::place(note);
  if (note.allocation != 0) {
    if (std::byte* base = mappings_.find(peer, note.allocation))
      return {reinterpret_cast<uintptr_t>(base + note.offset), 0};
  }
  return cma::place(core_.peers[peer], note);
}

}  // namespace tessera
