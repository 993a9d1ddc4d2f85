#include "transports/tcp/listener.h"

#include <cerrno>

#include "base/error_text.h"
#include "base/log.h"

namespace tessera::tcp {
namespace {

constexpr int kBacklog = 4096;  // all ranks of a large job at once; the kernel may allow less

// Invalid, with errno, when that fails.
Fd listen_on(Endpoint& endpoint) {
  Fd fd(::socket(endpoint.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  SocketAddress address = socket_address(endpoint);
  if (!fd.valid() || ::bind(fd.get(), address.get(), address.bytes) != 0 ||
      ::listen(fd.get(), kBacklog) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.bytes) != 0) {
    return Fd();
  }
  set_address(endpoint, address.get());
  return fd;
}

}  // namespace

Result<Listener> Listener::open(const Config& config) {
  Result<std::vector<LocalAddress>> addresses = usable_addresses(config);
  if (!addresses.ok()) return addresses.status();
  Listener listener;
  std::string failures;
  for (LocalAddress& local : addresses.value()) {
    Fd fd = listen_on(local.endpoint);
    if (!fd.valid()) {
      failures += fmt::format("; {}: {}", to_text(local.endpoint), error_text(errno));
      continue;
    }
    listener.sockets_.push_back(std::move(fd));
    listener.endpoints_.push_back(local.endpoint);
    listener.local_.push_back(local);
  }
  if (!listener.sockets_.empty()) {
    if (!failures.empty()) log::info(-1, "tcp: not listening everywhere{}", failures);
    return listener;
  }
  return Status::error(Code::kSystem, "tcp: cannot listen for peers{}", failures);
}

}  // namespace tessera::tcp
