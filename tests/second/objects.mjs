// Objects of a store: docs/protocol/store.md, rules STO.
import { digestList } from "./hash.mjs";
import { width } from "./numbers.mjs";

const NAMES = ["F32", "I32", "I64", "BOOL", "U8", "I8", "U16"];
const ORDER = [2, 0, 1, 6, 5, 4, 3]; // I64, F32, I32, U16, I8, U8, BOOL

/** STO-17: whether bytes are the marks of so many units with this digest. */
export function isMarks(units, digest, bytes) {
  if (bytes.length !== 32 * units) return false;
  const marks = Array.from({ length: units }, (_, i) => bytes.subarray(32 * i, 32 * i + 32));
  return digestList(marks).equals(digest);
}

/** STO-16: how many objects a manifest names; 0 for bytes that are none. */
export function manifestEntries(bytes) {
  if (bytes.length % 64 !== 0 || bytes.length > 64 * 4096) return 0;
  for (let at = 64; at < bytes.length; at += 64) {
    if (bytes.subarray(at - 64, at - 32).compare(bytes.subarray(at, at + 32)) >= 0) return 0;
  }
  return bytes.length / 64;
}

/** STO-8 to STO-11: whether bytes are laid out as the file of a list of these tensors, [type, dims] each. */
export function isList(specs, bytes) {
  const places = specs.map((_, i) => i).sort((a, b) => ORDER.indexOf(specs[a][0]) - ORDER.indexOf(specs[b][0]) || a - b);
  let at = 0;
  const entries = places.map((i) => {
    const [dtype, dims] = specs[i];
    const from = at;
    at += dims.reduce((a, b) => a * b, 1) * width(dtype);
    const name = String(i).padStart(5, "0");
    return `"${name}":{"dtype":"${NAMES[dtype]}","shape":[${dims.join(",")}],"data_offsets":[${from},${at}]}`;
  });
  let header = `{${entries.join(",")}}`;
  header = header.padEnd(Math.ceil(header.length / 8) * 8, " ");
  const start = Buffer.alloc(8);
  start.writeBigUInt64LE(BigInt(header.length));
  const known = Buffer.concat([start, Buffer.from(header)]);
  return bytes.length === known.length + at && bytes.subarray(0, known.length).equals(known);
}
