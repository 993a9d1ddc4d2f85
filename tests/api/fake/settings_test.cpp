// ncclConfig_t: the table, sizes and versions, what is allowed, inheritance.
#include "api/settings.h"

#include <cstring>

#include "api/fake/fixture.h"

namespace tessera::api {
namespace {

using ::testing::HasSubstr;

constexpr int kUnset = NCCL_CONFIG_UNDEF_INT;

int& field_of(ncclConfig_t* config, const SettingsField& field) {
  return *reinterpret_cast<int*>(reinterpret_cast<char*>(config) + field.offset);
}

TEST(SettingsTest, TheTableCoversEveryByteOfTheStructureOnce) {
  size_t next = offsetof(ncclConfig_t, blocking);
  for (const SettingsField& field : settings_fields()) {
    EXPECT_EQ(field.offset, next) << field.name;
    next += field.kind == FieldKind::kInt ? sizeof(int) : sizeof(char*);
    EXPECT_GE(field.since, 21400) << field.name;
  }
  EXPECT_EQ(next, sizeof(ncclConfig_t));
}

TEST(SettingsTest, WithoutAStructureEveryFieldHasItsDefault) {
  Result<Settings> settings = read_settings(nullptr, -1, nullptr);
  ASSERT_TRUE(settings.ok());
  for (const SettingsField& field : settings_fields()) {
    if (field.kind == FieldKind::kInt) {
      EXPECT_EQ(field_of(&settings->values, field), field.fallback) << field.name;
    }
  }
  EXPECT_TRUE(settings->blocking());
}

TEST(SettingsTest, EveryLimitIsAllowedAndWhatLiesBeyondIsRefusedByName) {
  for (const SettingsField& field : settings_fields()) {
    if (field.kind != FieldKind::kInt || std::string(field.name) == "trafficClass") continue;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = INT_MAX;
    field_of(&config, field) = static_cast<int>(field.min);
    if (std::string(field.name) == "maxCTAs") config.minCTAs = 1;
    EXPECT_TRUE(read_settings(&config, -1, nullptr).ok()) << field.name;
    for (const long long bad : {field.min - 1, field.max + 1}) {
      if (bad > INT_MAX) continue;
      field_of(&config, field) = static_cast<int>(bad);
      const Status status = read_settings(&config, -1, nullptr).status();
      EXPECT_EQ(status.code(), Code::kInvalidArgument) << field.name << " " << bad;
      EXPECT_THAT(status.message(), HasSubstr(field.name));
    }
  }
}

TEST(SettingsTest, MinimumAndMaximumMustFit) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.minCTAs = 9;
  config.maxCTAs = 8;
  EXPECT_EQ(read_settings(&config, -1, nullptr).status().code(), Code::kInvalidArgument);
}

TEST(SettingsTest, AStructureWithoutTheMagicNumberIsRefused) {
  ncclConfig_t config = {};
  EXPECT_EQ(read_settings(&config, -1, nullptr).status().code(), Code::kInvalidArgument);
  config = NCCL_CONFIG_INITIALIZER;
  config.magic = 0;
  EXPECT_EQ(read_settings(&config, -1, nullptr).status().code(), Code::kInvalidArgument);
}

TEST(SettingsTest, FieldsNewerThanTheCallersVersionAreNotRead) {
  for (const SettingsField& field : settings_fields()) {
    if (field.kind != FieldKind::kInt) continue;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.version = field.since - 1;
    field_of(&config, field) = -12345;
    Result<Settings> settings = read_settings(&config, -1, nullptr);
    ASSERT_TRUE(settings.ok()) << field.name;
    EXPECT_EQ(field_of(&settings->values, field), field.fallback) << field.name;
  }
}

TEST(SettingsTest, BytesBeyondTheCallersSizeAreNotRead) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.size = offsetof(ncclConfig_t, minCTAs);
  config.cgaClusterSize = 3;
  config.minCTAs = -5;
  config.commName = reinterpret_cast<const char*>(1);
  Result<Settings> settings = read_settings(&config, -1, nullptr);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->values.cgaClusterSize, 3);
  EXPECT_EQ(settings->values.minCTAs, 1);
}

TEST(SettingsTest, ALaterAndLongerStructureIsReadAsFarAsItIsKnown) {
  struct {
    ncclConfig_t known;
    int later[10];
  } config = {NCCL_CONFIG_INITIALIZER, {}};
  config.known.size = sizeof(config);
  config.known.version = 23100;
  config.known.blocking = 0;
  Result<Settings> settings = read_settings(&config.known, -1, nullptr);
  ASSERT_TRUE(settings.ok());
  EXPECT_FALSE(settings->blocking());
}

TEST(SettingsTest, TheEnvironmentWins) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  EXPECT_FALSE(read_settings(&config, 0, nullptr)->blocking());
  config.blocking = 0;
  EXPECT_TRUE(read_settings(&config, 1, nullptr)->blocking());
}

TEST(SettingsTest, AChildInheritsWhatItsStructureLeavesUnset) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.maxCTAs = 7;
  config.commName = "parent";
  Result<Settings> parent = read_settings(&config, -1, nullptr);
  ASSERT_TRUE(parent.ok());
  ncclConfig_t own = NCCL_CONFIG_INITIALIZER;
  own.maxCTAs = 5;
  Result<Settings> child = read_settings(&own, -1, &parent.value());
  EXPECT_FALSE(child->blocking());
  EXPECT_EQ(child->values.maxCTAs, 5);
  EXPECT_EQ(child->comm_name, "");
  EXPECT_EQ(read_settings(nullptr, -1, &parent.value())->values.maxCTAs, 7);
}

TEST(SettingsTest, UnsetIsNotAValue) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  for (const SettingsField& field : settings_fields()) {
    if (field.kind == FieldKind::kInt) {
      EXPECT_EQ(field_of(&config, field), kUnset) << field.name;
    }
  }
}

}  // namespace
}  // namespace tessera::api
