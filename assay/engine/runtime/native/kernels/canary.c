/* Whether this thread's floating point is as the protocol needs it. */
#include "floats.h"

EXPORT int assay_floats_are_usual(void) { return (floats_now() & FLOATS_BITS) == (FLOATS_USUAL & FLOATS_BITS); }

EXPORT void assay_floats_reset(void) { floats_set(FLOATS_USUAL); }
