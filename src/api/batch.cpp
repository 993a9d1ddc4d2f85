#include "api/batch.h"

namespace tessera::api {

void Batch::add_member(const std::shared_ptr<CommState>& state, bool reports) {
  state->ordered = true;
  if (reports) state->progress.begin();
  members.push_back({state, state->turns.take(), reports});
}

Status Batch::run() {
  for (const Member& member : members) member.state->turns.wait(member.ticket);
  Status status = execute(works);
  for (const Member& member : members) {
    member.state->turns.done();
    if (member.reports) member.state->progress.end(status);
  }
  return status;
}

void enqueue(Stream& stream, Batch batch) {
  stream.enqueue([batch = std::make_shared<Batch>(std::move(batch))] {
    Batch mine = std::move(*batch);
    return mine.run();
  });
}

}  // namespace tessera::api
