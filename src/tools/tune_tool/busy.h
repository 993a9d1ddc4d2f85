// Whether other work disturbs what is measured.
//
// Thread safety: any thread; takes a fifth of a second of all usable cores.
#pragma once

namespace tessera::tune {

// The share of the time, 0 to 1, in which threads that did nothing but look at the clock, one for
// each core, were kept from it: by other processes, or other virtual machines.
double disturbance(int cores);

// A line to standard error where it is so much that times would mislead.
void warn_if_disturbed(int cores);

}  // namespace tessera::tune
