#include "tuner/emulated_site.h"

namespace tessera {

void describe_emulated(const emulated::Links& links, Site& site) {
  site.hosts = count_hosts(links.hosts);
  if (site.hosts == 1) return;
  site.host_of = links.hosts;
  for (int rank = 1; rank < links.ranks; ++rank) {
    if (links.hosts[rank] == links.hosts[0]) continue;
    site.network.latency = static_cast<double>(links.way(0, rank).latency.count()) / 1e3;
    site.network.bandwidth = links.rate(0, rank) * 1e3;
    return;
  }
}

}  // namespace tessera
