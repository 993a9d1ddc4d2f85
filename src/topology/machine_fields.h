// The fields of the parts of a Machine, by name, for what treats all of them alike: comparison,
// merging.
//
// fields(a, b, visit) calls visit(name, field of a, field of b) for what a part states about itself;
// places(a, b, visit) does so for the indices of its neighbours.
#pragma once

#include <concepts>

#include "topology/machine.h"

namespace tessera::topology {

template <class A, class Part>
concept Is = std::same_as<std::remove_const_t<A>, Part>;

template <Is<Cpu> A, class Visit>
void fields(A& a, const Cpu& b, Visit&& visit) {
  visit("numa", a.numa, b.numa);
  visit("affinity", a.affinity, b.affinity);
  visit("arch", a.arch, b.arch);
  visit("vendor", a.vendor, b.vendor);
  visit("family", a.family, b.family);
  visit("model", a.model, b.model);
  visit("memory", a.memory_bytes, b.memory_bytes);
  visit("other attributes", a.others, b.others);
}

template <Is<Pci> A, class Visit>
void fields(A& a, const Pci& b, Visit&& visit) {
  visit("bus id", a.bus_id, b.bus_id);
  visit("class", a.pci_class, b.pci_class);
  visit("kind", a.kind, b.kind);
  visit("vendor", a.vendor, b.vendor);
  visit("device", a.device, b.device);
  visit("subsystem vendor", a.subsystem_vendor, b.subsystem_vendor);
  visit("subsystem device", a.subsystem_device, b.subsystem_device);
  visit("link speed", a.link_gts, b.link_gts);
  visit("link width", a.link_width, b.link_width);
  visit("link bandwidth", a.link_gigabytes, b.link_gigabytes);
  visit("name", a.name, b.name);
  visit("other attributes", a.others, b.others);
}

template <Is<Gpu> A, class Visit>
void fields(A& a, const Gpu& b, Visit&& visit) {
  visit("device", a.device, b.device);
  visit("rank", a.rank, b.rank);
  visit("compute capability", a.compute_capability, b.compute_capability);
  visit("gcn", a.gcn, b.gcn);
  visit("direct RDMA", a.direct_rdma, b.direct_rdma);
  visit("names", a.names, b.names);
  visit("other attributes", a.others, b.others);
}

template <Is<Nic> A, class Visit>
void fields(A& a, const Nic& b, Visit&& visit) {
  visit("other attributes", a.others, b.others);
}

template <Is<Net> A, class Visit>
void fields(A& a, const Net& b, Visit&& visit) {
  visit("name", a.name, b.name);
  visit("device", a.device, b.device);
  visit("port", a.port, b.port);
  visit("speed", a.megabits, b.megabits);
  visit("guid", a.guid, b.guid);
  visit("direct RDMA", a.direct_rdma, b.direct_rdma);
  visit("latency", a.latency_us, b.latency_us);
  visit("connections", a.max_connections, b.max_connections);
  visit("collectives", a.collectives, b.collectives);
  visit("other attributes", a.others, b.others);
}

template <Is<PeerLink> A, class Visit>
void fields(A& a, const PeerLink& b, Visit&& visit) {
  visit("kind", a.kind, b.kind);
  visit("target", a.target, b.target);
  visit("target id", a.target_id, b.target_id);
  visit("target class", a.target_class, b.target_class);
  visit("count", a.count, b.count);
  visit("bandwidth", a.megabytes, b.megabytes);
  visit("other attributes", a.others, b.others);
}

template <class Visit>
void places(const Cpu& a, const Cpu& b, Visit&& visit) {
  visit("host", a.host, b.host);
}

template <class Visit>
void places(const Pci& a, const Pci& b, Visit&& visit) {
  visit("cpu", a.cpu, b.cpu);
  visit("parent", a.parent, b.parent);
}

template <class Visit>
void places(const Gpu& a, const Gpu& b, Visit&& visit) {
  visit("pci", a.pci, b.pci);
}

template <class Visit>
void places(const Nic& a, const Nic& b, Visit&& visit) {
  visit("cpu", a.cpu, b.cpu);
  visit("pci", a.pci, b.pci);
}

template <class Visit>
void places(const Net& a, const Net& b, Visit&& visit) {
  visit("nic", a.nic, b.nic);
}

template <class Visit>
void places(const PeerLink& a, const PeerLink& b, Visit&& visit) {
  visit("gpu", a.gpu, b.gpu);
  visit("pci", a.pci, b.pci);
  visit("target cpu", a.target_cpu, b.target_cpu);
}

}  // namespace tessera::topology
