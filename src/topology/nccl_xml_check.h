// What follows from the parts of a file together: kinds of PCI devices, and oddities that one
// element does not show.
#pragma once

#include "topology/machine.h"
#include "topology/nccl_xml_element.h"

namespace tessera::topology {

// From class and children: a gpu child makes a GPU, a nic child a NIC, pci children a bridge.
void classify_pcis(Machine& machine);

// Classifies; warns; limits speeds of ports that no port has to their PCIe link.
void check_nccl_machine(Machine& machine, Warnings& warnings);

// What a PCIe link moves in one direction after its line code, in 10^6 bits per second; 0: unknown.
double pcie_megabits(const Pci& pci);

}  // namespace tessera::topology
