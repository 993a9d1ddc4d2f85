// Whatever bytes a topology file holds: reading ends, and what was read is written and merged so
// that nothing changes but its form.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "topology/merge.h"
#include "topology/nccl_form.h"
#include "topology/nccl_xml.h"

namespace {

using tessera::topology::difference;
using tessera::topology::Machine;

void require_equal(const Machine& a, const Machine& b) {
  if (difference(a, b).empty()) return;
  fmt::print(stderr, "{}\n", difference(a, b));
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto machine = tessera::topology::parse_nccl_xml(text, "fuzz.xml");
  if (!machine.ok()) {
    if (machine.status().message().rfind("fuzz.xml:", 0) != 0) std::abort();
    return 0;
  }
  const auto again =
      tessera::topology::parse_nccl_xml(write_nccl_xml(machine.value()), "written.xml");
  if (!again.ok()) {
    fmt::print(stderr, "{}\n", again.status().message());
    std::abort();
  }
  require_equal(in_nccl_form(machine.value()), again.value());
  const Machine one = tessera::topology::merge(std::span(&machine.value(), 1));
  const Machine pair[] = {machine.value(), one};
  const Machine reversed[] = {one, machine.value()};
  require_equal(tessera::topology::merge(pair), tessera::topology::merge(reversed));
  return 0;
}
