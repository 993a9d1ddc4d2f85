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
  struct {
    uint16_t family;  // 0: none
    uint8_t ip[16];
  } others[IdContent::kMostOthers];
  uint8_t unused[6];
  uint64_t checksum;  // of all before
};
static_assert(sizeof(Layout) == kUniqueIdBytes);

uint64_t checksum_of(const Layout& layout) {
  return short_hash({reinterpret_cast<const char*>(&layout), offsetof(Layout, checksum)});
}

// The bytes of an IP address as they are sent.
void store_ip(const SocketAddress& address, uint8_t* ip) {
  if (address.family() == AF_INET) {
    std::memcpy(ip, &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr, 4);
  } else {
    std::memcpy(ip, &reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr, 16);
  }
}

SocketAddress load_ip(uint16_t family, const uint8_t* ip, uint16_t port, uint32_t scope) {
  in_addr four;
  in6_addr six;
  std::memcpy(&four, ip, sizeof four);
  std::memcpy(&six, ip, sizeof six);
  return family == AF_INET ? make_address(four, port) : make_address(six, port, scope);
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
  } else {
    const auto& in6 = *reinterpret_cast<const sockaddr_in6*>(&content.address.storage);
    layout.port = in6.sin6_port;
    layout.scope = in6.sin6_scope_id;
  }
  store_ip(content.address, layout.ip);
  for (size_t i = 0; i < std::min(content.others.size(), IdContent::kMostOthers); ++i) {
    layout.others[i].family = static_cast<uint16_t>(content.others[i].family());
    store_ip(content.others[i], layout.others[i].ip);
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
  const uint16_t port = ntohs(layout.port);
  content.address = load_ip(layout.family, layout.ip, port, layout.scope);
  for (const auto& other : layout.others) {
    if (other.family != 0) content.others.push_back(load_ip(other.family, other.ip, port, 0));
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

namespace bootstrap {
namespace {

// One socket for all `addresses`, at which content then says where it is.
Result<Listener> listen_at_all(const std::vector<SocketAddress>& addresses, IdContent& content) {
  const bool mixed = std::any_of(addresses.begin(), addresses.end(),
                                 [](const auto& a) { return a.family() == AF_INET6; });
  const SocketAddress everywhere =
      mixed ? make_address(in6addr_any, 0, 0) : make_address(in_addr{htonl(INADDR_ANY)}, 0);
  Result<Listener> listener = listen_at(addresses.size() == 1 ? addresses[0] : everywhere);
  if (!listener.ok()) return listener;
  content.address = with_port(addresses[0], port_of(listener->address));
  content.others.assign(addresses.begin() + 1, addresses.end());
  listener->address = content.address;
  return listener;
}

}  // namespace
}  // namespace bootstrap

Result<UniqueId> create_unique_id(const Config& config, std::chrono::milliseconds idle) {
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
  Result<std::vector<bootstrap::SocketAddress>> addresses =
      bootstrap::choose_addresses(config.socket_ifname, config.socket_family);
  if (!addresses.ok()) return addresses.status();
  Result<Key> secret = bootstrap::random_key();
  if (!secret.ok()) return secret.status();
  Result<bootstrap::Listener> listener = bootstrap::listen_at_all(addresses.value(), content);
  if (!listener.ok()) return listener.status();
  content.secret = secret.value();
  content.creator = ::getpid();
  bootstrap::RootOptions options;
  options.idle = std::min<std::chrono::milliseconds>(idle.count() > 0 ? idle : 20 * config.timeout,
                                                     std::chrono::hours(24));
  Status status = bootstrap::start_root(std::move(listener).value(), content.secret, options);
  if (!status.ok()) return status;
  return bootstrap::encode(content);
}

}  // namespace tessera
