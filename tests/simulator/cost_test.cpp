#include "simulator/cost.h"

#include <gtest/gtest.h>

namespace tessera::simulator {
namespace {

std::string load_error(const std::string& fields) {
  const Result<Cost> cost =
      load_cost("{\"format\": \"tessera-cost\", \"version\": 1" + fields + "}");
  if (cost.ok()) return "ok";
  EXPECT_EQ(cost.status().code(), Code::kInvalidArgument);
  return cost.status().message();
}

TEST(Cost, LoadsWhatItSaved) {
  Cost cost;
  cost.host.step_us = 0.125;
  cost.gpu.overlapped = false;
  cost.gpu.lane_gbs = 33.5;
  const Result<Cost> loaded = load_cost(save_cost(cost));
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_TRUE(loaded.value() == cost);
}

TEST(Cost, FieldsLeftOutKeepTheirDefaults) {
  const Result<Cost> loaded =
      load_cost(R"({"format": "tessera-cost", "version": 1, "gpu": {"step_us": 2}})");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  Cost expected;
  expected.gpu.step_us = 2;
  EXPECT_TRUE(loaded.value() == expected);
}

TEST(Cost, ErrorsNameThePlace) {
  EXPECT_EQ(load_error(R"(, "gpu": {"speed": 1})"),
            "cost file: gpu.speed is no field of a cost file");
  EXPECT_EQ(load_error(R"(, "disk": {})"), "cost file: disk is no field of a cost file");
  EXPECT_EQ(load_error(R"(, "host": {"step_us": "1"})"), "cost file: host.step_us is not a number");
  EXPECT_EQ(load_error(R"(, "host": {"overlapped": 1})"),
            "cost file: host.overlapped is not true or false");
  EXPECT_EQ(load_error(R"(, "host": 3)"), "cost file: host is not an object");
  EXPECT_EQ(load_error(R"(, "host": {"copy_gbs": 0})"),
            "cost file: host.copy_gbs is 0, not 1e-06 to 1000000 GB/s");
  EXPECT_EQ(load_error(R"(, "host": {"reduce_gbs": 1e-300})"),
            "cost file: host.reduce_gbs is 1e-300, not 1e-06 to 1000000 GB/s");
  EXPECT_EQ(load_error(R"(, "gpu": {"launch_us": 1e308})"),
            "cost file: gpu.launch_us is 1e+308, not 0 to 1000000000 microseconds");
  EXPECT_EQ(load_error(R"(, "gpu": {"step_us": -1})"),
            "cost file: gpu.step_us is -1, not 0 to 1000000000 microseconds");
  EXPECT_EQ(load_error(R"(, "gpu": {"step_us": 1, "step_us": 2})"),
            "cost file: gpu.step_us: the field occurs twice");
  EXPECT_EQ(load_cost("[]").status().message(), "cost file: the text is not an object");
  EXPECT_EQ(load_cost("{}").status().message(), "cost file: format is not \"tessera-cost\"");
  EXPECT_EQ(load_cost(R"({"format": "tessera-cost"})").status().message(),
            "cost file: version is not 1");
}

}  // namespace
}  // namespace tessera::simulator
