// Reader and writer of NCCL topology files (NCCL_TOPO_FILE): version 1, and version 2 of RCCL.
//
//   system - cpu - pci - pci - gpu - nvlink, xgmi, c2c
//                   |     `- nic - net
//                   `- pcilink
//
// What is malformed is one error with file, line, element and attribute. What is odd but readable
// is read and gives a warning, one line per oddity: unknown NUMA nodes, bus ids that occur twice
// (they stay separate), widths and speeds that say nothing, links of a GPU to itself (dropped),
// ports faster than any port is (their PCIe link limits them), and more.
//
// An element that lacks its parent gets one that states nothing: a pci or nic outside any cpu, a
// gpu outside any pci, a net outside any nic. Elements that fit nowhere are dropped with a warning.
//
// Writing: the machine in the form in which NCCL reads it (nccl_form.h). That form reads back as it
// was written, if parts lie in the order of the description (each pci before what is below it).
//
// Thread safety: pure functions but for the file access. Time and memory are linear in the text.
#pragma once

#include <string>

#include "base/status.h"
#include "topology/machine.h"

namespace tessera::topology {

Result<Machine> read_nccl_xml(const std::string& path);
// `source` names the text in errors.
Result<Machine> parse_nccl_xml(std::string text, std::string source);

std::string write_nccl_xml(const Machine& machine);
// Replaces the file as a whole: nobody sees it half written.
Status save_nccl_xml(const Machine& machine, const std::string& path);

}  // namespace tessera::topology
