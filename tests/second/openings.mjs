// Elements of earlier nodes opened under an agreed prefix root: docs/protocol/game.md, rules OPEN.
import { cut } from "./decode.mjs";
import { climb, leafDigest, pathLength, prefixClimb, tensorDigest, unhex } from "./hash.mjs";
import { loaded, raw, width } from "./numbers.mjs";

/** A move that is refused: `rule`, and the error's name as `code`. */
export class Refused extends Error {
  constructor(code, rule) {
    super(`${code} (${rule})`);
    this.code = code;
    this.rule = rule;
  }
}

export const demand = (holds, code, rule) => {
  if (!holds) throw new Refused(code, rule);
};

/** The words of reads, each with its opening; under P_k = root. */
export function load(reads, openings, root, k) {
  demand(reads.length === openings.length, "WrongCount", "OPEN-1");
  return reads.map((r, i) => loadOne(r, openings[i], root, k));
}

function loadOne(read, { dtype, dims, leaf, path, prefixPath }, root, k) {
  if (read.fill !== undefined) return read.fill;
  if (read.node >= k) return 0n;
  demand(dims.length <= 8, "WrongCount", "OPEN-3");
  const numel = cut(dims);
  const size = BigInt(width(dtype));
  const inside = read.address < numel;
  let tree = path[0];
  if (inside) {
    const bytes = numel * size;
    const index = (read.address * size) / 1024n;
    const rest = bytes - 1024n * index;
    const count = (bytes + 1023n) / 1024n;
    demand(BigInt(leaf.length) === (rest < 1024n ? rest : 1024n), "WrongCount", "OPEN-5");
    demand(path.length === pathLength(index, count), "WrongCount", "OPEN-5");
    tree = climb(leafDigest(leaf), index, count, path);
  } else demand(leaf.length === 0 && path.length === 1, "WrongCount", "OPEN-6");
  demand(prefixPath.length === 20, "WrongCount", "OPEN-7");
  const found = prefixClimb(tensorDigest(dtype, dims, tree), read.node, prefixPath);
  demand(found.equals(root), "WrongDigest", "OPEN-8");
  if (!inside) return 0n;
  return loaded(dtype, raw(dtype, leaf, Number((read.address * size) % 1024n)));
}

// --- as the files of known answers have them

export const readOf = ({ node, address, fill }) =>
  fill === undefined ? { node, address: BigInt(address) } : { node, fill: BigInt(fill) };
export const openingOf = ({ dtype, dims, leaf, path, prefixPath }) => ({
  dtype, dims: dims.map(BigInt), leaf: unhex(leaf), path: path.map(unhex), prefixPath: prefixPath.map(unhex),
});
