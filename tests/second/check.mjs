// Runs the known answers of tests/vectors: `node check.mjs FOLDER` prints {group: {cases, wrong: [what, ...]}}.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkAnswers } from "./check_answers.mjs";
import { checkDigests } from "./check_digests.mjs";
import { checkGame } from "./check_games.mjs";
import { checkTerms } from "./check_terms.mjs";
import { Malformed, decode, decodeFile, decodeHeader, head } from "./decode.mjs";
import { combine, fold, headReads, start, term, termReads } from "./elements.mjs";
import { hex, tensorRoot, unhex } from "./hash.mjs";
import { F32, I32, finish, philox, q, toBytes } from "./numbers.mjs";
import { isList, isMarks, isObject, manifestEntries } from "./objects.mjs";
import { Refused, load, openingOf, readOf } from "./openings.mjs";
import { run } from "./run.mjs";
import { evaluate } from "./scalar.mjs";
import { broken } from "./wellformed.mjs";
import { witnessed } from "./witness.mjs";

const folder = process.argv[2];
const json = (name) => JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));
const tally = {};

/** One case: an error of ours is a wrong answer too. */
function expect(group, what, answer, known) {
  const entry = (tally[group] ??= { cases: 0, wrong: [] });
  entry.cases++;
  let got;
  try {
    got = answer();
  } catch (error) {
    got = `threw ${error.stack}`;
  }
  if (JSON.stringify(got) !== JSON.stringify(known)) {
    entry.wrong.push(`${what}: ${JSON.stringify(got)?.slice(0, 300)} is not ${JSON.stringify(known)?.slice(0, 300)}`);
  }
}

const words = (list) => list.map(BigInt);
const u64 = (value) => `0x${BigInt.asUintN(64, BigInt(value)).toString(16)}`;
const i64 = (value) => BigInt.asIntN(64, value);
function* rows(list, size) {
  for (let at = 0; at < list.length; at += size) yield words(list.slice(at, at + size));
}

// --- arithmetic.json

function arithmetic(document) {
  for (const [name, entry] of Object.entries(document.operations)) {
    if (entry.codes) {
      entry.codes.forEach((code, i) => expect("operations", name, () => u64(evaluate(unhex(code), [])), entry.results[i]));
      continue;
    }
    for (const row of rows(entry.words, entry.operands + 1)) {
      const known = u64(row.pop());
      expect("operations", `${name} ${row.map(u64)}`, () => u64(evaluate(unhex(entry.code), row.map(i64))), known);
    }
  }
  for (const [name, { codes, words: list }] of Object.entries(document.functions)) {
    for (const [x, known] of rows(list, 2)) {
      const answer = () => u64(codes.reduce((have, code) => [...have, evaluate(unhex(code), have)], [x]).at(-1));
      expect("functions", `${name} ${u64(x)}`, answer, u64(known));
    }
  }
  for (const [s, m, known] of rows(document.finish, 3)) {
    expect("finish", `${i64(s)} ${i64(m)}`, () => u64(finish(i64(s), Number(i64(m)))), u64(known));
  }
  for (const [x, p, e, known] of rows(document.quantize, 4)) {
    expect("quantize", `${u64(x)} ${p} ${i64(e)}`, () => u64(q(Number(p), Number(x), Number(i64(e)))), u64(known));
  }
  for (const [o, stream, s0, s1, k0, k1, known] of rows(document.random, 7)) {
    expect("random", `${o}`, () => u64(philox(o, stream, [s0, s1], [k0, k1])), u64(known));
  }
}

// --- rules.json

/** The rule that decoding breaks, or null. */
function refusal(fn) {
  try {
    fn();
    return null;
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    return error.rule;
  }
}

function rules(document) {
  for (const { rule, what, bytes, head: known } of document.descriptors) {
    expect("descriptors", what, () => refusal(() => decode(unhex(bytes))), rule);
    const { family, dtype: type, dims, numel } = head(unhex(bytes));
    expect("descriptors", `${what}: head`, () => ({ family, type, dims: dims.map(String), numel: `${numel}` }), known);
  }
  for (const { rule, what, bytes } of document.headers) {
    expect("headers", what, () => refusal(() => decodeHeader(unhex(bytes))), rule);
  }
  for (const { rule, cites, what, bytes, zeros } of document.files) {
    const file = Buffer.concat([unhex(bytes), Buffer.alloc(zeros ?? 0)]);
    expect("files", what, () => refusal(() => decodeFile(file)), cites ?? rule);
  }
  for (const { rule, what, bytes } of document.programs) {
    expect("programs", what, () => [...broken(decodeFile(unhex(bytes)))], rule ? [rule] : []);
  }
  for (const object of document.objects) {
    expect("objects", `${object.kind}: ${object.what}`, () => objects[object.kind](object), object.rule === null);
  }
  for (const { rule, what, k, root, reads, openings, words: known, error } of document.openings) {
    const opened = () => {
      try {
        return load(reads.map(readOf), openings.map(openingOf), unhex(root), k).map((w) => `0x${w.toString(16)}`);
      } catch (refused) {
        if (!(refused instanceof Refused)) throw refused;
        return [refused.rule, refused.code];
      }
    };
    expect("openings", what, opened, rule ? [rule, error] : known);
  }
}

/** STO: whether an object is what its reader looks for. */
const objects = {
  marks: ({ units, digest, bytes }) => isMarks(units, unhex(digest), unhex(bytes)),
  list: ({ specs, bytes }) => isList(specs, unhex(bytes)),
  packed: ({ digest, limit, bytes }) => isObject(unhex(digest), limit, unhex(bytes)),
  manifest: ({ entries, bytes }) => entries === manifestEntries(unhex(bytes)) && (entries > 0 || bytes === ""),
};

// --- elements.json

const readText = ({ node, address, fill }) => (fill === undefined ? `${node} at ${address}` : `fill ${fill}`);

function elements(document) {
  for (const [i, { descriptor, element, heads, done, terms, value }] of document.elements.entries()) {
    const node = decode(unhex(descriptor));
    const o = BigInt(element);
    const what = `${i}: family ${node.family}, type ${node.dtype}`;
    expect("elements", `${what}: heads`, () => headReads(node, o).map(readText), heads.map(readText));
    const known = heads.map((h) => BigInt(h.word));
    const begun = start(node, o, known);
    expect("elements", `${what}: start`, () => [begun.done, Number(begun.terms)], [done, terms.length]);
    const parts = terms.map(({ reads, part }, k) => {
      expect("elements", `${what}: reads ${k}`, () => termReads(node, o, BigInt(k), known).map(readText), reads.map(readText));
      const got = term(node, o, BigInt(k), known, reads.map((r) => BigInt(r.word)));
      expect("elements", `${what}: part ${k}`, () => `${got}`, part);
      return BigInt(part);
    });
    const result = () => `0x${BigInt.asUintN(256, done ? begun.value : fold(node, known, parts)).toString(16)}`;
    expect("elements", what, result, value);
    if (parts.length > 1) {
      const halves = [combine(node, parts.slice(0, 1)), combine(node, parts.slice(1))];
      expect("elements", `${what}: halves`, () => `0x${fold(node, known, halves).toString(16)}`, value);
    }
  }
  for (const { what, descriptor, heads, parts, part, value } of document.posted) {
    const node = decode(unhex(descriptor));
    expect("posted parts", what, () => `${combine(node, words(parts))}`, part);
    const result = () => `0x${BigInt.asUintN(256, fold(node, words(heads), words(parts))).toString(16)}`;
    expect("posted parts", `${what}: element`, result, value);
  }
  for (const { descriptor, what } of document.malformed) {
    expect("elements", what, () => refusal(() => decode(unhex(descriptor))) !== null, true);
  }
}

// --- nodes.json

const M64 = (1n << 64n) - 1n;

function splitMix(seed, i) {
  let z = (BigInt(seed) + BigInt(i + 1) * 0x9e3779b97f4a7c15n) & M64;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & M64;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & M64;
  return z ^ (z >> 31n);
}

function slot(given, { dtype, numel }) {
  if (typeof given === "string") return unhex(given);
  const drawn = Array.from({ length: Number(numel) }, (_, i) => {
    const w = splitMix(given.seed, i);
    const number = BigInt(given.low) + (w >> 32n) % BigInt(given.span);
    return dtype === F32 ? (w & 0x807fffffn) | (number << 23n) : number;
  });
  return toBytes(dtype, drawn);
}

function nodes(document) {
  for (const { name, program: file, x, y } of document.cases) {
    const program = decodeFile(unhex(file));
    let k = 0;
    const lists = x.map((given) => given.map((s) => slot(s, program.nodes[k++])));
    expect("programs", `${name}: well-formed`, () => [...broken(program)], []);
    const values = run(program, lists);
    let at = program.n - program.y.reduce((a, b) => a + b, 0);
    for (const known of y.flat()) {
      const node = program.nodes[at];
      const bytes = values[at++];
      const got = typeof known === "string" ? hex(bytes) : { root: hex(tensorRoot(node.dtype, node.dims, bytes)) };
      expect("whole programs", name, () => got, known);
    }
  }
}

// --- witness.json

function witness(document) {
  for (const { rule, what, program: file, root, x, key, accumulator } of document.cases) {
    const plain = decodeFile(unhex(file));
    if (rule) {
      expect("witness", what, () => refusal(() => witnessed(plain)), rule);
      continue;
    }
    expect("witness", what, () => hex(witnessed(plain).root), root);
    if (!x) continue;
    const found = witnessed(plain);
    expect("witness", `${what}: well-formed`, () => [...broken(found)], []);
    const lists = [...x.map((slots) => slots.map(unhex)), [toBytes(I32, words(key))], [Buffer.alloc(32)]];
    expect("witness", `${what}: accumulator`, () => hex(run(found, lists).at(-1)), accumulator);
  }
}

arithmetic(json("arithmetic"));
rules(json("rules"));
elements(json("elements"));
for (const game of json("games").games) checkGame(game, expect);
checkDigests(json("digests"), expect);
checkTerms(json("terms"), expect);
checkAnswers(json("answers"), expect);
nodes(json("nodes"));
witness(json("witness"));
console.log(JSON.stringify(tally));
