// Descriptors, headers and program files: docs/protocol/programs.md, rules ENC, MAL, HDR, FILE, EL-16.
import { programRoot, tensorRoot } from "./hash.mjs";
import { width } from "./numbers.mjs";

const FAMILIES = {
  INPUT: 0, CONST: 1, MAP: 2, ROWEXP: 3, MAX: 4, DOT: 5, SUM: 6, GATHER: 7, SCATTER_SUM: 8, RANK: 9, RANDOM: 10, OUTPUT: 11,
};
export const { INPUT, CONST, MAP, ROWEXP, MAX, DOT, SUM, GATHER, SCATTER_SUM, RANK, RANDOM, OUTPUT } = FAMILIES;
const CODES = Object.values(FAMILIES);
const LIMIT = 1n << 40n;

/** Bytes that break a rule. */
export class Malformed extends Error {
  constructor(rule) {
    super(rule);
    this.rule = rule;
  }
}
const must = (holds, rule) => {
  if (!holds) throw new Malformed(rule);
};

class Cursor {
  constructor(bytes, missing) {
    this.bytes = bytes;
    this.at = 0;
    this.missing = missing;
  }
  take(count) {
    must(count <= this.bytes.length - this.at, this.missing);
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }
  u8 = () => this.take(1)[0];
  u16 = () => this.take(2).readUInt16BE();
  u32 = () => this.take(4).readUInt32BE();
  u64 = () => this.take(8).readBigUInt64BE();
  i64 = () => this.take(8).readBigInt64BE();
  dims() {
    const rank = this.u8();
    must(rank <= 8, "MAL-4");
    const dims = Array.from({ length: rank }, this.u64);
    must(dims.every((d) => d <= LIMIT), "MAL-5");
    must(product(dims) <= LIMIT, "MAL-6");
    return dims;
  }
  operand(over) {
    const node = this.u32();
    must(this.u8() === over, "MAL-7");
    const offset = this.i64();
    const axes = Array.from({ length: over }, () => ({ stride: this.i64(), lo: this.i64(), hi: this.i64() }));
    return { node, offset, axes, fill: this.u64() };
  }
}

export const product = (sizes) => sizes.reduce((a, b) => a * b, 1n);

/** The node that a descriptor says; throws Malformed. */
export function decode(bytes) {
  must(bytes.length <= 8192, "MAL-1");
  const c = new Cursor(bytes, "MAL-13");
  const node = { family: c.u8(), red: [], operands: [], spaces: [] };
  node.dtype = c.u8();
  must(CODES.includes(node.family), "MAL-2");
  must(node.dtype <= 6, "MAL-3");
  node.dims = c.dims();
  const rank = node.dims.length;
  const read = (...spaces) => {
    for (const space of spaces) {
      node.operands.push(c.operand(space.length));
      node.spaces.push(space);
    }
  };
  const reduced = () => {
    node.red = c.dims();
    return [...node.dims, ...node.red];
  };
  switch (node.family) {
    case INPUT:
    case OUTPUT:
      node.list = c.u8();
      node.index = c.u32();
      if (node.family === OUTPUT) node.source = c.u32();
      break;
    case CONST:
      node.root = c.take(32);
      break;
    case MAP: {
      const m = c.u8();
      must(m <= 8, "MAL-9");
      read(...Array(m).fill(node.dims));
      const count = c.u8();
      must(count <= 64, "MAL-10");
      node.code = c.take(8 * count);
      break;
    }
    case DOT: {
      node.p = [c.u8(), c.u8()];
      must(node.p.every((p) => p >= 2 && p <= 31), "MAL-8");
      const inner = reduced();
      read(inner, inner, node.dims, node.dims);
      break;
    }
    case GATHER:
      node.size = c.u64();
      read([node.size, ...node.dims], node.dims);
      break;
    case RANDOM:
      node.stream = c.u32();
      [node.key, node.step] = [c.u32(), c.u32()];
      break;
    default: {
      const inner = reduced();
      must(node.family !== SCATTER_SUM || rank > 0, "MAL-11");
      must(node.family !== RANK || (rank > 0 && node.red.length === 1), "MAL-12");
      if (node.family === SUM) read(inner, node.dims);
      else if (node.family === SCATTER_SUM) read(inner, inner, node.dims);
      else read(inner);
    }
  }
  must(c.at === bytes.length, "MAL-14");
  node.numel = product(node.dims);
  node.terms = product(node.red);
  return node;
}

/** EL-16: what any bytes say of type and shape. */
export function head(bytes) {
  const at = (i, size) => {
    let value = 0n;
    for (let k = i; k < i + size; k++) value = (value << 8n) | BigInt(bytes[k] ?? 0);
    return value;
  };
  const rank = Math.min(Number(at(2, 1)), 8);
  const dims = Array.from({ length: rank }, (_, d) => at(3 + 8 * d, 8));
  const body = 3 + 8 * rank;
  return { family: Number(at(0, 1)), dtype: Number(at(1, 1)), dims, numel: cut(dims), at: (i, size) => at(body + i, size) };
}

/** A number of elements, cut to 2^64 - 1 after every factor. */
export function cut(dims) {
  const most = (1n << 64n) - 1n;
  return dims.includes(0n) ? 0n : dims.reduce((a, b) => (a * b > most ? most : a * b), 1n);
}

function readHeader(c) {
  must(c.u16() === 1, "HDR-1");
  const n = c.u32();
  const lists = () => Array.from({ length: c.u8() }, c.u32);
  const [x, y] = [lists(), lists()];
  must(n >= 1 && n <= 1 << 20, "HDR-2");
  must([...x, ...y].reduce((a, b) => a + b, 0) <= n, "HDR-3");
  return { n, x, y };
}

export function decodeHeader(bytes) {
  const c = new Cursor(bytes, "HDR-4");
  const header = readHeader(c);
  must(c.at === bytes.length, "HDR-4");
  return header;
}

const MAGIC = Buffer.from("assay-program-1\n");

/** A program: header, descriptors, nodes, constants by root (hexadecimal); throws Malformed. */
export function decodeFile(bytes) {
  must(bytes.length <= 1 << 28, "FILE-1");
  must(bytes.subarray(0, 16).equals(MAGIC), "FILE-2");
  const c = new Cursor(bytes, "FILE-6");
  c.take(16);
  const start = c.at;
  const program = { ...readHeader(c), descriptors: [], nodes: [], consts: new Map() };
  program.header = bytes.subarray(start, c.at);
  for (let k = 0; k < program.n; k++) {
    const descriptor = c.take(c.u16());
    program.descriptors.push(descriptor);
    program.nodes.push(decode(descriptor));
  }
  for (const node of program.nodes) {
    if (node.family !== CONST || program.consts.has(node.root.toString("hex"))) continue;
    const size = node.numel * BigInt(width(node.dtype));
    must(size <= BigInt(bytes.length), "FILE-6");
    const data = c.take(Number(size));
    must(tensorRoot(node.dtype, node.dims, data).equals(node.root), "FILE-5");
    program.consts.set(node.root.toString("hex"), data);
  }
  must(c.at === bytes.length, "FILE-6");
  program.root = programRoot(program.header, program.descriptors);
  return program;
}
