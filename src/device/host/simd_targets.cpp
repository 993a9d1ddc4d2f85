// Highway's two run-time functions, on which its dispatch of SIMD kernels rests: what this CPU can
// do, and what was chosen. With them here, the library needs no libhwy at run time; where libhwy is
// linked too, these definitions come first. Thread safety: any thread; the answers never change.
#include <hwy/targets.h>

namespace hwy {

#if HWY_ARCH_X86

namespace {

bool has_avx2() {
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
         __builtin_cpu_supports("aes") && __builtin_cpu_supports("avx2") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

bool has_avx3() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}

}  // namespace

// The sets that simd.h compiles kernels for, and the portable form.
int64_t SupportedTargets() {
  int64_t targets = HWY_EMU128 | HWY_SCALAR;
  if (has_avx2()) targets |= HWY_AVX2;
  if (has_avx3()) targets |= HWY_AVX3;
  return targets;
}

#else

int64_t SupportedTargets() { return HWY_STATIC_TARGET | HWY_EMU128 | HWY_SCALAR; }

#endif

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
