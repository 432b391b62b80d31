// Whole programs on bytes, element by element; constants, inputs and outputs as they are (EL-14).
import { CONST, INPUT, OUTPUT } from "./decode.mjs";
import { combine, fold, headReads, start, term, termReads } from "./elements.mjs";
import { loaded, raw, toBytes, width } from "./numbers.mjs";

const CHUNK = 4096n;

/** The bytes of every node's value. */
export function run(program, x) {
  const values = [];
  const word = ({ node, address, fill }) => {
    if (fill !== undefined) return fill;
    const { dtype, numel } = program.nodes[node];
    if (address >= numel) return 0n;
    return loaded(dtype, raw(dtype, values[node], Number(address) * width(dtype)));
  };
  for (const node of program.nodes) {
    if (node.family === INPUT) values.push(x[node.list][node.index]);
    else if (node.family === CONST) values.push(program.consts.get(node.root.toString("hex")));
    else if (node.family === OUTPUT) values.push(values[node.source]);
    else values.push(toBytes(node.dtype, elements(node, word)));
  }
  return values;
}

function elements(node, word) {
  const found = [];
  for (let o = 0n; o < node.numel; o++) found.push(elementOf(node, o, word));
  return found;
}

/** The word of one element; `word` gives what a read loads. */
export function elementOf(node, o, word) {
  const heads = headReads(node, o).map(word);
  const begun = start(node, o, heads);
  return begun.done ? begun.value : fold(node, heads, parts(node, o, begun.terms, heads, word));
}

/** Parts of all terms, in a few combined ones where there are many. */
function parts(node, o, terms, heads, word) {
  const found = [];
  for (let first = 0n; first < terms; first += CHUNK) {
    const some = [];
    for (let k = first; k < first + CHUNK && k < terms; k++) {
      some.push(term(node, o, k, heads, termReads(node, o, k, heads).map(word)));
    }
    found.push(combine(node, some));
  }
  return found;
}

