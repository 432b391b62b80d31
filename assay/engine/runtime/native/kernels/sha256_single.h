/* SHA-256 of one message after the other: by the processor's own instructions where it has them, else in plain C. */
#ifndef ASSAY_SHA256_SINGLE_H
#define ASSAY_SHA256_SINGLE_H

#include "machine.h"
#include "sha256_constants.h"

static int use_sha_instructions;

static inline uint32_t turned(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void compress_plain(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[16], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6];
    uint32_t h = state[7];
#pragma GCC unroll 64
    for (int t = 0; t < 64; t++) {
        if (t < 16) {
            memcpy(&w[t], block + 4 * t, 4);
            w[t] = __builtin_bswap32(w[t]);
        } else {
            uint32_t x = w[(t + 1) & 15], y = w[(t + 14) & 15];
            w[t & 15] +=
                (turned(x, 7) ^ turned(x, 18) ^ x >> 3) + w[(t + 9) & 15] + (turned(y, 17) ^ turned(y, 19) ^ y >> 10);
        }
        uint32_t one = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + (g ^ (e & (f ^ g))) + SHA_K[t] + w[t & 15];
        uint32_t two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) | (c & (a | b)));
        h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g,
        state[7] += h;
}

#if defined(X86)
#include <cpuid.h>

static int has_sha_instructions(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
}

/* The instructions keep the state as the words (f e b a) and (h g d c), lowest first. */
__attribute__((target("sha,sse4.1"))) static void compress_instructions(uint32_t state[8], const uint8_t *block)
{
    const __m128i swap = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    __m128i abef = _mm_set_epi32((int)state[0], (int)state[1], (int)state[4], (int)state[5]);
    __m128i cdgh = _mm_set_epi32((int)state[2], (int)state[3], (int)state[6], (int)state[7]);
    __m128i first = abef, second = cdgh, w[4];
#pragma GCC unroll 16
    for (int q = 0; q < 16; q++) {
        __m128i *now = &w[q & 3];
        if (q < 4) {
            *now = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(block + 16 * q)), swap);
        } else {
            __m128i last = w[(q + 3) & 3], seventh = _mm_alignr_epi8(last, w[(q + 2) & 3], 4);
            *now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(q + 1) & 3]), seventh), last);
        }
        __m128i k = _mm_add_epi32(*now, _mm_loadu_si128((const __m128i *)(SHA_K + 4 * q)));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(k, 0x0E));
    }
    abef = _mm_add_epi32(abef, first), cdgh = _mm_add_epi32(cdgh, second);
    uint32_t x[4], y[4];
    _mm_storeu_si128((__m128i *)x, abef), _mm_storeu_si128((__m128i *)y, cdgh);
    state[0] = x[3], state[1] = x[2], state[4] = x[1], state[5] = x[0];
    state[2] = y[3], state[3] = y[2], state[6] = y[1], state[7] = y[0];
}

#elif defined(NEON) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>

static int has_sha_instructions(void) { return (getauxval(AT_HWCAP) & HWCAP_SHA2) != 0; }

__attribute__((target("+crypto"))) static void compress_instructions(uint32_t state[8], const uint8_t *block)
{
    uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4), w[4];
    const uint32x4_t first = abcd, second = efgh;
#pragma GCC unroll 16
    for (int q = 0; q < 16; q++) {
        uint32x4_t *now = &w[q & 3];
        if (q < 4) *now = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(block + 16 * q)));
        else *now = vsha256su1q_u32(vsha256su0q_u32(*now, w[(q + 1) & 3]), w[(q + 2) & 3], w[(q + 3) & 3]);
        uint32x4_t k = vaddq_u32(*now, vld1q_u32(SHA_K + 4 * q)), before = abcd;
        abcd = vsha256hq_u32(abcd, efgh, k);
        efgh = vsha256h2q_u32(efgh, before, k);
    }
    vst1q_u32(state, vaddq_u32(abcd, first)), vst1q_u32(state + 4, vaddq_u32(efgh, second));
}

#else

static int has_sha_instructions(void) { return 0; }
static void compress_instructions(uint32_t state[8], const uint8_t *block) { compress_plain(state, block); }

#endif

static void compress(uint32_t state[8], const uint8_t *block)
{
    if (use_sha_instructions) compress_instructions(state, block);
    else compress_plain(state, block);
}

/* The digest of a short head and a body behind each other. */
static void single_message(const uint8_t *head, int64_t head_bytes, const uint8_t *body, int64_t body_bytes,
                           uint8_t *out)
{
    uint32_t state[8];
    uint8_t block[128] = {0};
    int64_t total = head_bytes + body_bytes, taken = 64 - head_bytes < body_bytes ? 64 - head_bytes : body_bytes;
    memcpy(state, SHA_START, sizeof state);
    memcpy(block, head, (size_t)head_bytes), memcpy(block + head_bytes, body, (size_t)taken);
    int64_t filled = head_bytes + taken;
    if (filled == 64) {
        compress(state, block);
        for (; body_bytes - taken >= 64; taken += 64) compress(state, body + taken);
        filled = body_bytes - taken;
        memset(block, 0, 64), memcpy(block, body + taken, (size_t)filled);
    }
    block[filled] = 0x80;
    int64_t end = filled < 56 ? 64 : 128;
    for (int i = 0; i < 8; i++) block[end - 1 - i] = (uint8_t)((uint64_t)total * 8 >> 8 * i);
    for (int64_t at = 0; at < end; at += 64) compress(state, block + at);
    for (int i = 0; i < 8; i++) {
        uint32_t swapped = __builtin_bswap32(state[i]);
        memcpy(out + 4 * i, &swapped, 4);
    }
}

#endif
