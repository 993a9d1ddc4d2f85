#include "comm/bootstrap/unique_id.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "comm/bootstrap/root.h"

namespace tessera {
namespace bootstrap {
namespace {

constexpr uint64_t kIdMagic = 0x3144496172737374;
constexpr uint32_t kHosted = 1;

// As it lies in the id. Magic, version and checksum keep their places in every version.
struct Layout {
  uint64_t magic;
  uint32_t version;
  uint32_t flags;
  uint16_t family;
  uint16_t port;  // network order
  uint32_t scope;
  uint8_t ip[16];
  uint8_t secret[16];
  int32_t creator;
  uint8_t unused[60];
  uint64_t checksum;  // of all before
};
static_assert(sizeof(Layout) == kUniqueIdBytes);

uint64_t checksum_of(const Layout& layout) {
  return short_hash({reinterpret_cast<const char*>(&layout), offsetof(Layout, checksum)});
}

}  // namespace

std::string version_text(uint32_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

UniqueId encode(const IdContent& content) {
  Layout layout = {};
  layout.magic = kIdMagic;
  layout.version = kVersion;
  layout.flags = content.hosted_by_rank_zero ? kHosted : 0;
  layout.family = static_cast<uint16_t>(content.address.family());
  if (content.address.family() == AF_INET) {
    const auto& in = *reinterpret_cast<const sockaddr_in*>(&content.address.storage);
    layout.port = in.sin_port;
    std::memcpy(layout.ip, &in.sin_addr, sizeof in.sin_addr);
  } else {
    const auto& in6 = *reinterpret_cast<const sockaddr_in6*>(&content.address.storage);
    layout.port = in6.sin6_port;
    layout.scope = in6.sin6_scope_id;
    std::memcpy(layout.ip, &in6.sin6_addr, sizeof in6.sin6_addr);
  }
  std::memcpy(layout.secret, content.secret.data(), sizeof layout.secret);
  layout.creator = content.creator;
  layout.checksum = checksum_of(layout);
  UniqueId id;
  std::memcpy(id.data(), &layout, sizeof layout);
  return id;
}

Result<IdContent> decode(const UniqueId& id) {
  Layout layout;
  std::memcpy(&layout, id.data(), sizeof layout);
  if (layout.magic != kIdMagic || layout.checksum != checksum_of(layout)) {
    return Status(Code::kInvalidArgument,
                  "this is not a unique id: it must come from ncclGetUniqueId and reach every rank "
                  "unchanged, all 128 bytes");
  }
  if (layout.version != kVersion) {
    return Status::error(Code::kInvalidUsage,
                         "the unique id was made by tessera {}, this rank uses {}: all ranks must "
                         "use the same version",
                         version_text(layout.version), version_text(kVersion));
  }
  IdContent content;
  if (layout.family == AF_INET) {
    in_addr ip;
    std::memcpy(&ip, layout.ip, sizeof ip);
    content.address = make_address(ip, ntohs(layout.port));
  } else {
    in6_addr ip;
    std::memcpy(&ip, layout.ip, sizeof ip);
    content.address = make_address(ip, ntohs(layout.port), layout.scope);
  }
  std::memcpy(content.secret.data(), layout.secret, sizeof layout.secret);
  content.hosted_by_rank_zero = (layout.flags & kHosted) != 0;
  content.creator = layout.creator;
  return content;
}

Result<Key> random_key() {
  Key key;
  ssize_t n;
  do {
    n = ::getrandom(key.data(), key.size(), 0);
  } while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(key.size())) return key;
  return Status::error(Code::kSystem, "getrandom: {}", std::strerror(errno));
}

}  // namespace bootstrap

Result<UniqueId> create_unique_id(const Config& config) {
  bootstrap::IdContent content;
  if (!config.comm_id.empty()) {
    Result<bootstrap::SocketAddress> address = bootstrap::parse_comm_id(config.comm_id);
    if (!address.ok()) return address.status();
    content.address = address.value();
    content.hosted_by_rank_zero = true;
    // Known to whoever knows the address, as the variable promises nothing more.
    KeyedHash hash(Key{'c', 'o', 'm', 'm', ' ', 'i', 'd'});
    hash.add(bootstrap::to_text(content.address));
    content.secret = hash.finish();
    return bootstrap::encode(content);
  }
  Result<bootstrap::SocketAddress> address = bootstrap::choose_interface(config.socket_ifname);
  if (!address.ok()) return address.status();
  Result<Key> secret = bootstrap::random_key();
  if (!secret.ok()) return secret.status();
  Result<bootstrap::Listener> listener = bootstrap::listen_at(address.value());
  if (!listener.ok()) return listener.status();
  content.address = listener->address;
  content.secret = secret.value();
  content.creator = ::getpid();
  bootstrap::RootOptions options;
  options.idle = std::min<std::chrono::milliseconds>(20 * config.timeout, std::chrono::hours(24));
  Status status = bootstrap::start_root(std::move(listener).value(), content.secret, options);
  if (!status.ok()) return status;
  return bootstrap::encode(content);
}

}  // namespace tessera
