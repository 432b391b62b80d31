// SHA-256 (node) and keccak-256 (written here: node has SHA-3 only), trees and roots: docs/protocol/trees.md.
import { createHash } from "node:crypto";

export const ZERO = Buffer.alloc(32);
export const hex = (bytes) => Buffer.from(bytes).toString("hex");
export const unhex = (text) => Buffer.from(text.replace(/^0x/, ""), "hex");

export function H(...parts) {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** A big-endian unsigned integer of some bytes; negative ones in two's complement. */
export function uint(value, bytes) {
  const digits = BigInt.asUintN(8 * bytes, BigInt(value)).toString(16);
  return Buffer.from(digits.padStart(2 * bytes, "0"), "hex");
}

const MASK = (1n << 64n) - 1n;
const turn = (x, n) => (n ? ((x << n) | (x >> (64n - n))) & MASK : x);

/** keccak-f[1600] constants from the degree-8 LFSR of the Keccak reference. */
function roundConstants() {
  const found = [];
  let lfsr = 1;
  for (let round = 0; round < 24; round++) {
    let constant = 0n;
    for (let j = 0; j < 7; j++) {
      if (lfsr & 1) constant |= 1n << BigInt((1 << j) - 1);
      lfsr = (lfsr << 1) ^ (lfsr & 0x80 ? 0x171 : 0);
    }
    found.push(constant);
  }
  return found;
}
const CONSTANTS = roundConstants();

function permute(a) {
  for (const constant of CONSTANTS) {
    const c = [0, 1, 2, 3, 4].map((x) => a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20]);
    for (let x = 0; x < 5; x++) {
      const d = c[(x + 4) % 5] ^ turn(c[(x + 1) % 5], 1n);
      for (let y = 0; y < 25; y += 5) a[x + y] ^= d;
    }
    const b = Array(25);
    let [x, y, lane] = [1, 0, a[1]];
    b[0] = a[0];
    for (let t = 0; t < 24; t++) {
      [x, y] = [y, (2 * x + 3 * y) % 5];
      const next = a[x + 5 * y];
      b[x + 5 * y] = turn(lane, BigInt((((t + 1) * (t + 2)) / 2) % 64));
      lane = next;
    }
    for (let i = 0; i < 25; i += 5) {
      for (let j = 0; j < 5; j++) a[i + j] = b[i + j] ^ (~b[i + ((j + 1) % 5)] & MASK & b[i + ((j + 2) % 5)]);
    }
    a[0] ^= constant;
  }
}

export function keccak(...parts) {
  const data = Buffer.concat(parts);
  const padded = Buffer.alloc((Math.floor(data.length / 136) + 1) * 136);
  data.copy(padded);
  padded[data.length] ^= 0x01;
  padded[padded.length - 1] ^= 0x80;
  const state = Array(25).fill(0n);
  for (let at = 0; at < padded.length; at += 136) {
    for (let i = 0; i < 17; i++) state[i] ^= padded.readBigUInt64LE(at + 8 * i);
    permute(state);
  }
  const out = Buffer.alloc(32);
  for (let i = 0; i < 4; i++) out.writeBigUInt64LE(state[i], 8 * i);
  return out;
}

// --- trees (TR)

const [LEAF, NODE, TENSOR, STATE, PREFIX, LIST, PROGRAM] = [0, 1, 2, 3, 4, 5, 6].map((tag) => Buffer.from([tag]));

export const leafDigest = (bytes) => H(LEAF, bytes);

/** TR-1. */
export function tree(digests) {
  let level = digests;
  if (level.length === 0) return ZERO;
  while (level.length > 1) {
    const above = [];
    for (let i = 0; i < level.length; i += 2) {
      above.push(i + 1 < level.length ? H(NODE, level[i], level[i + 1]) : level[i]);
    }
    level = above;
  }
  return level[0];
}

export const levelCount = (count, level) => (count + (1n << BigInt(level)) - 1n) >> BigInt(level);

export function height(count) {
  let level = 0;
  while (1n << BigInt(level) < count) level++;
  return level;
}

/** TR-3: how many siblings the path of digest `index` of `count` has. */
export function pathLength(index, count) {
  let length = 0;
  for (; count > 1n; index >>= 1n, count = (count + 1n) >> 1n) if ((index ^ 1n) < count) length++;
  return length;
}

/** The root that a path of the right length leads to. */
export function climb(digest, index, count, path) {
  let used = 0;
  for (; count > 1n; index >>= 1n, count = (count + 1n) >> 1n) {
    if (index & 1n) digest = H(NODE, path[used++], digest);
    else if (index + 1n < count) digest = H(NODE, digest, path[used++]);
  }
  return digest;
}

/** TR-4: level, first entry and number of the entries that open entry (level, index) by `w` levels. */
export function opening(count, level, index, w) {
  const below = Math.max(level - w, 0);
  const span = BigInt(level - below);
  const first = index << span;
  const end = (index + 1n) << span;
  const all = levelCount(count, below);
  return { below, first, number: (end < all ? end : all) - first };
}

export function leaves(bytes) {
  const found = [];
  for (let at = 0; at < bytes.length; at += 1024) found.push(leafDigest(bytes.subarray(at, at + 1024)));
  return found;
}

export const tensorDigest = (dtype, dims, root) =>
  H(TENSOR, Buffer.from([dtype, dims.length]), ...dims.map((d) => uint(d, 8)), root);
export const tensorRoot = (dtype, dims, bytes) => tensorDigest(dtype, dims, tree(leaves(bytes)));
export const listDigest = (count, root) => H(LIST, uint(count, 4), root);
export const listRoot = (roots) => listDigest(roots.length, tree(roots));
export const stateRoot = (lists) => H(STATE, Buffer.from([lists.length]), ...lists);
export const programDigest = (header, root) => H(PROGRAM, header, root);
export const programRoot = (header, descriptors) => programDigest(header, tree(descriptors.map(leafDigest)));

/** TR-10: the root that 20 siblings lead to from leaf `index`. */
export function prefixClimb(digest, index, path) {
  for (const sibling of path) {
    digest = index & 1 ? H(PREFIX, sibling, digest) : H(PREFIX, digest, sibling);
    index = Math.floor(index / 2);
  }
  return digest;
}

export function prefixRoot(roots) {
  let level = roots;
  let blank = ZERO;
  for (let h = 0; h < 20; h++) {
    const above = [];
    for (let i = 0; i < level.length; i += 2) above.push(H(PREFIX, level[i], level[i + 1] ?? blank));
    level = above;
    blank = H(PREFIX, blank, blank);
  }
  return level[0] ?? blank;
}

/** TR-12. */
export const digestList = (digests) => keccak(...digests);
export const partList = (parts) => keccak(...parts.map((p) => uint(p, 32)));
