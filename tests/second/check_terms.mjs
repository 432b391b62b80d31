// What follows from the terms of a charter: clocks (section 5), rounds (6) and prices (8), with the vectors.
import { hex, keccak, uint, unhex } from "./hash.mjs";

const PPM = 1_000_000n;
const E12 = 10n ** 12n;
const E18 = 10n ** 18n;
const up = (a, b) => (a + b - 1n) / b;
const most = (...values) => values.reduce((a, b) => (a > b ? a : b));
const least = (...values) => values.reduce((a, b) => (a < b ? a : b));

/** Runs every case of terms.json. */
export function checkTerms(known, expect) {
  const is = (what, answer, value) => expect("terms", what, () => answer().toString(), value.toString());
  for (const c of known.prices) prices(c, is);
  for (const c of known.times) times(c, is);
  for (const c of known.games) games(c, is);
  for (const c of known.reserves) {
    is("reserve", () => reserve(c)[0], c.reserved);
    is("wages", () => reserve(c)[1], c.wages);
  }
  for (const c of known.slots) slots(c, is);
  for (const c of known.masks) is(`mask of ${c.seats}`, () => mask(c), c.mask);
  for (const c of known.beacon) {
    is("beacon round", () => roundAfter(c), c.round);
    is("beacon time", () => c.genesis + (c.round - 1) * c.period, c.due);
  }
}

/** CH-12 to CH-14. */
function prices(c, is) {
  const [W, w, p, q, cartel, drawn, third, U, mergePay] = [
    c.price, c.wage, c.audit_ppm, c.reaudit_ppm, c.cartel_ppm, c.drawn_bounty_ppm, c.third_bounty_ppm, c.unsettled,
    c.merge_pay,
  ].map(BigInt);
  const [f, m, V] = [PPM - drawn, 3n * BigInt(c.capacity), W + mergePay];
  const [ph, qh] = [p * (PPM - cartel), q * (PPM - cartel)];
  const r = E12 - third * (PPM - cartel) - drawn * cartel;
  const x = up(10n ** 30n, E12 + qh);
  const power = (n) => {
    let it = E18;
    for (let k = 0n; k < n; k++) it = up(it * x, E18);
    return it;
  };
  is("S", () => up(2n * E12 * E12 * W, ph * r), c.lock);
  const seatLock = BigInt(c.lock);
  const silent = [
    [up(10n ** 42n, (E12 + ph) * (E12 + qh)), (E18 - power(m)) * r, f * seatLock + PPM * w],
    [x, (E18 - power(2n * m)) * r - PPM * f * m * x, f * seatLock + PPM * m * w],
  ];
  is("whether a stake suffices", () => silent[1][1] > 0n, !c.error);
  if (c.error) return;
  is("B", () => most(
    up(E12 * E12 * w, qh * r),
    up(367_880n * E12 * E12 * W * (2n * E12 + ph), 2n * PPM * ph * qh * r),
    ...silent.map(([missed, risked, saved]) => up(PPM * m * (saved + PPM * U * V) * missed, risked)),
  ), c.stake);
  const bought = ([missed, risked, saved]) => most(0n, (BigInt(c.staked) * risked) / (PPM * missed) / m - saved);
  is("U'", () => least(...silent.map(bought)) / (PPM * V), c.most_unsettled);
}

/** The text above the table of terms (CH-6). */
function times(c, is) {
  const F = c.inclusion_delay;
  const merged = c.beacon_delay + c.hold + c.group_merge + c.merge + c.challenge;
  const verdict = 2 * (c.challenge + c.longest_dispute + F) + c.rescue;
  is("U", () => 1 + Math.ceil((F + Math.max(4 * (c.epoch + c.seed_delay), merged)) / c.commit), c.unsettled);
  is("last verdict", () => verdict, c.last_verdict);
  is("slowest round", () => verdict + 4 * (c.seed_delay + 3 * c.epoch) + c.commit + F + merged, c.slowest);
}

/** CK-5, CK-6, and what bond and bounty pay for (CH-6). */
function games(c, is) {
  const A = BigInt(c.arity);
  const levels = Math.log2(c.arity);
  const d = (width) => {
    let count = 0;
    for (let w = width; w > 1n; w = up(w, least(A, w))) count++;
    return count;
  };
  const o = (m) => Math.max(1, Math.ceil((m <= 1n ? 0 : (m - 1n).toString(2).length) / levels));
  const turns = ([t, n, e, k, j]) => {
    const begin = d(t) + d(n + 1n);
    return { begin, element: [1 + o(e) + d(k), 2 + o(e) + d(k)], slot: [1 + o(j), 2 + o(j)] };
  };
  for (const shape of c.shapes) {
    const { begin, element, slot } = turns(shape.slice(0, 5).map(BigInt));
    const way = ([defender, challenger]) => defender * c.replay + challenger * c.move;
    const longest = () => 2 * (c.budget + 3 * 3600) + 1 + 2 * begin * c.replay + Math.max(way(element), way(slot));
    is(`longest game at ${c.arity}`, longest, shape[5]);
  }
  const any = turns([2n ** 32n - 1n, 2n ** 20n, 2n ** 57n, 2n ** 64n - 1n, 2n ** 32n - 1n]);
  const R = any.begin + Math.max(any.element[0], any.slot[0]);
  const pays = (gas) => BigInt(gas) * BigInt(c.gas_price) + 4096n * BigInt(c.data_price);
  is("R", () => R, c.replies);
  is("bond", () => 2n * BigInt(R) * pays(350_000), c.bond);
  is("K", () => BigInt(R + 1) * pays(250_000), c.kept);
}

/** MO-2, MO-3: what a round reserves, and what of it is wages. */
function reserve(c) {
  const [N, ppm, mergePay] = [c.held, c.price_ppm, c.merge_pay].map(BigInt);
  const W = BigInt(c.unit_price) * BigInt(c.max_units);
  const openings = c.seats <= 64 ? c.held : Math.ceil(c.seats / c.group_size) * c.positions + c.top_positions;
  const wages = up(2n * N * BigInt(c.audit_ppm) * BigInt(c.wage), PPM - BigInt(c.reaudit_ppm));
  return [(c.pays ? N * up(W * ppm, PPM) : 0n) + BigInt(openings) * mergePay + wages, wages];
}

/** CM-1, EP-2. */
function slots(c, is) {
  const word = (value) => uint(value, 32);
  const named = (name, ...words) => {
    const text = Buffer.from(name);
    const padded = Buffer.concat([text, Buffer.alloc(32 - text.length)]);
    return keccak(word(32 * (words.length + 1)), ...words, word(text.length), padded);
  };
  const committee = () => (c.group === null
    ? named("assay.generation", word(c.round))
    : named("assay.group", word(c.round), word(c.group)));
  const slot = (drawnFor, j) => BigInt(`0x${hex(keccak(unhex(c.seed), drawnFor, word(j)))}`) % BigInt(c.count);
  is("slot of a committee", () => slot(committee(), c.j), c.slot);
  const shift = Buffer.concat([Buffer.from("assay.shift"), Buffer.alloc(21)]);
  is("slot of a shift", () => slot(shift, 0), c.shift_slot);
}

/** WK-4: the last second, after T0, in which a commitment has weight. */
function mask({ commit: C, inclusion: F, grace: g, seats: N, at }) {
  const twoThirds = Math.ceil((2 * N) / 3);
  const nearlyAll = Math.max(N < 20 ? N - 1 : Math.ceil((95 * N) / 100), twoThirds);
  const closing = [C + F];
  if (at.length === N) closing.push(at.at(-1));
  if (nearlyAll > 0 && at.length >= nearlyAll) closing.push(at[nearlyAll - 1] + g);
  if (at.length >= twoThirds) closing.push(Math.max(at[twoThirds - 1], C) + g);
  return Math.min(...closing);
}

/** BE-1. */
function roundAfter({ genesis, period, time }) {
  return time < genesis ? 1 : Math.floor((time - genesis) / period) + 2;
}
