// The products of T3's evaluation, scaled down: for each model and tensor-parallel degree the four
// products of a layer whose results are all-reduced.
//
//   name   product                                m        n   k
//   OP     output projection, forward             tokens   H   H / TP
//   FC-2   second layer of the MLP, forward       tokens   H   4 H / TP
//   FC-1   first layer of the MLP, backward       tokens   H   4 H / TP
//   IP     input projection, backward             tokens   H   3 H / TP
//
// Hidden sizes, tokens and degrees: the models' published ones, as T3 uses them.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace perf::fused {

struct Product {
  std::string name;  // "gpt-3/32 FC-2"
  int64_t m = 0, n = 0, k = 0;
};

// All products, each scaled by one factor for its three sides so that it has about `gflop`; m is a
// multiple of `rows`, n and k of 16.
std::vector<Product> sublayers(double gflop, int64_t rows);

}  // namespace perf::fused
