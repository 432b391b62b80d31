// What one element of a node is: docs/protocol/programs.md, rules EL. Words are BigInts.
import { DOT, GATHER, MAP, MAX, RANDOM, RANK, ROWEXP, SCATTER_SUM, SUM } from "./decode.mjs";
import { E, F32, NAN, asF32, asI32, finish, fromOrder, order, philox, q, store } from "./numbers.mjs";
import { evaluate } from "./scalar.mjs";

/** Row-major coordinates; dims are positive. */
export function unravel(index, dims) {
  const found = Array(dims.length);
  for (let d = dims.length; d-- > 0; index /= dims[d]) found[d] = index % dims[d];
  return found;
}

/** EL-1, EL-2: what an operand reads at an index. */
export function read(operand, index) {
  let address = operand.offset;
  let inside = true;
  operand.axes.forEach(({ stride, lo, hi }, d) => {
    inside &&= lo <= index[d] && index[d] < hi;
    address += index[d] * stride;
  });
  if (!inside) return { node: operand.node, fill: operand.fill };
  if (address < 0n || address >= 1n << 64n) return { node: operand.node, fill: 0n };
  return { node: operand.node, address };
}

/** The reads that are opened with the element; none where there are no elements. */
export function headReads(node, element) {
  if (node.numel === 0n) return [];
  const at = unravel(element, node.dims);
  const last = node.operands.slice(-1);
  switch (node.family) {
    case MAP:
      return node.operands.map((o) => read(o, at));
    case DOT:
      return node.operands.slice(2).map((o) => read(o, at));
    case SUM:
    case SCATTER_SUM:
    case GATHER:
      return last.map((o) => read(o, at));
    case RANK:
      return [read(node.operands[0], [...at, at[at.length - 1]])];
    case RANDOM:
      return [node.key, node.key, node.step, node.step].map((j, i) => ({ node: j, address: BigInt(i & 1) }));
    default:
      return [];
  }
}

const decided = (value) => ({ done: true, value, terms: 0n });
const going = (terms) => ({ done: false, value: 0n, terms });

/** What the heads decide: the element's word, or its number of terms. */
export function start(node, element, heads) {
  if (node.numel === 0n) return decided(0n);
  const st = (value) => store(node.dtype, BigInt(value));
  const missing = node.dtype === F32 ? BigInt(NAN) : 0n;
  switch (node.family) {
    case MAP:
      return decided(st(evaluate(node.code, heads)));
    case RANDOM: {
      const [k0, k1, s0, s1] = heads;
      return decided(st(philox(element, node.stream, [s0, s1], [k0, k1])));
    }
    case GATHER: {
      const row = BigInt(asI32(heads[0]));
      return row >= 0n && row < node.size ? going(1n) : decided(missing);
    }
    case DOT:
    case SUM:
    case SCATTER_SUM:
      if (heads.some((e) => asI32(e) >= 129)) return decided(st(NAN));
      return node.terms ? going(node.terms) : decided(0n);
    case ROWEXP:
      return node.terms ? going(node.terms) : decided(st(-149));
    case MAX:
      return node.terms ? going(node.terms) : decided(missing);
    case RANK:
      return node.terms ? going(node.terms) : decided(0n);
    default:
      return decided(0n);
  }
}

export function termReads(node, element, k, heads) {
  if (node.numel === 0n) return [];
  const at = unravel(element, node.dims);
  if (node.family === GATHER) return [read(node.operands[0], [BigInt(asI32(heads[0])), ...at])];
  if (node.terms === 0n) return [];
  const inner = [...at, ...unravel(k, node.red)];
  const [x, other] = node.operands;
  switch (node.family) {
    case DOT:
      return [read(x, inner), read(other, inner)];
    case SCATTER_SUM:
      return [read(other, inner), read(x, inner)];
    default:
      return [read(x, inner)];
  }
}

const int256 = (value) => BigInt.asIntN(256, value);

/** One part. */
export function term(node, element, k, heads, values) {
  const x = asF32(values[0]);
  switch (node.family) {
    case ROWEXP:
      return BigInt(E(x));
    case MAX:
      return node.dtype === F32 ? BigInt(fromOrder(order(x))) : int256(store(node.dtype, values[0]));
    case DOT: {
      const [eA, eB] = heads.map(asI32);
      return BigInt(q(node.p[0], x, eA)) * BigInt(q(node.p[1], asF32(values[1]), eB));
    }
    case SUM:
      return BigInt(q(31, x, asI32(heads[0])));
    case GATHER:
      return int256(store(node.dtype, values[0]));
    case SCATTER_SUM: {
      const hit = BigInt(asI32(values[0])) === unravel(element, node.dims)[0];
      return hit ? BigInt(q(31, asF32(values[1]), asI32(heads[0]))) : 0n;
    }
    case RANK: {
      const own = element % node.dims[node.dims.length - 1];
      const [ours, theirs] = [order(asF32(heads[0])), order(x)];
      return theirs > ours || (theirs === ours && k < own) ? 1n : 0n;
    }
    default:
      return 0n;
  }
}

/** EL-8, EL-9, EL-17: one part for several. */
export function combine(node, parts) {
  if (parts.length === 0) return 0n;
  if (node.family === MAX && node.dtype === F32) {
    return BigInt(fromOrder(Math.max(...parts.map((p) => order(asF32(p))))));
  }
  if (node.family === MAX || node.family === ROWEXP) return parts.reduce((a, b) => (a > b ? a : b));
  return int256(parts.reduce((a, b) => a + b));
}

/** The element's word that parts over all terms stand for. */
export function fold(node, heads, parts) {
  const part = combine(node, parts);
  const e = heads.map(asI32);
  switch (node.family) {
    case DOT:
      return store(node.dtype, BigInt(finish(part, e[0] + e[1] + 2 - node.p[0] - node.p[1])));
    case SUM:
    case SCATTER_SUM:
      return store(node.dtype, BigInt(finish(part, e[0] - 30)));
    default:
      return store(node.dtype, part);
  }
}
