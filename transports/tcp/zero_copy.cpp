#include "transports/tcp/zero_copy.h"

// clang-format off
#include <time.h>  // <linux/errqueue.h> needs it
#include <linux/errqueue.h>
// clang-format on
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

namespace tessera::tcp {

void ZeroCopy::enable(int fd) {
  const int on = 1;
  on_ = ::setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) == 0;
}

void ZeroCopy::over(uint32_t first, uint32_t last, bool copied) {
  const size_t sends = size_t{last - first} + 1;  // the numbers wrap
  pending_ -= std::min(pending_, sends);
  if (copied) on_ = false;
}

void ZeroCopy::settle(int fd) {
  while (pending_ > 0) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(sock_extended_err) + sizeof(sockaddr_in6))];
    msghdr message = {};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (::recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
      const bool is_error = (part->cmsg_level == SOL_IP && part->cmsg_type == IP_RECVERR) ||
                            (part->cmsg_level == SOL_IPV6 && part->cmsg_type == IPV6_RECVERR);
      if (!is_error) continue;
      const auto* told = reinterpret_cast<const sock_extended_err*>(CMSG_DATA(part));
      if (told->ee_origin == SO_EE_ORIGIN_ZEROCOPY)
        over(told->ee_info, told->ee_data, (told->ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0);
    }
  }
}

}  // namespace tessera::tcp
