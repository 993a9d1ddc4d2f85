#include "transports/tcp/engine.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/deadline.h"
#include "transports/tcp/farewell.h"

namespace tessera::tcp {
namespace {

constexpr std::chrono::seconds kLookEvery{1};

// Data or a probe was sent again, and nothing has been heard since the last look. A peer that is
// merely slow to read answers probes.
bool silent(int fd) {
  tcp_info info = {};
  socklen_t bytes = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return false;
  return (info.tcpi_retransmits > 0 || info.tcpi_probes > 0) &&
         std::chrono::milliseconds(info.tcpi_last_ack_recv) >= kLookEvery;
}

}  // namespace

Result<std::unique_ptr<PortEngine>> Engine::create(std::vector<Connection> connections, int rank,
                                                   Landing& landing,
                                                   std::unique_ptr<Reunion> reunion) {
  std::unique_ptr<Engine> engine(new Engine());
  if (Status status = engine->links_.open(); !status.ok()) return status;
  for (Connection& connection : connections) {
    auto port =
        std::make_unique<TcpPort>(engine->links_, landing, rank, connection.peer,
                                  std::move(connection.name), std::move(connection.sockets));
    for (const auto& link : port->sockets()) {
      if (Status status = engine->links_.add(*link); !status.ok()) return status;
      engine->alive_.push_back(link.get());
    }
    if (port->on_several_rails()) {
      engine->acknowledging_.push_back(port.get());
      if (reunion != nullptr) reunion->watch(*port, std::move(connection.ways));
    }
    const auto peer = static_cast<size_t>(connection.peer);
    engine->ports_.resize(std::max(engine->ports_.size(), peer + 1));
    engine->ports_[peer] = std::move(port);
  }
  engine->reunion_ = std::move(reunion);
  engine->next_look_ = std::chrono::steady_clock::now() + kLookEvery;
  return std::unique_ptr<PortEngine>(std::move(engine));
}

Engine::~Engine() { say_farewell(alive_); }

Port* Engine::port(int rank) {
  if (rank < 0 || static_cast<size_t>(rank) >= ports_.size()) return nullptr;
  return ports_[static_cast<size_t>(rank)].get();
}

bool Engine::progress() {
  bool moved = links_.flush();
  if (links_.any_uncopied()) {
    for (Link* link : alive_) links_.settle(*link);
  }
  // A read in vain holds the socket's lock, for which what arrives has to wait; asking does not.
  const bool unasked = alive_.size() <= kReadUnasked && !in_vain_;
  bool served = false;
  if (unasked) {
    for (Link* link : alive_) receive(*link, served);
  }
  if ((!unasked || links_.any_blocked()) && serve_ready(!unasked)) served = true;
  in_vain_ = !served;
  if (served) moved = true;
  end_failed();
  if (acknowledge()) links_.flush();
  if (!moved || ++busy_calls_ % kLookWhenBusy == 0) look_around();
  if (some_died_) forget_dead();
  return moved;
}

bool Engine::serve_ready(bool read) {
  bool moved = false;
  for (const epoll_event& event : links_.ready()) {
    Link& link = *static_cast<Link*>(event.data.ptr);
    if (!link.alive) continue;
    if ((event.events & EPOLLOUT) != 0) {
      if (links_.resume(link)) moved = true;
    }
    if (read && (event.events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) receive(link, moved);
  }
  return moved;
}

bool Engine::receive(Link& link, bool& moved) {
  if (!link.alive) return false;
  switch (link.reader.read(link.fd.get(), *link.port, moved)) {
    case FrameReader::Outcome::kDrained:
      return false;
    case FrameReader::Outcome::kMore:
      return true;
    case FrameReader::Outcome::kEnded:
      some_died_ = true;
      link.port->lost(link, link.reader.between_frames() ? "closed by the peer"
                                                         : "closed by the peer in mid-message");
      break;
    case FrameReader::Outcome::kFailed:
      some_died_ = true;
      link.port->lost(link, std::strerror(errno));
      break;
    case FrameReader::Outcome::kRefused:
      some_died_ = true;
      link.port->refused(link, link.reader.refused());
      break;
  }
  return false;
}

// What the peer sent before the connection broke is still handed over.
void Engine::end_failed() {
  for (Link* link : links_.take_failed()) {
    bool moved = false;
    while (receive(*link, moved)) {
    }
    some_died_ = true;
    link->port->lost(*link, link->failure);
  }
}

bool Engine::acknowledge() {
  bool any = false;
  for (TcpPort* port : acknowledging_) {
    if (port->acknowledge()) any = true;
  }
  return any;
}

void Engine::reunite(std::chrono::steady_clock::time_point now) {
  std::vector<Link*> back;
  reunion_->proceed(now, back);
  for (Link* link : back) {
    if (std::find(alive_.begin(), alive_.end(), link) == alive_.end()) alive_.push_back(link);
  }
}

void Engine::look_around() {
  const auto now = std::chrono::steady_clock::now();
  if (reunion_ != nullptr && now >= reunion_->next()) reunite(now);
  if (now < next_look_) return;
  next_look_ = now + kLookEvery;
  for (Link* link : alive_) {
    if (!link->alive) continue;
    link->silent_seconds = silent(link->fd.get()) ? link->silent_seconds + 1 : 0;
    if (link->silent_seconds < link->silence_limit) continue;
    some_died_ = true;
    link->port->lost(*link, "no sign of life from its host");
  }
}

void Engine::forget_dead() {
  some_died_ = false;
  std::erase_if(alive_, [](const Link* link) { return !link->alive; });
}

void Engine::retract() {
  for (Link* link : alive_) link->reader.retract();
  for (const auto& port : ports_) {
    if (port != nullptr) port->retract();
  }
  await_pages();
}

// Pages that the kernel sends from are the user's again, who may write them: a peer that does not take
// them soon is to get nothing rather than that.
void Engine::await_pages() {
  const Deadline deadline = Deadline::after(kPatienceWithPages);
  for (Link* link : alive_) {
    while (link->alive && link->zero_copy.pending() > 0) {
      links_.settle(*link);
      if (link->zero_copy.pending() == 0) break;
      if (deadline.passed()) {
        some_died_ = true;
        link->port->lost(*link, "it did not take what a call that failed here had sent");
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }
}

bool Engine::flushed() const {
  return links_.all_sent() && std::all_of(acknowledging_.begin(), acknowledging_.end(),
                                          [](const TcpPort* port) { return port->settled(); });
}

std::chrono::nanoseconds Engine::due_in() const {
  if (alive_.empty()) return std::chrono::nanoseconds::max();
  const auto next = reunion_ != nullptr ? std::min(next_look_, reunion_->next()) : next_look_;
  return std::max<std::chrono::nanoseconds>(next - std::chrono::steady_clock::now(),
                                            std::chrono::nanoseconds(0));
}

}  // namespace tessera::tcp
