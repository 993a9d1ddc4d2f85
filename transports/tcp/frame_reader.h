// Takes frames from one socket. Small ones come many at a time through a buffer; the bytes of a
// large put go straight to their place.
//
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <memory>

#include "device/port.h"
#include "transports/tcp/frame.h"

namespace tessera::tcp {

// Where a frame reader delivers.
class FrameSink {
 public:
  enum class Verdict { kStore, kDiscard, kRefuse };

  virtual ~FrameSink() = default;
  // What to do with the bytes of a put; kStore: they go to `place`.
  virtual Verdict place(const FrameHeader& header, std::byte*& place) = 0;
  // A frame has come whole. False: refused.
  virtual bool arrived(const FrameHeader& header) = 0;
  // The frame has meanwhile come another way: the rest of its bytes must not be stored.
  virtual bool superseded(const FrameHeader& header) const = 0;
};

class FrameReader {
 public:
  enum class Outcome {
    kDrained,  // nothing more now
    kMore,     // there may be more
    kEnded,    // the peer has closed; kFailed: see errno
    kFailed,
    kRefused,  // the frame refused() is malformed or the sink does not want it
  };

  FrameReader();

  // Reads for a bounded time. `moved` becomes true if a frame came whole.
  Outcome read(int fd, FrameSink& sink, bool& moved);
  // What is still to come for a place in user memory is discarded.
  void retract() {
    if (header_.position >= kUserMemory) place_ = nullptr;
  }
  const FrameHeader& refused() const { return header_; }
  // The stream stands between two frames.
  bool between_frames() const { return remaining_ == 0 && begin_ == end_; }

 private:
  static constexpr size_t kBufferBytes = 16 * 1024;
  // Puts up to so long land whole: who looks at a record that no signal announces sees the old one or
  // the new one, never half of each.
  static constexpr size_t kWhole = 4 * 1024;
  static constexpr int kMaxCalls = 16;  // of recvmsg per read()

  ssize_t receive(int fd, size_t& asked);
  bool take(size_t bytes, FrameSink& sink, bool& moved);
  bool parse(FrameSink& sink, bool& moved);
  bool begin_put(FrameSink& sink, bool& moved);

  std::unique_ptr<std::byte[]> buffer_;
  size_t begin_ = 0, end_ = 0;  // what is in the buffer
  FrameHeader header_;          // of the frame under way
  std::byte* place_ = nullptr;  // of its next byte; null: discard
  size_t remaining_ = 0;        // its bytes that have not come; then the buffer is empty
};

}  // namespace tessera::tcp
