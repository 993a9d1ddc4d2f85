// The JSON report (-J), nccl-tests' format 3 with tessera's fields added to each placement.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "common/options.h"

namespace tessera::perf {

struct Result;
struct DeviceLine;

class JsonReport {
 public:
  // Nothing is written before write(). An existing file is kept: a number is added to the name.
  JsonReport(const Options& options, int argc, char** argv);

  // Why a report of this name cannot be written; empty: it can. Leaves no file.
  static std::string check(const std::string& wanted);

  void devices(std::span<const DeviceLine> devices);
  void row(std::span<const Result> placements);
  // bandwidth_okay: null: not checked.
  void summary(int out_of_bounds, double average, const bool* bandwidth_okay);
  // The name of the file written; empty: it could not be.
  std::string write();

 private:
  const Options& options_;
  nlohmann::ordered_json document_;
};

}  // namespace tessera::perf
