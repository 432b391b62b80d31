/* SHA-256 of many messages at once, one per vector lane, and the trees over them (docs/protocol.md, section 2).

   Leaves have 1,024 bytes behind a tag, nodes two digests behind a tag: all messages of a kind have the same length, so
   lanes never wait for each other. The one short leaf at a tensor's end goes through on its own. */
#include <string.h>

#include "common.h"
#include "sha256_lanes.h"
#include "sha256_single.h"
#include "scratch.h"

#define LEAF 1024
#define TAG_LEAF 0
#define TAG_NODE 1

/* Messages that are worth a pass of all lanes: fewer go one by one. */
static int fewest = -1;

static void choose(int64_t variant)
{
    int has = variant != 2 && has_sha_instructions();
    use_sha_instructions = has;
    if (variant == 0) fewest = 1;
    else if (variant > 0) fewest = INT32_MAX;
    else fewest = !has ? 1 : LANES == 4 ? INT32_MAX : LANES / 2; /* 4 lanes are slower than the instructions */
}

/* Hash by lanes only (0), one message after the other (1), that in plain C (2), or what is fastest here (-1). */
EXPORT void assay_sha_choose(int64_t variant) { choose(variant); }

static void one_leaf(const uint8_t *data, int64_t bytes, uint8_t *out)
{
    uint8_t tag = TAG_LEAF;
    single_message(&tag, 1, data, bytes, out);
}

/* Up to LANES full leaves. */
static void lanes_of_leaves(const uint8_t *data, int live, uint8_t *out)
{
    lane state[8], w[16];
    uint8_t first[LANES][64] __attribute__((aligned(64)));
    start_lanes(state);
    for (int i = 0; i < live; i++) {
        first[i][0] = TAG_LEAF;
        memcpy(first[i] + 1, data + LEAF * i, 63);
    }
    load_lanes(first[0], 64, live, w);
    compress_lanes(state, w);
    for (int block = 1; block < 16; block++) {
        load_lanes(data + 64 * block - 1, LEAF, live, w);
        compress_lanes(state, w);
    }
    last_block(data + LEAF - 1, LEAF, live, 8 * (LEAF + 1), w);
    compress_lanes(state, w);
    store_lanes(state, live, out);
}

/* Up to LANES nodes over pairs of digests; the byte before the first pair can be read. */
static void lanes_of_nodes(const uint8_t *pairs, int live, uint8_t *out)
{
    lane state[8], w[16];
    start_lanes(state);
    load_lanes(pairs - 1, 64, live, w);
    w[0] = (w[0] & ALL(0x00FFFFFF)) | ALL(TAG_NODE << 24);
    compress_lanes(state, w);
    last_block(pairs + 63, 64, live, 8 * 65, w);
    compress_lanes(state, w);
    store_lanes(state, live, out);
}

/* How many of the messages left go through the lanes now. */
static int together(int64_t left)
{
    if (fewest < 0) choose(-1);
    return left < fewest ? 0 : left < LANES ? (int)left : LANES;
}

/* The digests of a tensor's leaves. */
EXPORT void assay_leaf_digests(const uint8_t *data, int64_t bytes, uint8_t *out)
{
    int64_t full = bytes / LEAF, rest = bytes % LEAF, i = 0;
    for (int live; (live = together(full - i)); i += live) lanes_of_leaves(data + LEAF * i, live, out + 32 * i);
    for (; i < full; i++) one_leaf(data + LEAF * i, LEAF, out + 32 * i);
    if (rest) one_leaf(data + LEAF * full, rest, out + 32 * full);
}

/* The level above `count` digests; out may not overlap them. The byte before them can be read. */
static void next_level(const uint8_t *in, int64_t count, uint8_t *out)
{
    int64_t pairs = count / 2, i = 0;
    for (int live; (live = together(pairs - i)); i += live) lanes_of_nodes(in + 64 * i, live, out + 32 * i);
    for (uint8_t tag = TAG_NODE; i < pairs; i++) single_message(&tag, 1, in + 64 * i, 64, out + 32 * i);
    if (count % 2) memcpy(out + 32 * pairs, in + 32 * (count - 1), 32);
}

/* All levels above `count` digests, one behind the other, the root last; out starts after the digests themselves, with
   a byte before them. Returns how many digests were written. */
static int64_t levels(const uint8_t *digests, int64_t count, uint8_t *out)
{
    int64_t written = 0;
    for (const uint8_t *in = digests; count > 1; count = (count + 1) / 2) {
        next_level(in, count, out + 32 * written);
        in = out + 32 * written;
        written += (count + 1) / 2;
    }
    return written;
}

/* The root of the tree over a tensor's leaves; 1 when there is no memory. */
EXPORT int64_t assay_tree_root(const uint8_t *data, int64_t bytes, uint8_t *out)
{
    int64_t count = (bytes + LEAF - 1) / LEAF;
    memset(out, 0, 32);
    if (count == 0) return 0;
    uint8_t *memory = (uint8_t *)scratch(0, 64 + 32 * (2 * count + 64));
    if (!memory) return 1;
    uint8_t *digests = memory + 64;
    assay_leaf_digests(data, bytes, digests);
    int64_t above = levels(digests, count, digests + 32 * count);
    memcpy(out, digests + 32 * (count + above - 1), 32);
    return 0;
}

/* The root of the tree over `count` digests; 1 when there is no memory. */
EXPORT int64_t assay_root(const uint8_t *given, int64_t count, uint8_t *out)
{
    if (fewest < 0) choose(-1);
    memset(out, 0, 32);
    if (count == 0) return 0;
    uint8_t *memory = (uint8_t *)scratch(0, 64 + 32 * (2 * count + 64));
    if (!memory) return 1;
    uint8_t *digests = memory + 64;
    memcpy(digests, given, (size_t)(32 * count));
    int64_t above = levels(digests, count, digests + 32 * count);
    memcpy(out, digests + 32 * (count + above - 1), 32);
    return 0;
}

/* Whether some f32 of these is a NaN other than the one that stores write. */
EXPORT int64_t assay_has_odd_nan(const uint32_t *words, int64_t count)
{
    for (int64_t i = 0; i < count; i += 4096) {
        uint32_t found = 0;
        int64_t end = i + 4096 < count ? i + 4096 : count;
        for (int64_t k = i; k < end; k++) found |= ((words[k] & 0x7FFFFFFF) > 0x7F800000) & (words[k] != 0x7FC00000);
        if (found) return 1;
    }
    return 0;
}
