// What every source file with SIMD kernels includes before hwy/foreach_target.h: which instruction
// sets kernels are compiled for.
//
// x86-64: AVX-512 and AVX2; the portable scalar form serves the rest. Targets between them would
// double the code for machines older than 2013. SVE is left out because its vectors cannot be
// members or array elements, which the kernels rely upon; NEON serves there.
#pragma once

#ifdef TESSERA_NO_AVX3
#define TESSERA_AVX3 HWY_AVX3
#else
#define TESSERA_AVX3 0
#endif
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | TESSERA_AVX3)
