// What tessera-tune measured on a machine: how long calls took with each candidate. Saved as JSON,
// found again by the fingerprint of the machine.
//
// A sample is the time of one call, in microseconds, of `block_bytes` per block (plan/shape.h),
// float32, buffers out of place, with so many ranks on this host, one process each. Version 2 of
// the format added slices; files of version 1, which know none but the rule's, are read as well.
// Thread safety: plain data and pure functions; load and save touch the file named.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tuner/candidate.h"

namespace tessera {

struct Sample {
  Collective collective = Collective::kAllReduce;
  Protocol protocol = Protocol::kLowLatency;
  std::string algorithm;
  int ranks = 0;
  size_t block_bytes = 0;
  double microseconds = 0;
  size_t slot_bytes = 0;  // as in Candidate
  bool operator==(const Sample&) const = default;
};

struct Profile {
  std::string machine;  // fingerprint of the machine it was measured on
  std::string about;    // the machine in words, for people
  std::vector<Sample> samples;

  bool operator==(const Profile&) const = default;
};

// Strict: unknown fields, names and duplicates are errors that name the place.
Result<Profile> parse_profile(std::string_view json, const std::string& source);
std::string to_json(const Profile& profile);

Result<Profile> load_profile(const std::string& path);
// Replaces the file as a whole, and makes the folder if there is none.
Status save_profile(const Profile& profile, const std::string& path);
// The error that saving there would end with, before there is anything to save. Makes the folder.
Status can_save_profile(const std::string& path);

// 16 hexadecimal digits over all that decides speed as far as it can be seen from here: the
// processor's model, cores, caches and NUMA nodes. Equal on equal machines.
std::string machine_fingerprint();
std::string machine_in_words();

// Where profiles of this machine are kept unless TESSERA_PROFILE names a file:
// $XDG_CACHE_HOME/tessera/FINGERPRINT.json, or ~/.cache/... `cache_home`: from the configuration;
// empty where there is neither.
std::string profile_path(const std::string& cache_home);

// 16 hexadecimal digits of what it holds; "none" for null: what ranks compare.
std::string digest(const Profile* profile);

// The profile that a configuration means: config.profile names a file (then it must be readable) or
// "none"; empty: this machine's, if there is one. Null: none.
Result<std::shared_ptr<const Profile>> find_profile(const Config& config);

}  // namespace tessera
