// Objects of a store: docs/protocol/store.md, rules STO.
import { createHash } from "node:crypto";
import { inflateSync } from "node:zlib";

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

/** STO-20, STO-21: what packed bytes stand for, of at most so many bytes; null for bytes that are packed wrongly. */
function unpacked(limit, bytes) {
  if (bytes.length < 16) return null;
  const size = bytes.readBigUInt64BE(8);
  if (size > limit || size > 8 * bytes.length) return null;
  const out = Buffer.alloc(Number(size));
  let filled = 0;
  let at = 16;
  while (filled < out.length) {
    if (bytes.length < at + 10) return null;
    const [width, turned] = bytes.subarray(at);
    const count = bytes.readBigUInt64BE(at + 2);
    if (![1, 2, 4, 8].includes(width) || turned > 1) return null;
    if (count < 1n || count * BigInt(width) > out.length - filled) return null;
    at += 10;
    for (let k = 0; k < width; k++) {
      const found = plane(bytes, at, Number(count));
      if (found === null) return null;
      for (let i = 0; i < found.plane.length; i++) out[filled + i * width + k] = found.plane[i];
      at = found.end;
    }
    const end = filled + Number(count) * width;
    for (; filled < end; filled += width) if (turned) turnBack(out.subarray(filled, filled + width));
  }
  return at === bytes.length ? out : null;
}

function plane(bytes, at, count) {
  if (bytes.length < at + 9) return null;
  const length = bytes.readBigUInt64BE(at + 1);
  if (length > bytes.length - at - 9) return null;
  const end = at + 9 + Number(length);
  const kept = bytes.subarray(at + 9, end);
  if (bytes[at] === 0) return kept.length === count ? { plane: kept, end } : null;
  if (bytes[at] !== 1) return null;
  try {
    const { buffer, engine } = inflateSync(kept, { maxOutputLength: count, info: true });
    return buffer.length === count && engine.bytesWritten === kept.length ? { plane: buffer, end } : null;
  } catch {
    return null;
  }
}

/** The bits of a little-endian element, one to the right. */
function turnBack(element) {
  const lowest = element[0] & 1;
  for (let k = 0; k < element.length; k++) {
    const next = k + 1 < element.length ? element[k + 1] & 1 : lowest;
    element[k] = (element[k] >> 1) | (next << 7);
  }
}

/** STO-2: whether bytes are an object of at most so many bytes with this SHA-256, as they are or packed. */
export function isObject(digest, limit, bytes) {
  const fits = (data) => createHash("sha256").update(data).digest().equals(digest);
  if (fits(bytes)) return bytes.length <= limit;
  if (!bytes.subarray(0, 8).equals(Buffer.from("packed-1"))) return false;
  const data = unpacked(limit, bytes);
  return data !== null && fits(data);
}
