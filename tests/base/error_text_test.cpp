#include "base/error_text.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// Lowers a limit of this process as long as it lives.
class Lowered {
 public:
  Lowered(__rlimit_resource what, rlim_t limit) : what_(what) {
    getrlimit(what_, &before_);
    const rlimit lowered{limit, before_.rlim_max};
    EXPECT_EQ(setrlimit(what_, &lowered), 0);
  }
  ~Lowered() { setrlimit(what_, &before_); }
  Lowered(const Lowered&) = delete;
  Lowered& operator=(const Lowered&) = delete;

 private:
  const __rlimit_resource what_;
  rlimit before_{};
};

TEST(ErrorText, IsTheSystemsWhereNothingHasRunOut) {
  EXPECT_EQ(error_text(ECONNREFUSED), std::strerror(ECONNREFUSED));
  EXPECT_EQ(error_text(0), std::strerror(0));
}

TEST(ErrorText, TellsShortagesFromOtherErrors) {
  for (const int error : {EMFILE, ENFILE, ENOMEM}) EXPECT_TRUE(ran_out(error));
  for (const int error : {0, ENOSYS, EPERM, ESRCH}) EXPECT_FALSE(ran_out(error));
}

TEST(ErrorText, NamesTheLimitOfDescriptorsAndHowToRaiseIt) {
  const Lowered limit(RLIMIT_NOFILE, 77);
  EXPECT_THAT(error_text(EMFILE), AllOf(StartsWith(std::strerror(EMFILE)), HasSubstr("may have 77"),
                                        HasSubstr("ulimit -n")));
}

TEST(ErrorText, BlamesTheHostWhereItsDescriptorsHaveRunOut) {
  EXPECT_THAT(error_text(ENFILE), AllOf(StartsWith(std::strerror(ENFILE)), HasSubstr("file-max")));
}

TEST(ErrorText, NamesTheLimitOfAddressesIfThereIsOne) {
  EXPECT_THAT(error_text(ENOMEM), AllOf(HasSubstr("free memory"), HasSubstr("max_map_count")));
#ifndef __SANITIZE_ADDRESS__  // which needs terabytes of addresses
  const Lowered limit(RLIMIT_AS, rlim_t{3} << 40);
  EXPECT_THAT(error_text(ENOMEM), AllOf(HasSubstr("3145728 MiB"), HasSubstr("ulimit -v")));
#endif
}

}  // namespace
}  // namespace tessera
