// Plays the recorded games of games.json: every move, what is refused in its place, positions, keys, the verdict.
import { decodeHeader } from "./decode.mjs";
import { Game, NODES, OVER, STATE, STEPS } from "./game.mjs";
import { hex, programDigest, unhex } from "./hash.mjs";
import { Refused, openingOf } from "./openings.mjs";

const BYTES = ["node", "leaf", "opening"];
const DIGESTS = ["digests", "programPath", "appendPath", "path", "listRoots"];

/** The arguments of a move as values. */
function values(given) {
  const read = ([name, value]) => {
    if (BYTES.includes(name)) return [name, unhex(value)];
    if (DIGESTS.includes(name)) return [name, value.map(unhex)];
    if (name === "parts") return [name, value.map(BigInt)];
    if (name === "heads" || name === "reads") return [name, value.map(openingOf)];
    return [name, value];
  };
  return Object.fromEntries(Object.entries(given).map(read));
}

function outcome(game, move, side, given) {
  try {
    game.play(move, side, values(given));
    return "accepted";
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return error.code;
  }
}

/** The game before its first move. */
function begin({ arity, tree, header, known, knownFirst, claim: given }) {
  const claim = { steps: given.steps };
  for (const name of ["id", "program", "x", "y"]) claim[name] = unhex(given[name]);
  const program = { ...decodeHeader(unhex(header)), tree: unhex(tree) };
  // Lists of other games: posted before this one began, or after.
  const lists = new Map(Object.entries(known).map(([key, list]) => [key, unhex(list)]));
  const game = new Game(claim, program, arity, knownFirst ? lists : new Map());
  game.known = lists;
  return game;
}

/** What comes of other moves in some turns of a recorded game: the error, the verdict, or where the game stands then. */
export function judgeMoves({ game: recorded, attempts }) {
  const game = begin(recorded);
  const found = [];
  recorded.turns.forEach((turn, number) => {
    attempts.forEach((attempt, i) => {
      if (attempt.turn !== number) return;
      const copy = Object.assign(Object.create(Game.prototype), game);
      const refused = outcome(copy, turn.move, turn.side, attempt.arguments);
      const v = copy.verdict;
      if (refused !== "accepted") found[i] = refused;
      else if (v) found[i] = [v.loser, v.family, v.node, v.element, v.term, v.expected, v.claimed].join(" ");
      else found[i] = [copy.stage, copy.turn, hex(copy.agreed), hex(copy.posted)].join(" ");
    });
    game.play(turn.move, turn.side, values(turn.arguments));
  });
  return found;
}

const text = (verdict) => Object.fromEntries(Object.entries(verdict).map(([name, value]) => [name, `${value}`]));

export function checkGame(recorded, expect) {
  const { what, header, tree, claim } = recorded;
  expect("games", `${what}: program root`, () => hex(programDigest(unhex(header), unhex(tree))), claim.program);
  const game = begin(recorded);
  recorded.turns.forEach((turn, i) => {
    const place = `${what}: turn ${i}, ${turn.move}`;
    expect("games", place, () => [game.stage, game.turn], [turn.stage, turn.side]);
    if ((turn.stage === STEPS || turn.stage === NODES) && turn.key) {
      expect("games", `${place}: position`, () => [game.step, game.lo, game.hi], [turn.step, turn.lo, turn.hi]);
      expect("games", `${place}: key`, () => hex(game.key()), turn.key);
    }
    for (const { field, value, error } of turn.refused) {
      const bad = { ...turn.arguments, [field]: value };
      expect("games", `${place}: another ${field}`, () => outcome(game, turn.move, turn.side, bad), error);
    }
    expect("games", `${place}: default`, () => text(game.inDefault()), text(turn.default));
    const other = 3 - turn.side;
    if (turn.move !== "timeout") expect("games", `${place}: by the other`, () => outcome(game, turn.move, other, turn.arguments), "NotYourTurn");
    const wrong = turn.stage === STATE ? "openLeaf" : "openState";
    expect("games", `${place}: ${wrong} here`, () => outcome(game, wrong, turn.side, {}), "WrongStage");
    expect("games", place, () => outcome(game, turn.move, turn.side, turn.arguments), "accepted");
  });
  expect("games", `${what}: over`, () => game.stage, OVER);
  expect("games", `${what}: verdict`, () => text(game.verdict), text(recorded.verdict));
}
