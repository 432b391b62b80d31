// The dispute game, move by move: docs/protocol/game.md, rules GM and OPEN. Clocks and money are not part of it.
import { CONST, INPUT, OUTPUT, Malformed, decode, head } from "./decode.mjs";
import { combine, fold, headReads, start, term, termReads } from "./elements.mjs";
import {
  ZERO, climb, digestList, height, hex, keccak, leafDigest, listDigest, opening, partList, pathLength, prefixClimb,
  stateRoot, tensorDigest, tree, uint, prefixRoot,
} from "./hash.mjs";
import { raw, width } from "./numbers.mjs";
import { demand, load } from "./openings.mjs";

export const [STEPS, NODES, NODE, ROOT, TENSOR, LEAF, PARTS, TERM, STATE, LIST, SLOT, OVER] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
const [D, C] = [1, 2];
const [REFUTED, DEFAULT] = [1, 2];
const EMPTY = prefixRoot([]);

/** Which stages a move belongs to, and whose it is. */
const MOVES = {
  postDigests: [[STEPS, NODES], D], bisectDigests: [[STEPS, NODES], C], openNode: [[NODE], D], proveRoot: [[ROOT, SLOT], C],
  selectSubtree: [[TENSOR, LIST], C], openSubtree: [[TENSOR, LIST], D], openLeaf: [[LEAF], D], selectElement: [[LEAF], C],
  postParts: [[PARTS], D], selectPart: [[PARTS], C], proveTerm: [[TERM], C], openState: [[STATE], D], selectList: [[STATE], C],
};

const same = (digest, wanted, rule = "GM-6") => demand(digest.equals(wanted), "WrongDigest", rule);
const count = (got, wanted, rule = "GM-4") => demand(BigInt(got) === BigInt(wanted), "WrongCount", rule);
const below = (index, number) => demand(BigInt(index) < BigInt(number), "IndexOutOfRange", "GM-5");
const big = (digest) => BigInt.asIntN(256, BigInt(`0x${digest.toString("hex")}`));
const sum = (sizes) => sizes.reduce((a, b) => a + b, 0);

function path(digest, index, number, siblings) {
  count(siblings.length, pathLength(BigInt(index), BigInt(number)));
  return climb(digest, BigInt(index), BigInt(number), siblings);
}

function prefix(digest, index, siblings) {
  count(siblings.length, 20);
  return prefixClimb(digest, index, siblings);
}

export class Game {
  /** `claim`: id, program root, x, y, steps; `program`: n, x, y (list sizes), tree over the descriptors. */
  constructor(claim, program, arity, known = new Map()) {
    Object.assign(this, { claim, program, arity, levels: Math.log2(arity), known, turn: D, verdict: null });
    Object.assign(this, { heads: [], family: 255, node: 0, element: 0n });
    if (claim.steps > 1) Object.assign(this, { stage: STEPS, step: 0, lo: 0, hi: claim.steps, agreed: claim.x, disputed: claim.y });
    else this.beginNodes(1, claim.x, claim.y);
    this.reuse();
  }

  /** One move; throws Refused and changes nothing, or returns. Whether a clock has run out is for who calls `timeout`. */
  play(name, side, args) {
    if (name === "timeout") return this.timeout();
    const [stages, mover] = MOVES[name];
    demand(stages.includes(this.stage), "WrongStage", "GM-1");
    demand(side === mover && side === this.turn, "NotYourTurn", "GM-1");
    this[name](args);
  }

  to(stage, turn) {
    Object.assign(this, { stage, turn });
  }

  given(list, hash = digestList) {
    demand(hash(list).equals(this.posted), "ListMismatch", "GM-3");
  }

  judge(expected, claimed, place = {}) {
    const loser = expected !== claimed ? D : C;
    this.verdict = { loser, outcome: REFUTED, family: this.family, node: this.node, element: 0n, term: 0n, ...place, expected, claimed };
    this.stage = OVER;
  }

  /** GM-24: the verdict if the side to move says nothing. */
  inDefault() {
    const { turn: loser, family, node, element } = this;
    return { loser, outcome: DEFAULT, family, node, element, term: 0n, expected: 0n, claimed: 0n };
  }

  timeout() {
    demand(this.stage !== OVER, "WrongStage", "GM-1");
    this.verdict = this.inDefault();
    this.stage = OVER;
  }

  // --- bisection

  beginNodes(step, before, after) {
    Object.assign(this, { stage: NODES, step, before, after, lo: 0, hi: this.program.n + 1, agreed: EMPTY, disputed: after });
  }

  /** GM-11. */
  key() {
    const words = [this.stage, this.step, this.lo, this.hi].map((w) => uint(w, 32));
    return keccak(this.claim.id, this.claim.program, ...words, this.agreed, this.disputed);
  }

  /** GM-8. */
  positions() {
    const m = Math.min(this.arity, this.hi - this.lo);
    return Array.from({ length: m }, (_, i) => this.lo + Math.floor(((this.hi - this.lo) * (i + 1)) / m));
  }

  /** GM-11: a list that is known here counts as posted. */
  reuse() {
    if ((this.stage !== STEPS && this.stage !== NODES) || this.turn !== D) return;
    const known = this.known.get(hex(this.key()));
    if (known) Object.assign(this, { posted: known, turn: C });
  }

  postDigests({ digests }) {
    const known = this.known.get(hex(this.key()));
    if (!known || digests.length) {
      count(digests.length, this.positions().length);
      same(digests[digests.length - 1], this.disputed);
      demand(!known || digestList(digests).equals(known), "ListMismatch", "GM-11");
    }
    this.posted = known ?? digestList(digests);
    this.turn = C;
  }

  bisectDigests({ index, digests }) {
    this.given(digests);
    below(index, digests.length);
    const at = [this.lo, ...this.positions()];
    if (index) this.agreed = digests[index - 1];
    this.disputed = digests[index];
    [this.lo, this.hi] = [at[index], at[index + 1]];
    this.turn = D;
    if (this.hi - this.lo > 1) return this.reuse();
    if (this.stage === STEPS) this.beginNodes(this.hi, this.agreed, this.disputed);
    else {
      this.node = this.lo;
      this.stage = this.node < this.program.n ? NODE : STATE;
    }
    this.reuse();
  }

  // --- one node

  openNode({ node, programPath, appendPath, digests }) {
    same(path(leafDigest(node), this.node, this.program.n, programPath), this.program.tree);
    const said = head(node);
    const bytes = said.numel * BigInt(width(said.dtype));
    this.count = (bytes + 1023n) / 1024n;
    this.last = this.count ? bytes - 1024n * (this.count - 1n) : 0n;
    const top = opening(this.count, height(this.count), 0n, this.levels);
    count(digests.length, top.number);
    const value = tensorDigest(said.dtype, said.dims, tree(digests));
    same(prefix(ZERO, this.node, appendPath), this.agreed);
    same(prefix(value, this.node, appendPath), this.disputed);
    Object.assign(this, { family: said.family, nodeHash: keccak(node), value, level: top.below, index: top.first });
    this.posted = digestList(digests);
    this.to([INPUT, CONST, OUTPUT].includes(said.family) ? ROOT : TENSOR, C);
  }

  descriptor(node) {
    same(keccak(node), this.nodeHash);
    return head(node);
  }

  source(node, siblings, digest) {
    count(digest.length, 32);
    same(prefix(digest, Number(BigInt(node) % (1n << 20n)), siblings), this.agreed);
    return digest;
  }

  proveRoot({ node, path: siblings, opening: opened }) {
    if (this.stage === SLOT) return this.proveSlot(node, siblings, opened);
    const { family, at } = this.descriptor(node);
    let wanted;
    if (family === OUTPUT) wanted = this.source(at(5, 4), siblings, opened);
    else if (family === CONST) {
      count(siblings.length, 0);
      count(opened.length, 0);
      wanted = uint(at(0, 32), 32);
    } else wanted = this.input(Number(at(0, 1)), Number(at(1, 4)), siblings, opened);
    this.judge(big(wanted), big(this.value));
  }

  input(list, index, siblings, opened) {
    const sizes = this.program.x;
    count(opened.length, 32 * (sizes.length + 1));
    const roots = sizes.map((_, i) => opened.subarray(32 * i, 32 * i + 32));
    const slot = opened.subarray(32 * sizes.length);
    same(stateRoot(roots), this.before);
    below(list, sizes.length);
    below(index, sizes[list]);
    same(listDigest(sizes[list], path(slot, index, sizes[list], siblings)), roots[list]);
    return slot;
  }

  proveSlot(node, siblings, opened) {
    count(node.length, 0);
    const slots = this.program.y;
    const source = this.program.n - sum(slots) + sum(slots.slice(0, this.list)) + Number(this.index);
    const wanted = this.source(source, siblings, opened);
    Object.assign(this, { family: OUTPUT, node: source });
    this.judge(big(wanted), big(this.disputed), { element: this.index, term: BigInt(this.list) });
  }

  // --- trees

  openSubtree({ digests }) {
    const opened = opening(this.count, this.level, this.index, this.levels);
    count(digests.length, opened.number);
    const root = tree(digests);
    same(this.whole ? listDigest(Number(this.count), root) : root, this.disputed);
    Object.assign(this, { level: opened.below, index: opened.first, whole: false, posted: digestList(digests), turn: C });
  }

  selectSubtree({ index, digests }) {
    this.given(digests);
    below(index, digests.length);
    this.index += BigInt(index);
    this.disputed = digests[index];
    if (this.level) this.turn = D;
    else if (this.stage === TENSOR) this.to(LEAF, D);
    else this.to(SLOT, C);
  }

  openLeaf({ leaf }) {
    count(leaf.length, this.index + 1n === this.count ? this.last : 1024);
    same(leafDigest(leaf), this.disputed);
    this.turn = C;
  }

  // --- one element

  selectElement({ offset, leaf, node, heads }) {
    const { dtype } = this.descriptor(node);
    same(leafDigest(leaf), this.disputed);
    const size = width(dtype);
    below(offset, Math.floor(leaf.length / size));
    this.element = this.index * BigInt(1024 / size) + BigInt(offset);
    this.claimed = BigInt.asIntN(256, raw(dtype, leaf, offset * size));
    const computed = meaning(node);
    const reads = computed ? headReads(computed, this.element) : [];
    this.heads = load(reads, heads, this.agreed, this.node);
    const begun = computed ? start(computed, this.element, this.heads) : { done: true, value: 0n };
    if (begun.done) return this.judge(BigInt.asIntN(256, begun.value), this.claimed, { element: this.element });
    Object.assign(this, { whole: true, from: 0n, until: begun.terms });
    this.to(begun.terms === 1n ? TERM : PARTS, begun.terms === 1n ? C : D);
  }

  /** GM-16: terms per part. */
  chunk() {
    let size = 1n;
    while (size * BigInt(this.arity) < this.until - this.from) size *= BigInt(this.arity);
    return size;
  }

  standsFor(node, parts) {
    const computed = meaning(node);
    return BigInt.asIntN(256, this.whole ? fold(computed, this.heads, parts) : combine(computed, parts));
  }

  postParts({ node, parts }) {
    this.descriptor(node);
    const size = this.chunk();
    count(parts.length, (this.until - this.from + size - 1n) / size);
    demand(this.standsFor(node, parts) === this.claimed, "PartsMismatch", "GM-17");
    Object.assign(this, { posted: partList(parts), turn: C });
  }

  selectPart({ index, parts }) {
    this.given(parts, partList);
    below(index, parts.length);
    const size = this.chunk();
    this.from += BigInt(index) * size;
    if (this.from + size < this.until) this.until = this.from + size;
    Object.assign(this, { claimed: parts[index], whole: false });
    const one = this.until - this.from === 1n;
    this.to(one ? TERM : PARTS, one ? C : D);
  }

  proveTerm({ node, reads }) {
    this.descriptor(node);
    const computed = meaning(node);
    const wanted = termReads(computed, this.element, this.from, this.heads);
    const values = load(wanted, reads, this.agreed, this.node);
    const part = term(computed, this.element, this.from, this.heads, values);
    const expected = this.whole ? this.standsFor(node, [part]) : part;
    this.judge(expected, this.claimed, { element: this.element, term: this.from });
  }

  // --- the end of a step

  openState({ listRoots }) {
    count(listRoots.length, this.program.y.length);
    same(stateRoot(listRoots), this.disputed);
    Object.assign(this, { posted: digestList(listRoots), turn: C });
  }

  selectList({ index, listRoots }) {
    this.given(listRoots);
    below(index, listRoots.length);
    this.list = index;
    this.count = BigInt(this.program.y[index]);
    Object.assign(this, { disputed: listRoots[index], level: height(this.count), index: 0n, whole: true });
    this.to(LIST, D);
  }
}

/** The node of a descriptor; null for a malformed one, whose elements are 0 (EL-15). */
function meaning(bytes) {
  try {
    return decode(bytes);
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    return null;
  }
}

