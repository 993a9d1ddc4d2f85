#include "api/estimate.h"

#include <algorithm>
#include <map>

namespace tessera::api {

double estimate_microseconds(std::span<const Work> works) {
  // Communicators run at the same time, the works of one after the other.
  std::map<const Communicator*, double> by_comm;
  double longest = 0;
  for (const Work& work : works)
    longest = std::max(longest, by_comm[work.comm] += work.comm->estimate(work.call));
  return longest;
}

}  // namespace tessera::api
