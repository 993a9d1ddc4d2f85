#include "fused/sublayers.h"

#include <algorithm>
#include <cmath>

namespace perf::fused {
namespace {

struct Model {
  const char* name;
  double hidden, tokens;
  int degree;
};
constexpr Model kModels[] = {
    {"mega-gpt-2", 3072, 16 * 1024, 8}, {"mega-gpt-2", 3072, 16 * 1024, 16},
    {"t-nlg", 4256, 8 * 1024, 8},       {"t-nlg", 4256, 8 * 1024, 16},
    {"gpt-3", 12288, 2 * 1024, 32},     {"palm", 18432, 2 * 1024, 32},
    {"mt-nlg", 20480, 2 * 1024, 32},
};

struct Layer {
  const char* name;
  double depth;  // k in hidden / degree
};
constexpr Layer kLayers[] = {{"OP", 1}, {"FC-2", 4}, {"FC-1", 4}, {"IP", 3}};

int64_t multiple(double value, int64_t of) {
  return std::max<int64_t>(1, std::llround(value / static_cast<double>(of))) * of;
}

}  // namespace

std::vector<Product> sublayers(double gflop, int64_t rows) {
  std::vector<Product> products;
  for (const Model& model : kModels) {
    for (const Layer& layer : kLayers) {
      const double k = layer.depth * model.hidden / model.degree;
      const double scale = std::cbrt(gflop * 1e9 / (2 * model.tokens * model.hidden * k));
      products.push_back(
          {std::string(model.name) + "/" + std::to_string(model.degree) + " " + layer.name,
           multiple(model.tokens * scale, rows), multiple(model.hidden * scale, 16),
           multiple(k * scale, 16)});
    }
  }
  return products;
}

}  // namespace perf::fused
