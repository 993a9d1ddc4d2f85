#include "comm/rendezvous.h"

namespace tessera {

void Rendezvous::start(AnnouncementBoard& own, uint64_t number, std::span<const Party> parties,
                       int peer, const CallRecord& call, const BufferNote& input,
                       const BufferNote& output, uint64_t scalar) {
  parties_ = parties;
  number_ = number;
  seen_ = exchanged_ = 0;
  disagrees_ = false;
  if (theirs_.size() < parties.size()) theirs_.resize(parties.size());
  mine_ = {call,
           input,
           output,
           scalar,
           sharing_.freed(peer),
           sharing_.shareable(input) && sharing_.shareable(output),
           0};
  all_shareable_ = mine_.shareable != 0;
  own.entries[number % 2] = mine_;
  own.announced.counter.publish_value(number);
  for (const Party& party : parties) {
    all_shareable_ = all_shareable_ && !core_.elsewhere(party.rank);
    core_.share(party.rank, &own.entries[number % 2], sizeof mine_);
    core_.share_value(party.rank, own.announced.counter);
    core_.ring(party.rank);
  }
}

Result<bool> Rendezvous::advance(int spins) {
  for (; seen_ < parties_.size(); ++seen_) {
    const Party& party = parties_[seen_];
    for (int left = spins; !party.board->announced.counter.reached(number_); --left) {
      if (left <= 0) return false;
      pause();
    }
    const Announcement& theirs = theirs_[seen_] = party.board->entries[number_ % 2];
    disagrees_ = theirs.call.fingerprint != mine_.call.fingerprint;
    if (disagrees_) return false;
    if (theirs.freed != 0) sharing_.forget(party.rank, theirs.freed);
    all_shareable_ = all_shareable_ && theirs.shareable != 0;
  }
  return share();
}

Result<bool> Rendezvous::share() {
  if (!all_shareable_ || core_.one_process) return true;
  for (; exchanged_ < parties_.size() * 4; ++exchanged_) {
    const size_t party = exchanged_ % parties_.size();
    const int rank = parties_[party].rank;
    Result<bool> done = true;
    switch (exchanged_ / parties_.size()) {  // all gives come before all takes
      case 0:
        done = sharing_.give(rank, mine_.input);
        break;
      case 1:
        done = sharing_.give(rank, mine_.output);
        break;
      case 2:
        done = sharing_.take(rank, theirs_[party].input);
        break;
      default:
        done = sharing_.take(rank, theirs_[party].output);
        break;
    }
    if (!done.ok() || !done.value()) return done;
  }
  return true;
}

}  // namespace tessera
