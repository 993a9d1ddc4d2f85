// How fast overlap can be at best, in closed form (T3). N ranks; a product of N chunks that take g
// each; a transfer of a chunk takes t; G = N g, R = (N - 1) t.
//
//   reduce-scatter      t <= g: G;  else max(G, R + max(0, 2 g - t))
//   ... and all-gather  R later: T3 leaves it as it is
//   chain               own rows first, the others as they come: the k-th of the second product's
//                       chunks arrives k t after the reduce-scatter's end, and
//                       the second product ends max(G, R + g) after it
//
// Without reduction on arrival, parts that come in wait for the whole product: the first hop is
// hidden behind it, the others follow: max(G, t) + R - t.
//
// A plan may be a little faster: its chunks are smaller than a rank's rows.
// Thread safety: pure functions. Units: microseconds.
#pragma once

namespace perf::fused {

struct Schedule {
  int ranks = 2;
  double g = 0, t = 0;

  double compute() const { return ranks * g; }
  double transfer() const { return (ranks - 1) * t; }

  double reduce_scatter() const;
  double sublayer() const { return reduce_scatter() + transfer(); }
  double chain() const;
  double without_arrival() const;
};

}  // namespace perf::fused
