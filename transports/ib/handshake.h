// How two ranks come to use RDMA with each other: a talk over the spare transport.
//
//   kHello    the queue pairs of the sender (in memory at kControlMemory); none: it has no device
//   kReady    which of them are connected
//   kVerdict  which of them an empty write has crossed
//   kGo       the sender has posted receives: messages may follow. 0: it cannot
//   kStopped  later: the sender has stopped its queue pairs, having taken in so many messages
//
// Both sides send each and go on when the other's has come; what is agreed is what both found.
// Lanes over which nothing gets through, such as ports of separate networks, drop out that way.
// Thread safety: one thread.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "transports/ib/ib_port.h"

namespace tessera::ib {

inline constexpr uint64_t kControlMemory = uint64_t{1} << 60;

enum class Word : uint8_t { kHello, kReady, kVerdict, kGo, kStopped };
inline constexpr size_t kWords = 5;

struct Hello {
  uint32_t count = 0;
  uint32_t unused = 0;
  std::array<LaneOffer, kMaxLanes> lanes;
};

class Handshake {
 public:
  Handshake(const Config& config, int own, int peer, std::string name, Port& spare);

  // Makes `per_device` queue pairs on each device and says hello.
  void begin(const std::vector<std::unique_ptr<Device>>& devices, size_t per_device);
  // Goes as far as what has come allows; makes `port` when it gets there.
  void proceed(Landing& landing, Registrations* registrations, std::unique_ptr<IbPort>& port);
  bool over() const { return stage_ == Stage::kOver; }
  const std::string& name() const { return name_; }

  Hello& hello_in() { return hello_in_; }
  void heard(Word word, uint64_t value);
  // A probe has crossed, or not.
  void completed(const ibv_wc& completion);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kProbeLimit{3};
  enum class Stage : uint8_t { kHello, kReady, kProbe, kVerdict, kGo, kOver };

  bool has_heard(Word word) const { return heard_[static_cast<size_t>(word)]; }
  uint64_t value(Word word) const { return values_[static_cast<size_t>(word)]; }
  void say(Word word, uint64_t value);
  void connect();
  void probe();
  void settle(Landing& landing, Registrations& registrations, std::unique_ptr<IbPort>& port);

  const Config& config_;
  const int own_, peer_;
  const std::string name_;
  Port& spare_;
  Stage stage_ = Stage::kHello;
  std::vector<Lane> lanes_;
  Hello hello_out_, hello_in_;
  std::array<bool, kWords> heard_{};
  std::array<uint64_t, kWords> values_{};
  uint64_t usable_ = 0;    // lanes, a bit each
  uint64_t answered_ = 0;  // whose probe was completed, one way or the other
  Clock::time_point probed_;
};

}  // namespace tessera::ib
