// The witnessed program of a step program: docs/protocol/witness.md, rules WT.
import { CONST, DOT, GATHER, INPUT, MAP, OUTPUT, RANDOM, SUM, Malformed, decode, decodeHeader } from "./decode.mjs";
import { programRoot, tensorRoot, uint } from "./hash.mjs";
import { F32, I32, toBytes } from "./numbers.mjs";
import { broken } from "./wellformed.mjs";

const PIECE = 1n << 30n;
const must = (holds, rule) => {
  if (!holds) throw new Malformed(rule);
};
const count = (lists) => lists.reduce((a, b) => a + b, 0);

// --- bytes of nodes

const dimsOf = (dims) => Buffer.concat([uint(dims.length, 1), ...dims.map((d) => uint(d, 8))]);
const descriptor = (family, dtype, dims, ...body) => Buffer.concat([uint(family, 1), uint(dtype, 1), dimsOf(dims), ...body]);

/** An operand over a space: strides, then what is not the whole space at offset 0. */
function operand(node, space, strides, { offset = 0, lo = space.map(() => 0), hi = space } = {}) {
  const axes = strides.map((stride, d) => Buffer.concat([uint(stride, 8), uint(lo[d], 8), uint(hi[d], 8)]));
  return Buffer.concat([uint(node, 4), uint(space.length, 1), uint(offset, 8), ...axes, uint(0, 8)]);
}

/** The places of the numbers of nodes in a descriptor. */
function references(node, bytes) {
  const over = (space) => 4 + 1 + 8 + 24 * space.length + 8;
  const dims = 3 + 8 * node.dims.length;
  if (node.family === RANDOM) return [dims + 4, dims + 8];
  if (node.family === OUTPUT) return [dims + 5];
  const red = 1 + 8 * node.red.length;
  const first = { [MAP]: dims + 1, [DOT]: dims + 2 + red, [GATHER]: dims + 8 }[node.family] ?? dims + red;
  const found = [];
  let at = first;
  for (const space of node.spaces) {
    found.push(at);
    at += over(space);
  }
  return found;
}

function renumbered(node, bytes, numbers) {
  const moved = Buffer.from(bytes);
  for (const at of references(node, bytes)) moved.writeUInt32BE(numbers.get(bytes.readUInt32BE(at)), at);
  return moved;
}

// --- code

const OPS = {
  CONST: 0x02, TO_F32: 0x20, TO_I32: 0x21, BITS: 0x28, ADD: 0x30, MUL: 0x32, MULHI: 0x33, AND: 0x34, XOR: 0x36, SHL: 0x38, SHR: 0x39,
};

class Code {
  constructor(operands) {
    this.next = operands;
    this.lines = [];
  }
  line(op, a = 0, b = 0, imm = 0) {
    this.lines.push(Buffer.concat([uint(op, 1), uint(a, 1), uint(b, 1), uint(0, 1), uint(imm, 4)]));
    return this.next++;
  }
  c = (value) => this.line(OPS.CONST, 0, 0, value);
  mix(start) {
    const c16 = this.c(16);
    let x = this.line(OPS.XOR, start, this.line(OPS.SHR, start, c16));
    x = this.line(OPS.MUL, x, this.c(0x7feb352d));
    x = this.line(OPS.XOR, x, this.line(OPS.SHR, x, this.c(15)));
    x = this.line(OPS.MUL, x, this.c(0x846ca68b));
    return this.line(OPS.XOR, x, this.line(OPS.SHR, x, c16));
  }
}

// --- what is sampled

/** The sampled nodes, in order (WT-2). */
function sampled({ n, x, nodes }) {
  const slots = count(x);
  const depends = nodes.map(() => false);
  for (let j = 0; j < slots; j++) depends[j] = nodes[j].dtype === F32 && nodes[n - slots + j].source !== j;
  const found = [];
  nodes.forEach((node, k) => {
    const reads = [...node.operands.map((o) => o.node), ...[node.key, node.step, node.source].filter((j) => j !== undefined)];
    if (reads.some((j) => depends[j])) depends[k] = true;
    if (depends[k] && node.family === DOT && node.numel > 0n) found.push(k);
  });
  return found;
}

/** The rows (WT-3); throws Malformed by the rule that the program breaks. */
function rowsOf(program) {
  const { x, y, n, nodes } = program;
  must(broken(program).size === 0 && x.length >= 3 && x.join() === y.join(), "WT-1");
  const slots = count(x);
  for (let j = 0; j < slots; j++) {
    const [a, b] = [nodes[j], nodes[n - slots + j]];
    must(a.dtype === b.dtype && a.dims.join() === b.dims.join(), "WT-1");
  }
  const step = x[2] > 0 ? nodes[x[0] + x[1]] : undefined;
  must(step?.dtype === I32 && step.dims.join() === "2", "WT-1");
  const pieces = sampled(program).flatMap((node) => {
    const parts = [];
    for (let from = 0n; from < nodes[node].numel; from += PIECE) {
      const left = nodes[node].numel - from;
      parts.push({ node, from, size: left < PIECE ? left : PIECE });
    }
    return parts;
  });
  must(pieces.length > 0, "WT-2");
  const times = Math.ceil(8 / pieces.length);
  must(pieces.length * times <= 65793, "WT-3");
  return pieces.flatMap((piece) => Array(times).fill(piece));
}

// --- the program

/** The witnessed program of a decoded one; throws Malformed by the rule that it breaks. */
export function witnessed(plain) {
  const rows = rowsOf(plain);
  const R = rows.length;
  const slots = count(plain.x);
  const made = [];
  const consts = new Map(plain.consts);
  const add = (...parts) => made.push(descriptor(...parts)) - 1;
  const constant = (dims, values) => {
    const bytes = toBytes(I32, values.map(BigInt));
    const root = tensorRoot(I32, dims.map(BigInt), bytes);
    consts.set(root.toString("hex"), bytes);
    return add(CONST, I32, dims, root);
  };
  const map = (dtype, dims, operands, code) =>
    add(MAP, dtype, dims, uint(operands.length, 1), ...operands, uint(code.lines.length, 1), ...code.lines);

  // Inputs, words, positions.
  plain.descriptors.slice(0, slots).forEach((bytes) => made.push(bytes));
  const key = add(INPUT, I32, [2], uint(plain.x.length, 1), uint(0, 4));
  const before = add(INPUT, I32, [8], uint(plain.x.length + 1, 1), uint(0, 4));
  const words = add(RANDOM, I32, [R, 8], uint(0x7769746e, 4), uint(key, 4), uint(plain.x[0] + plain.x[1], 4));
  const sizes = constant([R], rows.map(({ size }) => size));
  const high = new Code(2);
  high.line(OPS.MULHI, 0, 1);
  const positions = map(I32, [R, 8], [operand(words, [R, 8], [8, 1]), operand(sizes, [R, 8], [1, 0])], high);

  // The plain nodes with their samples.
  const numbers = new Map(Array.from({ length: slots }, (_, j) => [j, j]));
  const samples = [];
  for (let k = slots; k < plain.n - slots; k++) {
    numbers.set(k, made.push(renumbered(plain.nodes[k], plain.descriptors[k], numbers)) - 1);
    while (samples.length < R && rows[samples.length].node === k) {
      const { from, size } = rows[samples.length];
      const table = operand(numbers.get(k), [size, 8], [1, 0], { offset: from });
      const index = operand(positions, [8], [1], { offset: 8 * samples.length });
      samples.push(add(GATHER, F32, [8], uint(size, 8), table, index));
    }
  }

  // Hashes, joined.
  let parts = [];
  for (let f = 0; f < R; f += 7) {
    const own = samples.slice(f, f + 7);
    const m = own.length;
    const code = new Code(m + 1);
    const bits = own.map((_, i) => code.line(OPS.BITS, i));
    code.mix(bits.reduce((x, bit) => code.line(OPS.XOR, x, bit), m));
    const operands = own.map((g, i) => operand(g, [m, 8], [0, 1], { lo: [i, 0], hi: [i + 1, 8] }));
    parts.push({ node: map(I32, [m, 8], [...operands, operand(words, [m, 8], [8, 1], { offset: 8 * f })], code), size: m });
  }
  while (parts.length > 1) {
    const next = [];
    for (let f = 0; f < parts.length; f += 8) {
      const own = parts.slice(f, f + 8);
      if (own.length === 1) {
        next.push(own[0]);
        continue;
      }
      const h = own.reduce((sum, { size }) => sum + size, 0);
      const code = new Code(own.length);
      own.slice(1).reduce((x, _, i) => code.line(OPS.XOR, x, i + 1), 0);
      let b = 0;
      const operands = own.map(({ node, size }) => {
        b += size;
        return operand(node, [h, 8], [8, 1], { offset: -8 * (b - size), lo: [b - size, 0], hi: [b, 8] });
      });
      next.push({ node: map(I32, [h, 8], operands, code), size: h });
    }
    parts = next;
  }

  // Sum and accumulator.
  const shifts = constant([4], [0, 8, 16, 24]);
  const cut = new Code(2);
  const shifted = cut.line(OPS.SHR, 0, 1);
  cut.line(OPS.TO_F32, cut.line(OPS.AND, shifted, cut.c(255)));
  const space = [R, 4, 8];
  const cuts = map(F32, space, [operand(parts[0].node, space, [8, 0, 1]), operand(shifts, space, [0, 1, 0])], cut);
  const e = constant([], [8]);
  const sum = add(SUM, F32, [4, 8], dimsOf([R]), operand(cuts, [4, 8, R], [8, 1, 32]), operand(e, [4, 8], [0, 0]));
  const code = new Code(5);
  const s = [1, 2, 3, 4].map((k) => code.line(OPS.TO_I32, k));
  const eight = code.c(8);
  let x = s[3];
  for (const k of [s[2], s[1], s[0]]) x = code.line(OPS.ADD, code.line(OPS.SHL, x, eight), k);
  code.mix(code.line(OPS.ADD, x, 0));
  const totals = [0, 8, 16, 24].map((offset) => operand(sum, [8], [1], { offset }));
  const after = map(I32, [8], [operand(before, [8], [1]), ...totals], code);

  // Outputs and header.
  for (let k = plain.n - slots; k < plain.n; k++) made.push(renumbered(plain.nodes[k], plain.descriptors[k], numbers));
  add(OUTPUT, I32, [2], uint(plain.x.length, 1), uint(0, 4), uint(key, 4));
  add(OUTPUT, I32, [8], uint(plain.x.length + 1, 1), uint(0, 4), uint(after, 4));
  must(made.length <= 1 << 20, "WT-3");
  const lists = [...plain.x, 1, 1];
  const sizesOf = Buffer.concat([uint(lists.length, 1), ...lists.map((size) => uint(size, 4))]);
  const header = Buffer.concat([uint(1, 2), uint(made.length, 4), sizesOf, sizesOf]);
  return {
    ...decodeHeader(header), header, consts, descriptors: made, nodes: made.map(decode), root: programRoot(header, made),
  };
}
