// The connection to one peer: a port over RC queue pairs (lanes), with a port of another transport
// as spare.
//
// Small puts and signals travel as frames in messages (message.h) over the first lane. A large put
// is an RDMA write from its shadow. A signal's message is posted after the writes before it: one
// queue pair keeps the order; what was written over other lanes is waited for first.
//
//   put      <= kMostFrameBytes   a frame
//            >                    asks the receiver for a key (once for a block of the arena, every
//                                 time for user memory), then writes; refused: frames
//
// Credits: a sender has at most kWindow messages on their way that the receiver has not taken in.
//
// Failure: a request that fails, or a device that reports an error, ends the use of all lanes. Both
// ends stop their queue pairs, take in what has come, and tell each other over the spare how many
// messages that was. What came after that leaves over the spare: message buffers and shadows still
// hold it. From then on the spare carries everything.
//
// Thread safety: one thread, that of the engine.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/port.h"
#include "transports/ib/post_queue.h"
#include "transports/ib/queue_pair.h"
#include "transports/ib/sent_log.h"

namespace tessera::ib {

struct Lane {
  std::unique_ptr<QueuePair> pair;
  size_t device;  // its index in the engine, and of its keys in registrations
};

class IbPort final : public Port {
 public:
  enum class State : uint8_t {
    kActive,
    kFailing,  // queue pairs are stopped; what has come is taken in
    kSpare,    // the spare carries everything
    kClosed,
  };

  // Of rank `own`. `name`: the peer's, for messages. All but the port's own memory outlives it.
  IbPort(Landing& landing, Registrations& registrations, Port& spare, int own, int peer,
         std::string name, std::vector<Lane> lanes);
  ~IbPort() override;
  // Registers the message buffers and posts the receives. kSystem.
  Status open();

  void put(uint64_t position, const std::byte* data, std::byte* shadow, size_t bytes) override;
  void signal(const PortSignal& signal) override;

  // Posts what can go. True if there was any.
  bool pump();
  // A request of this port was completed. True if something was handed to the landing.
  bool completed(const ibv_wc& completion);
  bool uses(size_t device) const;

  // Stops using RDMA.
  void fail(const std::string& why);
  // Once all that had come is taken in, or there is no hope of more: how many messages that was;
  // 0 before and after, else the number plus one.
  uint64_t farewell();
  // The peer has stopped, too; it had taken in so many messages.
  void peer_stopped(uint64_t taken);
  void close() { state_ = State::kClosed; }

  State state() const { return state_; }
  // No user memory is read any more, and all posted is with the device.
  bool flushed() const;
  bool delivered() const { return flushed() && sent_.empty(); }
  // User memory is given back.
  void retract();

  struct Carried {
    uint64_t messages = 0, writes = 0, bytes_written = 0;
  };
  Carried carried() const { return {messages_, writes_, bytes_written_}; }

  static uint64_t request_id(int peer, size_t lane, bool receive, uint32_t index);
  static int peer_of(uint64_t id) { return static_cast<int>(id >> 32); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMostWrite = size_t{8} << 20;  // of one request
  static constexpr size_t kMinStripe = size_t{64} << 10;
  static constexpr std::chrono::seconds kDrainLimit{1};

  struct Granted {
    uint64_t question;
    Registration* registration;
  };

  // Sending
  bool active() const { return state_ == State::kActive; }
  bool open_message(uint64_t limit);
  bool append(const Frame& frame, const void* bytes);
  bool post_message();
  bool push(Post& post);
  bool push_in_frames(Post& post);
  bool push_in_writes(Post& post);
  bool write(Post& post, const Grant& grant, uint64_t offset);
  const Grant* grant_at(const Post& post, uint64_t position, uint64_t& offset) const;
  void ask(Post& post);
  void finish(Post& post);
  void release(Sent& sent);
  std::byte* send_buffer(uint64_t message) {
    return buffers_.get() + message % kBuffers * kMessageBytes;
  }
  std::byte* receive_buffer(uint32_t i) { return buffers_.get() + (kBuffers + i) * kMessageBytes; }

  // Receiving
  bool post_receive(uint32_t buffer);
  bool take_message(const std::byte* message, size_t bytes);
  bool take_frame(const Frame& frame, const std::byte* bytes);
  bool answer(const Frame& ask);
  void granted(const Frame& frame, const GrantKeys& keys);
  void done(uint64_t question);
  void refuse(const Frame& frame);

  // Failing
  void resend();
  void resend_message(const std::byte* message, size_t bytes);
  void give_up_grants();
  std::string describe(const ibv_wc& completion) const;

  Landing& landing_;
  Registrations& registrations_;
  Port& spare_;
  const int own_;
  const int peer_;
  const std::string name_;
  std::vector<Lane> lanes_;
  State state_ = State::kActive;

  std::unique_ptr<std::byte[]> buffers_;  // of messages: to send, then to receive
  Registration* buffer_registration_ = nullptr;

  PostQueue queue_;
  std::vector<Frame> answers_;  // questions and grants: they overtake the queue
  std::vector<GrantKeys> answer_keys_;
  SentLog sent_;
  size_t open_bytes_ = 0;     // of the message being filled; 0: none
  uint64_t messages_ = 0;     // sent, or open
  uint64_t peer_taken_ = 0;   // of them
  uint64_t user_writes_ = 0;  // under way from user memory
  uint64_t side_writes_ = 0;  // under way on lanes other than the first
  uint64_t writes_ = 0, bytes_written_ = 0;
  size_t turn_ = 0;
  uint64_t questions_ = 0;
  std::map<uint64_t, Grant> grants_;  // of the communicator's memory, by position
  bool arena_refused_ = false;

  uint64_t taken_ = 0, told_ = 0;
  int receives_posted_ = 0;
  std::vector<Granted> granted_;  // to the peer

  std::string broken_;  // why RDMA will be given up
  Clock::time_point stopped_;
  bool said_farewell_ = false, peer_stopped_ = false;
  uint64_t peer_took_ = 0;
};

}  // namespace tessera::ib
