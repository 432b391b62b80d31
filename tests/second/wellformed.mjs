// Which programs anybody takes part in: docs/protocol/programs.md, rules WF.
import {
  CONST, DOT, GATHER, INPUT, MAP, MAX, OUTPUT, RANDOM, RANK, ROWEXP, SCATTER_SUM, SUM,
} from "./decode.mjs";
import { tensorRoot } from "./hash.mjs";
import { BOOL, F32, I32, raw, store, valueType, width } from "./numbers.mjs";
import { check } from "./scalar.mjs";

/** The numbers of the rules that a decoded program breaks. */
export function broken(program) {
  const found = new Set();
  program.nodes.forEach((node, k) => {
    for (const rule of ofNode(program, node, k)) found.add(rule);
  });
  return found;
}

const slotsOf = (sizes) => sizes.flatMap((size, list) => Array.from({ length: size }, (_, index) => [list, index]));

function* ofNode(program, node, k) {
  program.inputs ??= slotsOf(program.x);
  program.outputs ??= slotsOf(program.y);
  const firstOutput = program.n - program.outputs.length;
  const isSlot = (family, [list, index]) => node.family === family && node.list === list && node.index === index;
  if (k < program.inputs.length) {
    if (!isSlot(INPUT, program.inputs[k])) yield "WF-2";
  } else if (k >= firstOutput) {
    if (!isSlot(OUTPUT, program.outputs[k - firstOutput])) yield "WF-3";
  } else if (node.family === INPUT || node.family === OUTPUT) yield "WF-4";
  const reads = node.operands.map((o) => o.node);
  if (node.family === RANDOM) reads.push(node.key, node.step);
  if (node.family === OUTPUT) reads.push(node.source);
  if (reads.some((j) => j >= k)) {
    yield "WF-6";
    return;
  }
  const sources = node.operands.map((o) => program.nodes[o.node]);
  for (let i = 0; i < sources.length; i++) yield* ofView(node.operands[i], node.spaces[i], sources[i]);
  yield* ofFamily(program, node, sources);
}

function* ofView({ offset, axes, fill }, space, source) {
  if (!axes.every(({ lo, hi }, d) => 0n <= lo && lo <= hi && hi <= space[d])) {
    yield "WF-7";
    return;
  }
  if (axes.every(({ lo, hi }) => lo < hi)) {
    let [low, high] = [offset, offset];
    for (const { stride, lo, hi } of axes) {
      const [a, b] = [lo * stride, (hi - 1n) * stride];
      low += a < b ? a : b;
      high += a < b ? b : a;
    }
    if (low < 0n || high >= source.numel) yield "WF-8";
  }
  if (fill !== BigInt.asUintN(64, store(source.dtype, fill))) yield "WF-9";
}

/** Result and operands of the table of types; "int" is a source that loads as i32. */
const TYPES = {
  [ROWEXP]: [I32, F32], [RANK]: [I32, F32], [DOT]: [F32, F32, F32, I32, I32], [SUM]: [F32, F32, I32],
  [SCATTER_SUM]: [F32, F32, I32, I32],
};

function* ofFamily(program, node, sources) {
  const kinds = sources.map((s) => valueType(s.dtype));
  const { family } = node;
  if (family in TYPES && [node.dtype, ...kinds].some((t, i) => t !== TYPES[family][i])) yield "WF-17";
  if (family === MAP) {
    const { broken: rule, type } = check(node.code, sources.map((s) => s.dtype));
    if (rule) yield rule;
    else if (type !== valueType(node.dtype)) yield "WF-10";
  }
  if (family === MAX && ((node.dtype !== F32 && node.dtype !== I32) || kinds[0] !== node.dtype)) yield "WF-17";
  if (family === GATHER && (sources[0].dtype !== node.dtype || kinds[1] !== I32)) yield "WF-17";
  if ((family === ROWEXP || family === MAX) && node.terms < 1n) yield "WF-18";
  const most = family === DOT ? 64 - node.p[0] - node.p[1] : 32;
  if ([DOT, SUM, SCATTER_SUM].includes(family) && node.terms > 1n << BigInt(Math.max(most, 0))) yield "WF-19";
  if (family === RANK && node.dims[node.dims.length - 1] !== node.red[0]) yield "WF-20";
  if (family === RANDOM) {
    if (node.dtype !== I32) yield "WF-17";
    if (node.numel > 1n << 34n) yield "WF-21";
    const isPair = (s) => s.dtype === I32 && s.dims.length === 1 && s.dims[0] === 2n;
    if (![node.key, node.step].every((j) => isPair(program.nodes[j]))) yield "WF-22";
  }
  if (family === OUTPUT) {
    const source = program.nodes[node.source];
    if (source.dtype !== node.dtype || source.dims.join() !== node.dims.join()) yield "WF-23";
  }
  if (family === CONST) yield* ofConst(program, node);
}

function* ofConst(program, node) {
  const bytes = program.consts.get(node.root.toString("hex"));
  const size = width(node.dtype);
  if (bytes.length !== Number(node.numel) * size || !tensorRoot(node.dtype, node.dims, bytes).equals(node.root)) {
    yield "WF-24";
    return;
  }
  if (node.dtype !== F32 && node.dtype !== BOOL) return;
  for (let at = 0; at < bytes.length; at += size) {
    const word = raw(node.dtype, bytes, at);
    if (store(node.dtype, word) !== word) {
      yield "WF-25";
      return;
    }
  }
}
