// Digests, claim ids, draws: digests.json against docs/protocol/trees.md, claims.md, charter.md, round.md.
import { decode, decodeHeader } from "./decode.mjs";
import {
  ZERO, climb, digestList, hex, keccak, leafDigest, leaves, listRoot, partList, pathLength, prefixRoot, programRoot,
  stateRoot, tensorDigest, tensorRoot, tree, uint, unhex, H,
} from "./hash.mjs";
import { F32, I32, toBytes } from "./numbers.mjs";
import { run } from "./run.mjs";

const TYPES = ["F32", "I32", "I64", "BOOL", "U8", "I8", "U16"];
const list = (entries) => entries.map(unhex);
const address = (text) => Buffer.concat([Buffer.alloc(12), unhex(text)]);
const tensor = (dtype, dims, values) => tensorRoot(dtype, dims.map(BigInt), toBytes(dtype, values.map(BigInt)));

export function checkDigests(known, expect) {
  const is = (what, answer, digest) => expect("digests", what, () => hex(answer()), digest);
  for (const { data, digest } of known.leaf) is("leaf", () => leafDigest(unhex(data)), digest);
  for (const { digests, root } of known.tree) is("tree", () => tree(list(digests)), root);
  const seven = known.tree.find(({ digests }) => digests.length === 7);
  for (const { count, index, digest, path } of known.path) {
    is(`path ${index}`, () => climb(unhex(digest), BigInt(index), BigInt(count), list(path)), seven.root);
    expect("digests", `path length ${index}`, () => pathLength(BigInt(index), BigInt(count)), path.length);
  }
  for (const { dtype, dims, bytes, root } of known.tensor) {
    is(`tensor ${dtype}`, () => tensorDigest(TYPES.indexOf(dtype), dims, tree(leaves(unhex(bytes)))), root);
  }
  for (const { roots, root } of known.list) is("list", () => listRoot(list(roots)), root);
  for (const { lists, list_roots: roots, root } of known.state) {
    lists.forEach((slots, i) => is("list of a state", () => listRoot(list(slots)), roots[i]));
    is("state", () => stateRoot(list(roots)), root);
  }
  for (const { roots, root } of known.prefix) is("prefix", () => prefixRoot(list(roots)), root);
  for (const entry of known.program) program(entry, is);
  for (const { digests, hash } of known.kept_list) is("kept list", () => digestList(list(digests)), hash);
  for (const { parts, hash } of known.kept_parts) is("kept parts", () => partList(parts.map(BigInt)), hash);
  claims(known, is);
  is("run", () => keccak(abi(["tuple", TERMS], known.run.terms).outer), known.run.run);
  work(known.work, is);
  finding(known.finding, is);
  draws(known, expect);
  states(known, is, expect);
}

/** Program root, and the roots of X and of Y after one step. */
function program({ name, header, descriptors, root, x, state }, is) {
  is(name, () => programRoot(unhex(header), list(descriptors)), root);
  const nodes = list(descriptors).map(decode);
  const { y } = decodeHeader(unhex(header));
  const consts = new Map();
  const given = x.map(list);
  const inputs = nodes.filter((node) => node.family === 0);
  is(`${name}: X`, () => stateRoot(given.map((slots, i) => listRoot(slots.map((bytes, k) => {
    const node = inputs.find((n) => n.list === i && n.index === k);
    return tensorRoot(node.dtype, node.dims, bytes);
  })))), state[0]);
  if (nodes.some((node) => node.family === 1)) return; // constants do not stand in this file
  is(`${name}: Y`, () => {
    const roots = run({ nodes, consts }, given).map((bytes, k) => tensorRoot(nodes[k].dtype, nodes[k].dims, bytes));
    let at = nodes.length - y.reduce((a, b) => a + b, 0);
    return stateRoot(y.map((size) => listRoot(roots.slice(at, (at += size)))));
  }, state[1]);
}

// --- CL-3, CH-8

const some = (number, type) => Array(number).fill(type);
const PROGRAM = ["bytes32", "bytes32", "bytes"];
const TERMS = [
  "bytes32", ...some(3, "address"), "uint64", "uint64",
  ["tuple", [...some(10, "uint32"), ...some(6, "bytes32")]],
  ["tuple", some(16, "uint48")],
  ["tuple", ["uint128", "bool", ...some(9, "uint128"), ...some(7, "uint32")]],
  ["tuple", ["uint48", "uint32", "uint32"]],
  ["tuple", [...some(3, "uint64"), "uint32"]],
  ["tuple", [...some(3, "uint48"), ...some(3, "uint128")]],
  ...some(5, ["tuple", PROGRAM]), "address[]",
  ["tuple", ["address", ...some(5, "uint48"), ...some(4, "uint32")]],
];

/** The ABI's encoding of a value: `bytes`, whether it is dynamic, and `outer`, as the only argument of a call. */
function abi(type, value) {
  const word = (number) => uint(number, 32);
  if (type === "address[]") {
    return { dynamic: true, bytes: Buffer.concat([word(value.length), ...value.map(address)]) };
  }
  if (type === "bytes") {
    const bytes = unhex(value);
    return { dynamic: true, bytes: Buffer.concat([word(bytes.length), bytes, Buffer.alloc((32 - (bytes.length % 32)) % 32)]) };
  }
  if (type === "address") return { bytes: address(value) };
  if (type === "bytes32") return { bytes: unhex(value) };
  if (type === "bool") return { bytes: word(value ? 1 : 0) };
  if (!Array.isArray(type)) return { bytes: word(BigInt(value)) };
  const fields = type[1].map((inner, i) => abi(inner, value[i]));
  let at = fields.reduce((size, field) => size + (field.dynamic ? 32 : field.bytes.length), 0);
  const heads = fields.map(({ dynamic, bytes }) => {
    if (!dynamic) return bytes;
    at += bytes.length;
    return word(at - bytes.length);
  });
  const dynamic = fields.some((field) => field.dynamic);
  const bytes = Buffer.concat([...heads, ...fields.filter((field) => field.dynamic).map((field) => field.bytes)]);
  return { dynamic, bytes, outer: dynamic ? Buffer.concat([word(32), bytes]) : bytes };
}

function claims({ claim, challenge, position }, is) {
  const word = (value) => uint(value, 32);
  is("claim id", () => keccak(
    word(claim.chain_id), address(claim.contract), unhex(claim.run), word(claim.kind), word(0), address(claim.claimant),
    unhex(claim.x), unhex(claim.y),
  ), claim.id);
  const c = challenge;
  is("challenge", () => keccak(
    ...[c.kind, c.round, c.seat, c.duty].map(word), address(c.party), unhex(c.outer_root), unhex(c.own_root),
    unhex(c.salt), address(c.sender),
  ), c.commitment);
  for (const p of position) {
    is("position", () => keccak(
      unhex(p.claim_id), unhex(p.program), ...[p.stage, p.step, p.lo, p.hi].map(word), unhex(p.agreed), unhex(p.disputed),
    ), p.key);
  }
}

/** K over abi.encode of a name and static words. */
function named(name, ...words) {
  const text = Buffer.from(name);
  return keccak(uint(32 * (words.length + 1), 32), ...words, uint(text.length, 32), text, Buffer.alloc(32 - text.length));
}

/** WK-1, WK-2, WK-5, GN-2. */
function work(w, is) {
  const word = (value) => uint(value, 32);
  is("work", () => keccak(
    ...[w.round, w.seat, w.tenure, w.units].map(word), unhex(w.marks), ...list(w.ends), unhex(w.update),
  ), w.digest);
  is("accumulator", () => list(w.updates).reduce(
    (acc, update, seat) => keccak(acc, word(seat), update, word(w.units + seat)), Buffer.alloc(32),
  ), w.accumulator);
  is("marks", () => keccak(...list(w.marked)), w.marks_of);
  const [root, salt, base] = list(w.marked);
  is("over updates", () => named("assay.over", base, word(w.counted), unhex(w.accumulator)), w.over);
  is("over sums", () => w.sums.reduce(
    (over, [group, sum, weight]) => keccak(over, word(group + 1), unhex(sum), word(weight)), base,
  ), w.over_sums);
  is("seal", () => keccak(word(w.round), word(w.seat), root, unhex(w.over), salt, address(w.who)), w.seal);
}

/** AT-1, AT-3, WT-11: names, and the state of a witnessed claim. */
function finding(f, is) {
  const word = (value) => uint(value, 32);
  is("attestation", () => named("assay.attestation", ...[f.epoch, f.ticket, f.kind].map(word), unhex(f.target)), f.id);
  is("accusation", () => named("assay.accusation", unhex(f.target), unhex(f.against)), f.accusation);
  const words = (bytes) => listRoot([tensorRoot(I32, [BigInt(bytes.length / 4)], bytes)]);
  const key = unhex(f.keys[0]).subarray(0, 8);
  is("witnessed state", () => stateRoot([...list(f.ends), words(key), words(unhex(f.accumulators[0]))]), f.state);
}

/** DU-2, DU-4, DU-5. */
function draws({ draw, threshold }, expect) {
  const number = (bytes) => BigInt(`0x${hex(bytes)}`);
  for (const d of draw) {
    const words = [...[d.secret, d.seed, d.target].map(unhex), uint(d.ticket, 32), uint(d.kind, 32)];
    const drawn = () => number(named("assay.draw", ...words));
    expect("digests", "draw", () => `${drawn()}`, d.draw);
    expect("digests", "rank", () => `${drawn() / ((BigInt(d.below) >> 128n) + 1n)}`, d.rank);
    const key = () => Buffer.concat([named("assay.witness", ...words).subarray(0, 8), Buffer.alloc(24)]);
    expect("digests", "witness key", () => hex(key()), d.key);
  }
  const most = (1n << 256n) - 1n;
  for (const { ppm, on_call: onCall, threshold: known } of threshold) {
    const all = 1000000n * BigInt(onCall);
    expect("digests", `threshold ${ppm}`, () => `${BigInt(ppm) >= all ? most : most / all * BigInt(ppm)}`, known);
  }
}

/** ST-1 to ST-3, ST-9, CL-6, GN-1. */
function states({ scalars: s, built: b }, is, expect) {
  const key = H(Buffer.from("assay-key-v1"), unhex(s.run), uint(s.seat, 4), uint(s.round, 8));
  const pair = [key.readUInt32BE(0), key.readUInt32BE(4)];
  expect("digests", "key", () => pair, s.key);
  const step = BigInt(s.round) * BigInt(s.steps_per_round);
  const shard = (s.seat + s.round) % s.shards;
  const ints = [s.seat, s.round, shard * s.shard_length, s.shard_length];
  const roots = () => [
    tensor(I32, [2], [step, step >> 32n]), tensor(F32, [], [`0x${s.lr}`]), tensor(I32, [2], pair),
    ...ints.map((value) => tensor(I32, [], [value])), unhex(s.data_root),
  ];
  expect("digests", "scalars", () => roots().map(hex), s.roots);
  const [r0, r1, r2] = list(b.roots);
  is("s_0", () => stateRoot([r0, r1, listRoot(roots())]), s.initial_state);
  is("outer state", () => stateRoot([r0, r1]), b.outer_state);
  is("X of an update", () => stateRoot([r0, r1]), b.update_input);
  is("Y of an update", () => stateRoot([r2]), b.update_state);
  const float = (value) => { const bits = Buffer.alloc(4); bits.writeFloatBE(value); return bits.readUInt32BE(0); };
  const weighed = (weights) => stateRoot([
    r0, r1, ...list(b.updates), listRoot([tensor(F32, [8], weights.map(float))]),
  ]);
  is("X of a merge", () => weighed(Array.from({ length: 8 }, (_, k) => (b.mask >> k) & 1)), b.merge_input);
  is("X of a merge of sums", () => weighed(b.weights), b.weighed_input);
  is("X of a partial sum", () => stateRoot(list(b.updates)), b.partial_input);
}
