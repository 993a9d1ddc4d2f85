#include "comm/bootstrap/wire.h"

#include <cstring>
#include <optional>
#include <type_traits>

#include "comm/bootstrap/unique_id.h"

namespace tessera::bootstrap {
namespace {

static_assert(std::is_trivially_copyable_v<Member>);

template <class T>
void append(std::string& out, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& out, std::string_view text) {
  append(out, static_cast<uint32_t>(text.size()));
  out += text;
}

// Takes values off the front; nothing once the text is too short.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  template <class T>
  bool take(T& value) {
    if (text_.size() < sizeof value) return false;
    std::memcpy(&value, text_.data(), sizeof value);
    text_.remove_prefix(sizeof value);
    return true;
  }

  bool take_text(std::string& text) {
    uint32_t bytes = 0;
    if (!take(bytes) || text_.size() < bytes) return false;
    text = text_.substr(0, bytes);
    text_.remove_prefix(bytes);
    return true;
  }

  size_t left() const { return text_.size(); }

 private:
  std::string_view text_;
};

Status malformed(const char* what) {
  return Status::error(Code::kInternal, "malformed {} message at the rendezvous", what);
}

Digest tag_of(const Key& secret, const Nonce& nonce, const FrameHeader& header,
              std::string_view body) {
  KeyedHash hash(secret);
  hash.add(nonce.data(), nonce.size());
  hash.add_value(header.version);
  hash.add_value(header.kind);
  hash.add_value(header.body_bytes);
  hash.add(body);
  return hash.finish();
}

// Texts of peers end up in messages and logs: keep them terminated.
void terminate(Member& member) {
  member.host_name[sizeof member.host_name - 1] = '\0';
  member.socket_name[sizeof member.socket_name - 1] = '\0';
}

void append_settings(std::string& body, const Config::Texts& settings) {
  append(body, static_cast<uint32_t>(settings.size()));
  for (const auto& [name, value] : settings) {
    append_text(body, name);
    append_text(body, value);
  }
}

bool take_settings(Reader& reader, Config::Texts& settings) {
  uint32_t count = 0;
  if (!reader.take(count)) return false;
  for (uint32_t i = 0; i < count; ++i) {
    std::pair<std::string, std::string> setting;
    if (!reader.take_text(setting.first) || !reader.take_text(setting.second)) return false;
    settings.push_back(std::move(setting));
  }
  return true;
}

}  // namespace

FrameHeader seal(const Key& secret, const Nonce& nonce, MessageKind kind, std::string_view body) {
  FrameHeader header{kWireMagic, kVersion, kind, body.size(), {}};
  header.tag = tag_of(secret, nonce, header, body);
  return header;
}

bool genuine(const Key& secret, const Nonce& nonce, const FrameHeader& header,
             std::string_view body) {
  return equal_in_constant_time(header.tag, tag_of(secret, nonce, header, body));
}

std::string pack(const Hello& hello) {
  std::string body;
  append(body, hello.rank);
  append(body, hello.ranks);
  append(body, hello.wait_ms);
  append(body, hello.member);
  for (const Config::Texts* settings : {&hello.settings, &hello.host_settings})
    append_settings(body, *settings);
  return body;
}

Result<Hello> unpack_hello(std::string_view body) {
  Reader reader(body);
  Hello hello;
  if (!reader.take(hello.rank) || !reader.take(hello.ranks) || !reader.take(hello.wait_ms) ||
      !reader.take(hello.member) || !take_settings(reader, hello.settings) ||
      !take_settings(reader, hello.host_settings) || reader.left() != 0) {
    return malformed("hello");
  }
  terminate(hello.member);
  return hello;
}

Result<std::pair<int32_t, int32_t>> unpack_numbers(std::string_view body) {
  Reader reader(body);
  std::pair<int32_t, int32_t> numbers;
  if (!reader.take(numbers.first) || !reader.take(numbers.second)) return malformed("hello");
  return numbers;
}

std::string pack(const Welcome& welcome) {
  std::string body;
  append(body, welcome.secret);
  append(body, static_cast<uint32_t>(welcome.members.size()));
  for (const Member& member : welcome.members) append(body, member);
  return body;
}

Result<Welcome> unpack_welcome(std::string_view body) {
  Reader reader(body);
  Welcome welcome;
  uint32_t members = 0;
  if (!reader.take(welcome.secret) || !reader.take(members)) return malformed("welcome");
  if (reader.left() != members * sizeof(Member)) return malformed("welcome");
  welcome.members.resize(members);
  for (Member& member : welcome.members) {
    if (!reader.take(member)) return malformed("welcome");
    terminate(member);
  }
  return welcome;
}

std::string pack_rejection(const Status& reason) {
  std::string body;
  append(body, static_cast<uint32_t>(reason.code()));
  append_text(body, std::string_view(reason.message()).substr(0, kMaxReasonBytes));
  return body;
}

Status unpack_rejection(std::string_view body) {
  Reader reader(body);
  uint32_t code = 0;
  std::string text;
  if (!reader.take(code) || !reader.take_text(text)) return malformed("rejection");
  if (code == 0 || code > static_cast<uint32_t>(Code::kInProgress)) return malformed("rejection");
  return Status(static_cast<Code>(code), std::move(text));
}

}  // namespace tessera::bootstrap
