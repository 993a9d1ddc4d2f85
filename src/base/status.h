// Outcomes. A Status is either ok or a code with a text a user can act on; Result<T> is a T or a
// Status.
//
// Rules: the first detector writes cause, ids and a hint into the message and logs it once; callers
// pass the Status up unchanged. Nothing is swallowed. An ok Status never allocates.
// Thread safety: a value type; distinct objects may be used freely.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tessera {

enum class Code : uint8_t {
  kOk,
  kInvalidArgument,  // a parameter is wrong, locally visible
  kInvalidUsage,     // the call is wrong in context: ranks disagree, group misuse, feature absent
  kSystem,           // a system call or allocation failed
  kInternal,         // a defect of this library
  kRemote,           // a peer died, aborted or could not be reached
  kTimeout,          // a deadline passed
  kInProgress,
  kPlanInvalid,   // malformed plan: ids, shapes, caps, unknown fields
  kPlanCoverage,  // an output chunk does not hold exactly the required contributions
  kPlanCounter,   // signals and waits do not balance
  kPlanDeadlock,
  kPlanRace,  // unordered conflicting accesses, overwrite before the last read included
};

const char* to_string(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message)
      : detail_(std::make_shared<const Detail>(Detail{code, std::move(message)})) {}

  template <class... Args>
  static Status error(Code code, fmt::format_string<Args...> format, Args&&... args) {
    return Status(code, fmt::format(format, std::forward<Args>(args)...));
  }

  bool ok() const { return detail_ == nullptr; }
  Code code() const { return ok() ? Code::kOk : detail_->code; }
  const std::string& message() const;

 private:
  struct Detail {
    Code code;
    std::string message;
  };
  std::shared_ptr<const Detail> detail_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace tessera
