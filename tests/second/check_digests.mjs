// Digests, claim ids, tickets: digests.json against docs/protocol/trees.md, claims.md, round.md.
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
  receipt(known.receipt, is);
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
  ["tuple", [...some(5, "uint32"), ...some(5, "bytes32")]],
  ["tuple", some(11, "uint64")],
  ["tuple", ["uint128", "uint64", "bool", ...some(8, "uint128"), ...some(5, "uint32")]],
  ["tuple", [...some(3, "uint64"), "uint32"]],
  ["tuple", ["uint64", "uint64", "uint128", "uint128"]],
  ["tuple", PROGRAM], ["tuple", PROGRAM], ["tuple", PROGRAM], "address[]",
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

function claims({ claim, challenge, attestation, position }, is) {
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
  const a = attestation;
  is("attestation", () => keccak(unhex(a.claim_id), word(a.duty), unhex(a.end_root), ZERO, unhex(a.salt)), a.leaf);
  is("attestation root", () => tree([unhex(a.leaf)]), a.root_of_one);
  for (const p of position) {
    is("position", () => keccak(
      unhex(p.claim_id), unhex(p.program), ...[p.stage, p.step, p.lo, p.hi].map(word), unhex(p.agreed), unhex(p.disputed),
    ), p.key);
  }
}

/** RD-6; the dynamic list of roots stands behind the eight words of the head. */
function receipt(r, is) {
  const word = (value) => uint(value, 32);
  is("receipt", () => keccak(
    word(r.round), word(r.seat), word(256), ...list(r.end_lists), unhex(r.update), unhex(r.base), word(r.roots.length),
    ...list(r.roots),
  ), r.digest);
}

/** ST-1 to ST-3, CL-5, CL-6, DR-5, DR-6. */
function states({ scalars: s, built: b, draw, threshold }, is, expect) {
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
  const [r0, r1, r2, , r4] = list(b.roots);
  is("s_0", () => stateRoot([r0, r1, listRoot(roots())]), s.initial_state);
  const bits = Array.from({ length: 8 }, (_, k) => (b.mask >> k) & 1);
  const mask = () => listRoot([tensor(F32, [8], bits.map((bit) => (bit ? 0x3f800000 : 0)))]);
  is("mask", mask, b.mask_list);
  is("outer state", () => stateRoot([r0, r1]), b.outer_state);
  is("X of an update", () => stateRoot([r0, r1]), b.update_input);
  is("Y of an update", () => stateRoot([r2]), b.update_state);
  const updates = list(b.updates).map((root, k) => (bits[k] ? root : r4));
  is("X of an outer step", () => stateRoot([r0, r1, ...updates, mask()]), b.outer_input);
  for (const { signature, claim_id: id, duty, ticket } of draw) {
    const encoded = () => keccak(uint(96, 32), unhex(id), uint(duty, 32), uint(256, 32), unhex(signature));
    expect("digests", `ticket ${duty}`, () => `${BigInt(`0x${hex(encoded().subarray(16))}`)}`, ticket);
  }
  for (const { ppm, stake, total, threshold: known } of threshold) {
    const [p, part, all] = [ppm, stake, total].map(BigInt);
    const exact = () => (all === 0n ? 0n : (p * part << 128n) / (1000000n * all));
    expect("digests", `threshold ${ppm}`, () => `${exact() < 1n << 128n ? exact() : 1n << 128n}`, known);
  }
}
