/* Whether this thread's floating point is as the protocol needs it: nearest-even, subnormals kept, faults masked. */
#include "common.h"
#include <xmmintrin.h>

#define CONTROL (0xe000u | 0x1f80u | 0x40u) /* rounding and flush-to-zero, masks, denormals-are-zero */
#define USUAL 0x1f80u

EXPORT int assay_floats_are_usual(void) { return (_mm_getcsr() & CONTROL) == (USUAL & CONTROL); }

EXPORT void assay_floats_reset(void) { _mm_setcsr(USUAL); }
