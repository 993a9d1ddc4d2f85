// Ranks that disagree are told so by name, all of them.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include "bootstrap/rendezvous.h"

namespace tessera::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

void expect_all_told(const std::vector<Result<Membership>>& results, Code code,
                     const ::testing::Matcher<const std::string&>& text) {
  for (const auto& result : results) {
    EXPECT_EQ(result.status().code(), code) << result.status().message();
    EXPECT_THAT(result.status().message(), text);
  }
}

TEST(Disagreement, ARankNumberTakenTwiceIsNamedWithBothProcesses) {
  std::vector<JoinOptions> options = ranks_of(3);
  options[2].rank = 1;
  const std::string pid = fmt::format("by pid {} on ", ::getpid());
  expect_all_told(
      join_all(new_id(), options), Code::kInvalidUsage,
      AllOf(HasSubstr("rank 1 is taken twice"), HasSubstr(pid), HasSubstr("and " + pid)));
}

TEST(Disagreement, DifferentNumbersOfRanksAreNamed) {
  std::vector<JoinOptions> options = ranks_of(3);
  options[2].ranks = 4;
  expect_all_told(join_all(new_id(), options), Code::kInvalidUsage,
                  AnyOf(HasSubstr("rank 2 says 4 ranks, rank 0 says 3"),
                        HasSubstr("rank 2 says 4 ranks, rank 1 says 3"),
                        HasSubstr("rank 0 says 3 ranks, rank 2 says 4"),
                        HasSubstr("rank 1 says 3 ranks, rank 2 says 4")));
}

TEST(Disagreement, ASettingThatDiffersIsNamedWithBothValues) {
  std::vector<JoinOptions> options = ranks_of(2);
  options[0].config.slice_bytes = 4096;
  options[1].config.slice_bytes = 8192;
  expect_all_told(join_all(new_id(), options), Code::kInvalidUsage,
                  AllOf(HasSubstr("rank 0 has TESSERA_SLICE_BYTES=\"4096\""),
                        HasSubstr("rank 1 has TESSERA_SLICE_BYTES=\"8192\"")));
}

TEST(Disagreement, SettingsThatConcernOneRankOnlyMayDiffer) {
  std::vector<JoinOptions> options = ranks_of(2);
  options[0].config.spin = 3;
  options[1].config.timeout = std::chrono::milliseconds(1234);
  expect_all_joined(join_all(new_id(), options));
}

TEST(Disagreement, ARankOutOfRangeIsRefusedBeforeItConnects) {
  for (const auto& [rank, ranks] : {std::pair{-1, 2}, {2, 2}, {0, 0}, {0, -1}}) {
    const auto result = join(new_id(), {rank, ranks, {}}, soon());
    EXPECT_EQ(result.status().code(), Code::kInvalidArgument) << rank << " of " << ranks;
    EXPECT_THAT(result.status().message(), HasSubstr("out of range"));
  }
}

TEST(Disagreement, ARankOutOfRangeIsRefusedByTheRootToo) {
  for (const auto& [rank, ranks] : {std::pair{-1, 2}, {5, 2}, {0, 0}, {0, 1 << 30}}) {
    const UniqueId id = new_id();
    const Fd fd = connect_raw(id);
    ASSERT_TRUE(send_raw(fd, frame_of(id, read_nonce(fd), hello_of(rank, ranks))));
    EXPECT_EQ(read_reply(fd).code(), Code::kInvalidUsage) << rank << " of " << ranks;
  }
}

TEST(Disagreement, AnotherVersionOfTheLibraryIsNamedToBothSides) {
  const UniqueId id = new_id();
  std::optional<Result<Membership>> result;
  std::thread rank_zero([&] { result = join(id, {0, 2, {}}, soon()); });
  const Fd fd = connect_raw(id);
  const bootstrap::Nonce nonce = read_nonce(fd);
  // As a future version would say it: the numbers first, then something unknown.
  const Key secret = content_of(id).secret;
  const std::string body = bootstrap::bytes_of(int32_t{1}) + bootstrap::bytes_of(int32_t{2}) + "?";
  bootstrap::FrameHeader header{
      bootstrap::kWireMagic, 20304, bootstrap::MessageKind::kHello, body.size(), {}};
  KeyedHash hash(secret);
  hash.add(nonce.data(), nonce.size());
  hash.add_value(header.version);
  hash.add_value(header.kind);
  hash.add_value(header.body_bytes);
  hash.add(body);
  header.tag = hash.finish();
  ASSERT_TRUE(send_raw(fd, bootstrap::bytes_of(header) + body));
  const Status told = read_reply(fd);
  rank_zero.join();
  for (const Status& status : {told, result->status()}) {
    EXPECT_EQ(status.code(), Code::kInvalidUsage);
    EXPECT_THAT(status.message(), HasSubstr("rank 1 uses tessera 2.3.4"));
    EXPECT_THAT(status.message(), HasSubstr(bootstrap::version_text(bootstrap::kVersion)));
  }
}

TEST(Disagreement, ALateComerIsToldWhatWentWrongBefore) {
  const UniqueId id = new_id();
  std::vector<JoinOptions> options = ranks_of(3);
  options.resize(2);
  options[1].rank = 0;
  expect_all_told(join_all(id, options), Code::kInvalidUsage, HasSubstr("rank 0 is taken twice"));
  const auto late = join(id, {2, 3, {}}, soon());
  EXPECT_EQ(late.status().code(), Code::kInvalidUsage);
  EXPECT_THAT(late.status().message(), HasSubstr("rank 0 is taken twice"));
}

TEST(Disagreement, WhoComesAfterTheRootsProcessHasEndedWithAnErrorIsToldWhereToLook) {
  int channel[2];
  ASSERT_EQ(::pipe(channel), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const UniqueId made = new_id();
    std::vector<JoinOptions> options = ranks_of(3);
    options.resize(2);
    options[1].rank = 0;
    const bool told = !join_all(made, options)[0].ok();
    const bool sent = ::write(channel[1], made.data(), made.size()) > 0;
    ::_exit(told && sent ? 0 : 1);
  }
  const Fd read_end(channel[0]);
  const Fd write_end(channel[1]);
  UniqueId id;
  ASSERT_EQ(::read(read_end.get(), id.data(), id.size()), static_cast<ssize_t>(id.size()));
  int state = 1;
  ::waitpid(child, &state, 0);
  EXPECT_EQ(state, 0);
  const auto late = join(id, {2, 3, {}}, soon());
  EXPECT_EQ(late.status().code(), Code::kRemote);
  EXPECT_THAT(
      late.status().message(),
      AllOf(HasSubstr(fmt::format("(pid {}) has ended", child)),
            HasSubstr("if the ranks disagreed or one of them failed, its output says why")));
}

TEST(Disagreement, AFailedRendezvousLeavesNoDescriptors) {
  const size_t before = open_descriptors();
  std::vector<JoinOptions> options = ranks_of(2);
  options[1].config.algorithm = "other";
  for (int i = 0; i < 5; ++i) join_all(new_id(), options);
  EXPECT_TRUE(descriptors_return_to(before));
}

}  // namespace
}  // namespace tessera::testing
