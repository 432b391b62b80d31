// Types, words, binary32, E, q, finish, Philox: docs/protocol/arithmetic.md.
//
// A word is a BigInt in 0..2^256-1 or any BigInt congruent to it; a pattern of binary32 is a Number. Binary64 does the
// arithmetic: for +, -, x, / and square roots of binary32 numbers, rounding to 53 bits and then to 24 (or fewer, for
// subnormals) gives what one rounding gives, since 53 >= 2 * 24 + 2. Sums and conversions of integers are exact.

export const [F32, I32, I64, BOOL, U8, I8, U16] = [0, 1, 2, 3, 4, 5, 6];
export const NAN = 0x7fc00000;
const SIZES = [4, 4, 8, 1, 1, 1, 2];

export const width = (dtype) => SIZES[dtype] ?? 1;
export const valueType = (dtype) => (dtype >= U8 ? I32 : dtype);

const cell = new DataView(new ArrayBuffer(8));
const isNaNPattern = (x) => (x & 0x7fffffff) > 0x7f800000;
export const canonical = (x) => (isNaNPattern(x) ? NAN : x >>> 0);
export const isFinitePattern = (x) => (x & 0x7f800000) !== 0x7f800000;

export function toNumber(x) {
  cell.setUint32(0, x);
  return cell.getFloat32(0);
}

/** The pattern nearest to a binary64 number; the one NaN. */
export function toPattern(value) {
  if (Number.isNaN(value)) return NAN;
  cell.setFloat32(0, value);
  return cell.getUint32(0);
}

// --- words (AR-2 to AR-6)

export const asF32 = (word) => canonical(Number(BigInt.asUintN(32, word)));
export const asI32 = (word) => Number(BigInt.asIntN(32, word));
export const asI64 = (word) => BigInt.asIntN(64, word);
export const asBool = (word) => BigInt.asUintN(256, word) !== 0n;

/** AR-4: the raw word of the element that a word leaves in a type. */
export function store(dtype, word) {
  switch (dtype) {
    case F32:
      return BigInt(asF32(word));
    case BOOL:
      return asBool(word) ? 1n : 0n;
    case I32:
    case I64:
    case I8:
      return BigInt.asUintN(256, BigInt.asIntN(8 * width(dtype), word));
    default:
      return BigInt.asUintN(8 * width(dtype), word);
  }
}

/** The raw word of the element at a byte offset, as it stands there. */
export function raw(dtype, bytes, at) {
  switch (dtype) {
    case F32:
      return BigInt(bytes.readUInt32LE(at));
    case I32:
      return BigInt.asUintN(256, BigInt(bytes.readInt32LE(at)));
    case I64:
      return BigInt.asUintN(256, bytes.readBigInt64LE(at));
    case I8:
      return BigInt.asUintN(256, BigInt(bytes.readInt8(at)));
    case U16:
      return BigInt(bytes.readUInt16LE(at));
    default:
      return BigInt(bytes[at]);
  }
}

/** What a reader of elements sees of a raw word (EL-5). */
export const loaded = (dtype, word) => (dtype === F32 || dtype === BOOL ? store(dtype, word) : word);

/** Little-endian bytes of words. */
export function toBytes(dtype, words) {
  const size = width(dtype);
  const bytes = Buffer.alloc(size * words.length);
  words.forEach((word, i) => {
    if (size === 8) bytes.writeBigUInt64LE(BigInt.asUintN(64, word), 8 * i);
    else bytes.writeUIntLE(Number(BigInt.asUintN(8 * size, word)), size * i, size);
  });
  return bytes;
}

// --- binary32 (AR-7 to AR-11)

/** AR-8. */
export function E(x) {
  const field = (x >>> 23) & 0xff;
  const mantissa = x & 0x7fffff;
  if (field === 0xff) return 129;
  if (field) return field - 126;
  return mantissa ? 32 - Math.clz32(mantissa) - 149 : -149;
}

/** The integer nearest to a binary64 number, ties to even, the sign of zero kept. */
export function rint(value) {
  if (Math.abs(value) >= 2 ** 52 || !Number.isFinite(value)) return value;
  const below = Math.floor(value);
  const rest = value - below;
  const result = rest < 0.5 || (rest === 0.5 && below % 2 === 0) ? below : below + 1;
  return result === 0 && (value < 0 || Object.is(value, -0)) ? -0 : result;
}

/** value * 2^n in one rounding to binary64; exact for binary32 numbers unless the result is far out of range. */
export const scaled = (value, n) => value * 2 ** Math.max(-600, Math.min(600, n));

/** AR-9, as a Number. */
export function q(p, x, e) {
  if (!isFinitePattern(x)) return 0;
  const limit = p === 8 ? 127 : 2 ** (p - 1);
  return Math.max(-limit, Math.min(limit, rint(scaled(toNumber(x), p - 1 - e)))) + 0;
}

const bitLength = (value) => (value ? value.toString(2).length : 0);

/** AR-10. */
export function finish(total, m) {
  if (total === 0n) return 0;
  const sign = total < 0n ? 0x80000000 : 0;
  const size = total < 0n ? -total : total;
  const top = bitLength(size) + m;
  if (top > 128) return (sign | 0x7f800000) >>> 0;
  if (top < -149) return sign;
  const shift = Math.max(top - 24, -149) - m;
  let kept = size;
  if (shift <= 0) kept <<= BigInt(-shift);
  else {
    const half = 1n << BigInt(shift - 1);
    const rest = size & ((1n << BigInt(shift)) - 1n);
    kept >>= BigInt(shift);
    if (rest > half || (rest === half && kept & 1n)) kept += 1n;
  }
  return (sign | toPattern(Number(kept) * 2 ** (m + shift))) >>> 0;
}

/** AR-11. */
export function order(x) {
  if (isNaNPattern(x)) return NAN;
  return x & 0x80000000 ? -(x & 0x7fffffff) : x & 0x7fffffff;
}

/** The pattern that an order stands for. */
export const fromOrder = (key) => (key < 0 ? (0x80000000 | -key) >>> 0 : key);

// --- Philox (AR-12, AR-13)

export function philox(element, stream, step, key) {
  const u32 = (value) => BigInt.asUintN(32, BigInt(value));
  let c = [u32(BigInt(element) >> 2n), u32(stream), u32(step[0]), u32(step[1])];
  let k = key.map(u32);
  for (let round = 0; round < 10; round++) {
    const [p0, p1] = [c[0] * 0xd2511f53n, c[2] * 0xcd9e8d57n];
    c = [(p1 >> 32n) ^ c[1] ^ k[0], u32(p1), (p0 >> 32n) ^ c[3] ^ k[1], u32(p0)];
    k = [u32(k[0] + 0x9e3779b9n), u32(k[1] + 0xbb67ae85n)];
  }
  return BigInt.asIntN(32, c[Number(BigInt(element) & 3n)]);
}
