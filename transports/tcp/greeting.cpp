#include "transports/tcp/greeting.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

namespace tessera::tcp {

Digest prove(const Secret& secret, Role role, const Hello& hello, const Nonce& answer) {
  KeyedHash hash(secret);
  hash.add("tessera tcp");
  hash.add_value(role);
  hash.add_value(hello);
  hash.add_value(answer);
  return hash.finish();
}

Result<Nonce> fresh_nonce() {
  Nonce nonce;
  if (::getrandom(nonce.data(), nonce.size(), 0) == static_cast<ssize_t>(nonce.size()))
    return nonce;
  return Status::error(Code::kSystem, "tcp: getrandom: {}", std::strerror(errno));
}

}  // namespace tessera::tcp
