// Answers questions about bytes, one JSON object a line: {kind, items} gives {answers}. For fuzzing.
import { createInterface } from "node:readline";
import { judgeMoves } from "./check_games.mjs";
import {
  DOT, MAX, Malformed, RANK, ROWEXP, SCATTER_SUM, SUM, decode, decodeFile, decodeHeader, head,
} from "./decode.mjs";
import { H, hex, unhex } from "./hash.mjs";
import { isList, isMarks, isObject, manifestEntries } from "./objects.mjs";
import { Refused, load, openingOf, readOf } from "./openings.mjs";
import { elementOf, run } from "./run.mjs";
import { broken as rulesBroken } from "./wellformed.mjs";

const REDUCTIONS = [ROWEXP, MAX, DOT, SUM, SCATTER_SUM, RANK];

/** What an answer says, or the rule that refuses the bytes. */
function rule(answer) {
  try {
    return answer();
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    return error.rule;
  }
}

const kinds = {
  descriptors: (bytes) => {
    const said = head(unhex(bytes));
    const node = rule(() => decode(unhex(bytes)));
    const broken = typeof node === "string";
    const terms = !broken && REDUCTIONS.includes(node.family) ? node.terms : 0n;
    const numbers = [said.family, said.dtype, said.dims.length, said.numel, terms].map(String);
    return [broken ? node : null, ...numbers];
  },
  headers: (bytes) => rule(() => decodeHeader(unhex(bytes)).n),
  files: (bytes) => rule(() => [...rulesBroken(decodeFile(unhex(bytes)))].sort()),
  openings: ({ reads, openings, root, k }) => {
    try {
      return load(reads.map(readOf), openings.map(openingOf), unhex(root), k).map(String);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return error.code;
    }
  },
  elements: ({ descriptor, element, words }) => {
    const node = rule(() => decode(unhex(descriptor)));
    if (typeof node === "string") return "0";
    const word = (read) => (read.fill === undefined ? BigInt(words[`${read.node} ${read.address}`]) : read.fill);
    return `${elementOf(node, BigInt(element), word)}`;
  },
  runs: ({ file, x }) => {
    const program = decodeFile(unhex(file));
    return run(program, x.map((slots) => slots.map(unhex))).map((bytes) => hex(H(bytes)).slice(0, 16));
  },
  moves: judgeMoves,
  marks: ({ units, digest, bytes }) => isMarks(units, unhex(digest), unhex(bytes)),
  packed: ({ digest, limit, bytes }) => isObject(unhex(digest), limit, unhex(bytes)),
  manifests: (bytes) => manifestEntries(unhex(bytes)),
  lists: ({ specs, bytes }) => isList(specs, unhex(bytes)),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { kind, items } = JSON.parse(line);
  process.stdout.write(`${JSON.stringify({ answers: items.map(kinds[kind]) })}\n`);
}
