#include "multihost/support/network_namespace.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/deadline.h"

namespace tessera::multihost {
namespace {

// Of a namespace made for it; errno says why not. A thread that made one is of no other use.
Fd make_namespace() {
  Fd fd;
  int error = 0;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) == 0)
      fd = Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    error = errno;
  }).join();
  errno = error;
  return fd;
}

// Runs `body` in a child process and returns its exit status, -1 if it had none.
template <class Body>
int in_child(const Body& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    body();
    ::_exit(127);
  }
  int state = 0;
  if (pid < 0 || ::waitpid(pid, &state, 0) != pid || !WIFEXITED(state)) return -1;
  return WEXITSTATUS(state);
}

void execute(const char* program, const char* argument, const char* another) {
  const char* path = ::getenv("PATH");
  ::setenv("PATH", (std::string(path != nullptr ? path : "") + ":/usr/sbin:/sbin").c_str(), 1);
  ::execlp(program, program, argument, another, static_cast<char*>(nullptr));
}

void write_all(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  EXPECT_EQ(done, text.size()) << std::strerror(errno);
}

}  // namespace

std::string NetworkNamespace::obstacle() {
  if (!make_namespace().valid())
    return std::string("network namespaces are not allowed here: ") + std::strerror(errno);
  const int status = in_child([] {
    ::close(STDOUT_FILENO);
    execute("ip", "-V", nullptr);
  });
  return status == 0 ? "" : "the program ip is missing (Debian: iproute2)";
}

NetworkNamespace::NetworkNamespace() : fd_(make_namespace()) {
  EXPECT_TRUE(fd_.valid()) << std::strerror(errno);
  ip("link set lo up\n");
}

bool NetworkNamespace::enter() const { return ::setns(fd_.get(), CLONE_NEWNET) == 0; }

void NetworkNamespace::await_carrier(const std::string& interface) const {
  bool running = false;
  std::thread([&] {
    if (!enter()) return;
    const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request = {};
    interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
    const Deadline deadline = Deadline::after(std::chrono::seconds(10));
    while (!running && !deadline.passed()) {
      running =
          ::ioctl(fd.get(), SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_RUNNING) != 0;
      if (!running) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }).join();
  EXPECT_TRUE(running) << interface;
}

std::string NetworkNamespace::path() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_.get());
}

void NetworkNamespace::run(const char* program, const std::string& lines) const {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0) << std::strerror(errno);
  const Fd from(ends[0]);
  Fd to(ends[1]);
  write_all(to.get(), lines);
  to.reset();
  const int status = in_child([&] {
    if (enter() && ::dup2(from.get(), STDIN_FILENO) == STDIN_FILENO)
      execute(program, "-batch", "-");
  });
  EXPECT_EQ(status, 0) << program << ":\n" << lines;
}

}  // namespace tessera::multihost
