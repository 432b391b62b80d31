// The scalar machine of map nodes: its value (SM) and its rules (WF-11 to WF-16).
import {
  BOOL, E, F32, I32, I64, NAN, asBool, asF32, asI32, asI64, canonical, finish, order, rint, scaled, toNumber, toPattern, valueType,
} from "./numbers.mjs";

const f2 = (fn) => [[F32, F32], F32, (a, b) => toPattern(fn(toNumber(a), toNumber(b)))];
const f1 = (fn) => [[F32], F32, (a) => toPattern(fn(toNumber(a)))];
const bits1 = (fn) => [[F32], F32, (a) => (Number.isNaN(toNumber(a)) ? NAN : fn(a) >>> 0)];
const test = (fn) => [[F32, F32], BOOL, (a, b) => fn(toNumber(a), toNumber(b))];
const i2 = (fn, result = I32) => [[I32, I32], result, fn];
const l2 = (fn, result = I64) => [[I64, I64], result, fn];
const pick = (sign) => [[F32, F32], F32, (a, b) => {
  if (a === NAN || b === NAN) return NAN;
  const x = sign * order(a) > sign * order(b) ? a : b;
  return x === 0x80000000 ? 0 : x;
}];
/** Toward zero, saturating; 0 for NaN. */
const cut = (bits) => (a) => {
  const value = toNumber(a);
  if (Number.isNaN(value)) return 0n;
  const limit = 1n << BigInt(bits - 1);
  if (!Number.isFinite(value)) return value > 0 ? limit - 1n : -limit;
  const whole = BigInt(Math.trunc(value));
  return whole > limit - 1n ? limit - 1n : whole < -limit ? -limit : whole;
};

/** Per opcode: types taken, type given, function of what was read. f32: patterns, i32: Numbers, i64: BigInts. */
const TABLE = {
  0x10: f2((a, b) => a + b), 0x11: f2((a, b) => a - b), 0x12: f2((a, b) => a * b), 0x13: f2((a, b) => a / b),
  0x14: f1(Math.sqrt), 0x15: bits1((a) => a ^ 0x80000000), 0x16: bits1((a) => a & 0x7fffffff),
  0x17: pick(-1), 0x18: pick(1),
  0x19: test((a, b) => a === b), 0x1a: test((a, b) => a < b), 0x1b: test((a, b) => a <= b),
  0x1c: f1(rint), 0x1d: f1(Math.floor),
  0x1e: [[F32, I32], F32, (a, b) => toPattern(scaled(toNumber(a), b))], 0x1f: [[F32], I32, E],
  0x20: [[I32], F32, (a) => finish(BigInt(a), 0)], 0x22: [[I64], F32, (a) => finish(a, 0)],
  0x21: [[F32], I32, cut(32)], 0x23: [[F32], I64, cut(64)],
  0x24: [[I64], I32, (a) => a], 0x25: [[I32], I64, (a) => a],
  0x26: [[BOOL], I32, (a) => (a ? 1 : 0)], 0x27: [[I32], BOOL, (a) => a !== 0],
  0x28: [[F32], I32, (a) => a], 0x29: [[I32], F32, (a) => canonical(a)],
  0x30: i2((a, b) => a + b), 0x31: i2((a, b) => a - b), 0x32: i2((a, b) => Math.imul(a, b)),
  0x33: i2((a, b) => (BigInt(a >>> 0) * BigInt(b >>> 0)) >> 32n),
  0x34: i2((a, b) => a & b), 0x35: i2((a, b) => a | b), 0x36: i2((a, b) => a ^ b), 0x37: [[I32], I32, (a) => ~a],
  0x38: i2((a, b) => a << (b & 31)), 0x39: i2((a, b) => a >>> (b & 31)), 0x3a: i2((a, b) => a >> (b & 31)),
  0x3b: i2(Math.min), 0x3c: i2(Math.max),
  0x3d: i2((a, b) => a === b, BOOL), 0x3e: i2((a, b) => a < b, BOOL), 0x3f: i2((a, b) => a >>> 0 < b >>> 0, BOOL),
  0x40: l2((a, b) => a + b), 0x41: l2((a, b) => a - b), 0x42: l2((a, b) => a * b),
  0x43: l2((a, b) => a === b, BOOL), 0x44: l2((a, b) => a < b, BOOL),
  0x50: [[BOOL, BOOL], BOOL, (a, b) => a && b], 0x51: [[BOOL, BOOL], BOOL, (a, b) => a || b],
  0x52: [[BOOL], BOOL, (a) => !a],
};
const CONSTANTS = { 0x01: F32, 0x02: I32, 0x03: I64, 0x04: BOOL };
const SELECT = 0x05;
const READ = { [F32]: asF32, [I32]: asI32, [I64]: asI64, [BOOL]: asBool };

/** The word of a result: raw words are sign-extended integers here, congruent modulo 2^256. */
function word(type, value) {
  if (type === BOOL) return value ? 1n : 0n;
  if (type === F32) return BigInt(value);
  return BigInt.asIntN(type === I64 ? 64 : 32, BigInt(value));
}

export function instructions(code) {
  const found = [];
  for (let at = 0; at < code.length; at += 8) {
    found.push({ op: code[at], abc: [code[at + 1], code[at + 2], code[at + 3]], imm: code.readUInt32BE(at + 4) });
  }
  return found;
}

/** SM-2 to SM-4. */
export function evaluate(code, operands) {
  const registers = [...operands];
  for (const { op, abc, imm } of instructions(code)) {
    const [a, b, c] = abc.map((r) => registers[r] ?? 0n);
    if (op in CONSTANTS) {
      const type = CONSTANTS[op];
      registers.push(type === F32 ? BigInt(canonical(imm)) : type === BOOL ? word(BOOL, imm) : BigInt(imm | 0));
    } else if (op === SELECT) registers.push(asBool(a) ? b : c);
    else if (op in TABLE) {
      const [takes, gives, fn] = TABLE[op];
      registers.push(word(gives, fn(...takes.map((type, i) => READ[type]([a, b][i])))));
    } else registers.push(0n);
  }
  return registers.length ? registers[registers.length - 1] : 0n;
}

/** The numbers of the rules that code breaks over sources of these types, and the value type of its last register. */
export function check(code, sources) {
  const types = sources.map(valueType);
  for (const { op, abc, imm } of instructions(code)) {
    const constant = op in CONSTANTS;
    if (!constant && op !== SELECT && !(op in TABLE)) return { broken: "WF-12" };
    const count = constant ? 0 : op === SELECT ? 3 : TABLE[op][0].length;
    if (abc.slice(count).some(Boolean) || (imm && !constant)) return { broken: "WF-13" };
    const read = abc.slice(0, count);
    if (read.some((r) => r >= types.length)) return { broken: "WF-14" };
    const have = read.map((r) => types[r]);
    const takes = constant ? [] : op === SELECT ? [BOOL, have[1], have[1]] : TABLE[op][0];
    if (have.some((type, i) => type !== takes[i])) return { broken: "WF-15" };
    if ((op === 0x04 && imm > 1) || (op === 0x01 && canonical(imm) !== imm)) return { broken: "WF-16" };
    types.push(constant ? CONSTANTS[op] : op === SELECT ? have[1] : TABLE[op][1]);
  }
  return types.length ? { type: types[types.length - 1] } : { broken: "WF-11" };
}
