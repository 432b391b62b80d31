/* Philox4x32-10, as assay/protocol/arithmetic/philox.py has it. */
#ifndef ASSAY_PHILOX_H
#define ASSAY_PHILOX_H

#include "common.h"
#include <string.h>

/* Words lo .. hi - 1 of a stream: word o mod 4 at counter (o div 4, stream, step[0], step[1]) under key. */
static inline void philox_words(uint32_t *out, int64_t lo, int64_t hi, uint32_t stream, const uint32_t *key,
                                const uint32_t *step)
{
    for (int64_t o = lo; o < hi; o++) {
        uint32_t c[4] = {(uint32_t)(o / 4), stream, step[0], step[1]}, k0 = key[0], k1 = key[1];
        for (int round = 0; round < 10; round++) {
            uint64_t p0 = (uint64_t)c[0] * 0xD2511F53u, p1 = (uint64_t)c[2] * 0xCD9E8D57u;
            uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k0, (uint32_t)p1, (uint32_t)(p0 >> 32) ^ c[3] ^ k1,
                                (uint32_t)p0};
            memcpy(c, next, 16);
            k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
        }
        do out[o - lo] = c[o % 4];
        while (o % 4 != 3 && ++o < hi);
    }
}

#endif
