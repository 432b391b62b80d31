// Answers and what pays for them: AN-2, AN-4, AN-5, docs/inference.md and docs/payments.md, with the vectors.
import { ZERO, hex, keccak, listRoot, stateRoot, tensorRoot, uint, unhex } from "./hash.mjs";
import { BOOL, I32, I64, order, philox, toBytes, toNumber } from "./numbers.mjs";

const LOG2_E = 1_549_082_005n;
const word = (value) => uint(value, 32);
const bytes = (text) => unhex(text.slice(2));
const address = (text) => Buffer.concat([Buffer.alloc(12), unhex(text.replace("0x", ""))]);
const name = (text) => keccak(Buffer.from(text));
const low = (value) => BigInt.asUintN(32, value);
const halves = (value) => [low(value), value >> 32n];

/** Runs every case of answers.json. */
export function checkAnswers(known, expect) {
  const is = (what, answer, value) => expect("answers", what, answer, value);
  for (const c of known.draws) draws(c, is);
  for (const c of known.statements) is("statement", () => hex(statement(JSON.parse(c.file))), c.digest);
  for (const c of known.vouchers) vouchers(c, is);
  for (const c of known.claims) claims(c, is);
}

/** 2^exponent to the nearest integer. */
function power(exponent) {
  const found = 2 ** exponent;
  if (Math.abs(found - Math.floor(found) - 0.5) < 1e-5) throw new Error("too near to a half");
  return BigInt(Math.round(found));
}

/** Units of a logit: 2^-20, half to even. */
function units(pattern) {
  const scaled = Math.min(Math.max(toNumber(pattern), -(2 ** 30)), 2 ** 30) * 2 ** 20;
  const down = Math.floor(scaled);
  const rest = scaled - down;
  return BigInt(rest > 0.5 || (rest === 0.5 && down % 2 !== 0) ? down + 1 : down);
}

/** The 64 bits of an answer's token. */
function bits(seed, place) {
  const [upper, lower] = [0, 1].map((k) => low(philox(k, 0, halves(BigInt(place)), halves(BigInt(seed)))));
  return { upper, lower, all: (upper << 32n) | lower };
}

function draws(c, is) {
  const logits = c.logits.map(Number);
  const falling = [...logits.keys()].sort((a, b) => order(logits[b]) - order(logits[a]) || a - b);
  if (c.temperature === 0) {
    is("the largest logit", () => falling[0], c.token);
    return;
  }
  const rate = (LOG2_E * 1_000_000n) / BigInt(c.temperature);
  const all = logits.map(units);
  const top = all.reduce((a, b) => (a > b ? a : b));
  const weights = all.map((u, token) => {
    if (c.top_k && falling.indexOf(token) >= c.top_k) return 0n;
    const z = ((top - u) * rate) >> 30n;
    const [upper, lower] = [(z >> 10n) & 1023n, z & 1023n].map(Number);
    return ((power(31 - upper / 2 ** 10) * power(31 - lower / 2 ** 20)) >> 31n) >> (z >> 20n);
  });
  is("weights", () => weights.map(Number), c.weights);
  const target = (bits(c.seed, c.place).all * weights.reduce((a, b) => a + b)) >> 64n;
  let sum = 0n;
  is("a token", () => weights.findIndex((weight) => (sum += weight) > target), c.token);
}

const tokens = (values) => keccak(...values.map(word));

/** EIP-712 over a statement's file. */
function statement(s) {
  const type = name(
    "Answer(address run,bytes32 model,bytes32 program,bytes32 tokenizer,uint32[] prompt,uint64 seed,"
    + "uint32 temperature,uint32 topK,uint32 most,uint32 end,uint32[] answer)",
  );
  const numbers = [s.seed, s.temperature, s.top_k, s.most, s.end].map((value) => word(BigInt(value)));
  const roots = [s.model, s.program, s.tokenizer].map(bytes);
  const struct = keccak(type, address(s.run), ...roots, tokens(s.prompt), ...numbers, tokens(s.answer));
  const domain = name("EIP712Domain(string name,string version,uint256 chainId)");
  return keccak(unhex("1901"), keccak(domain, name("Assay inference"), name("1"), word(s.chain_id)), struct);
}

function vouchers(c, is) {
  const line = JSON.parse(c.line);
  const type = name("Voucher(address payer,address gateway,address token,uint256 amount)");
  const struct = () => keccak(type, ...[line.payer, line.gateway, line.token].map(address), word(BigInt(line.amount)));
  const domain = name("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
  const place = [name("Assay vouchers"), name("1"), word(c.chain_id), address(c.contract)];
  is("voucher", () => hex(keccak(unhex("1901"), keccak(domain, ...place), struct())), c.digest);
  const seed = () => keccak(bytes(line.signature), keccak(Buffer.from(c.body))).readBigUInt64BE(0);
  is("seed of a voucher", () => seed().toString(), c.seed);
}

function claims(c, is) {
  const s = JSON.parse(c.file);
  const p = c.place;
  const count = s.answer.length;
  // AN-2
  if (p > count || (p === count && (count === s.most || s.answer.at(-1) === s.end))) {
    is(c.what, () => "NothingSaid", c.error);
    return;
  }
  is(`${c.what}: outer root`, () => hex(keccak(statement(s), address(s.signer), word(p))), c.outer_root);
  // AN-4
  const window = [...s.prompt, ...s.answer.slice(0, p)].slice(-c.window);
  const t = BigInt(s.temperature || 1_000_000);
  const r = (LOG2_E * 1_000_000n) / t;
  const limit = s.temperature === 0 ? 1 : s.top_k === 0 ? 2 ** 31 - 1 : s.top_k;
  const { upper, lower } = bits(s.seed, p);
  const tensor = (dtype, dims, values) => tensorRoot(dtype, dims, toBytes(dtype, values.map(BigInt)));
  const x = () => stateRoot([
    bytes(s.model),
    listRoot([
      tensor(I32, [1, c.window], [...window, ...Array(c.window - window.length).fill(0)]),
      tensor(I32, [1], [window.length]),
    ]),
    listRoot([
      tensor(I64, [2], [r, (32n << 50n) / r + 1n]),
      tensor(I32, [4], [limit, p < count ? s.answer[p] : 0, upper, lower]),
    ]),
  ]);
  is(`${c.what}: X`, () => hex(x()), c.x);
  // AN-5
  const read = [...s.prompt, ...s.answer.slice(0, p + 1)];
  const isOdd = p === count || p >= s.most || s.prompt.length === 0 || s.temperature > 1e8
    || s.answer.slice(0, p).includes(s.end) || read.some((token) => token >= c.vocabulary);
  const y = () => (isOdd ? ZERO : stateRoot([listRoot([tensor(BOOL, [1], [1])])]));
  is(`${c.what}: Y`, () => hex(y()), c.y);
}
