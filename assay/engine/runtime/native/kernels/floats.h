/* How this thread's floating point rounds: as the protocol needs it is nearest-even, subnormals kept, faults masked. */
#ifndef ASSAY_FLOATS_H
#define ASSAY_FLOATS_H

#include "common.h"

#if defined(__x86_64__)
typedef unsigned float_control;
#define FLOATS_USUAL 0x1f80u
#define FLOATS_BITS (0xe000u | 0x1f80u | 0x40u) /* rounding and flush-to-zero, masks, denormals-are-zero */
INLINE float_control floats_now(void) { return __builtin_ia32_stmxcsr(); }
INLINE void floats_set(float_control control) { __builtin_ia32_ldmxcsr(control); }
#elif defined(__aarch64__)
typedef uint64_t float_control;
#define FLOATS_USUAL 0u
#define FLOATS_BITS 0x1c09f07u /* rounding and flush-to-zero; traps; FIZ, AH and NEP of newer processors */
INLINE float_control floats_now(void)
{
    float_control control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control) : : "memory");
    return control;
}
INLINE void floats_set(float_control control) { __asm__ volatile("msr fpcr, %0" : : "r"(control) : "memory"); }
#else
#include <fenv.h>
typedef int float_control;
#define FLOATS_USUAL FE_TONEAREST
#define FLOATS_BITS (~0)
INLINE float_control floats_now(void) { return fegetround(); }
INLINE void floats_set(float_control control) { fesetround(control); }
#endif

/* From here on as usual, whatever some library has set on this thread; returns what to set in the end. */
INLINE float_control floats_begin(void)
{
    float_control before = floats_now();
    floats_set(FLOATS_USUAL);
    return before;
}

#endif
