/* The compression function of SHA-256 on as many messages as a vector has 32-bit lanes. */
#ifndef ASSAY_SHA256_LANES_H
#define ASSAY_SHA256_LANES_H

#include "sha256_constants.h"
#include "transpose.h"

#define LANES (VBYTES / 4)

typedef uint32_t lane __attribute__((vector_size(VBYTES), may_alias));

#define ALL(x) ((lane){0} + (uint32_t)(x))
#if VBYTES == 64
#define ROTATE(x, n) ((lane)_mm512_ror_epi32((__m512i)(x), n))
#define XOR3(a, b, c) ((lane)_mm512_ternarylogic_epi32((__m512i)(a), (__m512i)(b), (__m512i)(c), 0x96))
#define CHOOSE(a, b, c) ((lane)_mm512_ternarylogic_epi32((__m512i)(a), (__m512i)(b), (__m512i)(c), 0xCA))
#define MAJORITY(a, b, c) ((lane)_mm512_ternarylogic_epi32((__m512i)(a), (__m512i)(b), (__m512i)(c), 0xE8))
#else
#define ROTATE(x, n) ((x) >> (n) | (x) << (32 - (n)))
#define XOR3(a, b, c) ((a) ^ (b) ^ (c))
#define CHOOSE(a, b, c) ((c) ^ ((a) & ((b) ^ (c))))
#define MAJORITY(a, b, c) (((a) & (b)) | ((c) & ((a) | (b))))
#endif

/* 16 words of a block of every message; messages are `apart` bytes apart. Lanes from `live` on repeat the last one. */
INLINE void load_lanes(const uint8_t *p, int64_t apart, int live, lane w[16])
{
#if VBYTES == 64
    const __m512i swap = _mm512_broadcast_i32x4(_mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3));
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        w[i] = (lane)_mm512_shuffle_epi8(_mm512_loadu_si512(p + apart * (i < live ? i : live - 1)), swap);
    transpose16((__m512i *)w);
#else
    four_i *out = (four_i *)w;
    for (int q = 0; q < 4; q++)
        for (int g = 0; g < LANES / 4; g++) {
            four_i r[4];
            for (int i = 0; i < 4; i++)
                r[i] = turn_bytes(load4_b(p + apart * (4 * g + i < live ? 4 * g + i : live - 1) + 16 * q));
            transpose4(r);
            for (int i = 0; i < 4; i++) out[(4 * q + i) * (LANES / 4) + g] = r[i];
        }
#endif
}

/* A last block: one byte of every message, the end mark, the length in bits. */
static inline void last_block(const uint8_t *p, int64_t apart, int live, uint32_t bits, lane w[16])
{
    uint32_t word[LANES] __attribute__((aligned(64)));
    for (int i = 0; i < LANES; i++) word[i] = (uint32_t)p[apart * (i < live ? i : live - 1)] << 24 | 0x800000;
    memcpy(&w[0], word, sizeof word);
    for (int t = 1; t < 15; t++) w[t] = ALL(0);
    w[15] = ALL(bits);
}

static inline void start_lanes(lane state[8])
{
    for (int i = 0; i < 8; i++) state[i] = ALL(SHA_START[i]);
}

INLINE void compress_lanes(lane state[8], lane w[16])
{
    lane a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
#pragma GCC unroll 64
    for (int t = 0; t < 64; t++) {
        if (t >= 16) {
            lane x = w[(t + 1) & 15], y = w[(t + 14) & 15];
            lane low = XOR3(ROTATE(x, 7), ROTATE(x, 18), x >> 3);
            lane high = XOR3(ROTATE(y, 17), ROTATE(y, 19), y >> 10);
            w[t & 15] = (w[t & 15] + low) + (w[(t + 9) & 15] + high);
        }
        lane one = h + ALL(SHA_K[t]) + w[t & 15] + (XOR3(ROTATE(e, 6), ROTATE(e, 11), ROTATE(e, 25)) + CHOOSE(e, f, g));
        lane two = XOR3(ROTATE(a, 2), ROTATE(a, 13), ROTATE(a, 22)) + MAJORITY(a, b, c);
        h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

/* The digests of the live lanes, 32 bytes each. */
static inline void store_lanes(const lane state[8], int live, uint8_t *out)
{
    uint32_t word[8][LANES] __attribute__((aligned(64)));
    memcpy(word, state, sizeof word);
    for (int i = 0; i < live; i++)
        for (int k = 0; k < 8; k++) {
            uint32_t swapped = __builtin_bswap32(word[k][i]);
            memcpy(out + 32 * i + 4 * k, &swapped, 4);
        }
}

#endif
