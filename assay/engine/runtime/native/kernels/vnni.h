/* Products of i16 and of bytes added to i32 by one instruction, where the processor has VNNI.

   As instructions: by intrinsics GCC 12 copies every accumulator twice per step. */
#ifndef ASSAY_VNNI_H
#define ASSAY_VNNI_H

#include "machine.h"

#if defined(VNNI)
/* s + the sums of two products of i16. */
INLINE __m512i dpwssd(__m512i s, __m512i a, __m512i b)
{
    __asm__("vpdpwssd %2, %1, %0" : "+v"(s) : "v"(a), "v"(b));
    return s;
}

/* s + the sums of four products of an unsigned byte and a signed one. */
INLINE __m512i dpbusd(__m512i s, __m512i a, __m512i b)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(s) : "v"(a), "v"(b));
    return s;
}
#endif

#endif
