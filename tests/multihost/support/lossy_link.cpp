#include "multihost/support/lossy_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

namespace tessera::multihost {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kDevice = "/dev/net/tun";
constexpr size_t kMostBytes = 65536;  // of a frame
constexpr int kAtOnce = 64;           // frames taken in before others are due

// Of the calling thread's namespace.
Fd open_tap(const std::string& name) {
  Fd fd(::open(kDevice, O_RDWR | O_CLOEXEC | O_NONBLOCK));
  ifreq request = {};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  if (fd.valid() && ::ioctl(fd.get(), TUNSETIFF, &request) != 0) fd.reset();
  return fd;
}

// Frames under way from one end to the other.
class Way {
 public:
  Way(int from, int to) : from_(from), to_(to) {}

  template <class Lost>
  void take_in(const Lost& lost, Clock::time_point due) {
    for (int i = 0; i < kAtOnce; ++i) {
      const ssize_t n = ::read(from_, frame_.data(), frame_.size());
      if (n <= 0) return;
      if (!lost()) frames_.push_back({due, {frame_.begin(), frame_.begin() + n}});
    }
  }

  // A frame that the other end does not take is lost, as on any network.
  void deliver(Clock::time_point now) {
    for (; !frames_.empty() && frames_.front().due <= now; frames_.pop_front()) {
      const std::vector<char>& bytes = frames_.front().bytes;
      [[maybe_unused]] const ssize_t n = ::write(to_, bytes.data(), bytes.size());
    }
  }

  Clock::time_point next() const {
    return frames_.empty() ? Clock::time_point::max() : frames_.front().due;
  }

 private:
  struct Frame {
    Clock::time_point due;
    std::vector<char> bytes;
  };

  const int from_, to_;
  std::vector<char> frame_ = std::vector<char>(kMostBytes);
  std::deque<Frame> frames_;
};

}  // namespace

std::string LossyLink::obstacle() {
  if (::access(kDevice, R_OK | W_OK) == 0) return "";
  return fmt::format("{}: {}", kDevice, std::strerror(errno));
}

LossyLink::LossyLink(const NetworkNamespace& where, const std::string& left,
                     const std::string& right, uint32_t seed)
    : stop_(::eventfd(0, EFD_CLOEXEC)) {
  std::thread([&] {
    if (!where.enter()) return;
    left_ = open_tap(left);
    right_ = open_tap(right);
  }).join();
  EXPECT_TRUE(left_.valid() && right_.valid()) << kDevice;
  carrier_ = std::thread([this, seed] { carry(seed); });
}

LossyLink::~LossyLink() {
  ::eventfd_write(stop_.get(), 1);
  carrier_.join();
}

void LossyLink::set(const Quality& quality) {
  loss_ = quality.loss;
  delay_ = quality.delay;
}

void LossyLink::carry(uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> dice;
  const auto lost = [&] {
    const bool is = dice(random) < loss_;
    lost_ += is ? 1 : 0;
    return is;
  };
  Way there(left_.get(), right_.get()), back(right_.get(), left_.get());
  for (;;) {
    pollfd polled[] = {
        {left_.get(), POLLIN, 0}, {right_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    const Clock::time_point next = std::min(there.next(), back.next());
    const auto wait = std::max<std::chrono::nanoseconds>(next - Clock::now(), {});
    timespec limit = {};
    limit.tv_sec = static_cast<time_t>(wait.count() / 1'000'000'000);
    limit.tv_nsec = static_cast<long>(wait.count() % 1'000'000'000);
    ::ppoll(polled, std::size(polled), next == Clock::time_point::max() ? nullptr : &limit,
            nullptr);
    if (polled[2].revents != 0) return;
    const Clock::time_point due = Clock::now() + delay_.load();
    if (polled[0].revents != 0) there.take_in(lost, due);
    if (polled[1].revents != 0) back.take_in(lost, due);
    there.deliver(Clock::now());
    back.deliver(Clock::now());
  }
}

}  // namespace tessera::multihost
