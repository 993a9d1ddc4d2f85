// An object of the process: made when it is first asked for, and never destroyed, for threads may
// outlive main. In a child of fork, which has no other threads, its locks are free: one that another
// thread held would never be released.
// Thread safety: any thread may ask; the object as T says.
#pragma once

#include <pthread.h>

#include <memory>

namespace tessera {

// `kLocks`: members of T, such as &T::mutex.
template <class T, auto... kLocks>
T& of_process() {
  static T* const instance = new T;
  static const int watched = ::pthread_atfork(
      nullptr, nullptr, [] { (std::construct_at(std::addressof(instance->*kLocks)), ...); });
  static_cast<void>(watched);
  return *instance;
}

}  // namespace tessera
