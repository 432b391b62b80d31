"""What an error code means and what to do: the contracts' custom errors by this table, our own by their definitions.

A test holds the table to the contracts: every custom error that a contract of a run can raise is in it, and no other.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import assay
import assay_ledger
import assay_solver
import assay_verifier
import assay_whistleblower

CONTRACT_CODES: Final[dict[str, tuple[str, str]]] = {
    "AlreadyAttested": ("A root was bound for this round already.", "Nothing: one root per round, and it stands."),
    "AlreadyClosed": ("This was settled already.", "Nothing: what was due has been booked."),
    "AlreadyCommitted": ("The seat has its commitment for this round.", "Nothing: one commitment per seat and round."),
    "AlreadyPosted": ("This account stands behind this outer root already.", "Nothing: post again only another root."),
    "AlreadyReceipted": ("This verifier signed for this commitment already.", "Nothing."),
    "AlreadyRegistered": ("The account is registered already.", "Use another account for another role."),
    "AlreadyRetired": ("The account is leaving already.", "Wait for the round named, then reclaim the stake."),
    "AlreadyRevealed": ("This was revealed already.", "Nothing."),
    "AlreadySeated": ("The account holds a seat already.", "Use another account for another seat."),
    "AlreadySettled": ("The round was settled already.", "Nothing."),
    "AmountZero": ("An amount of zero was named.", "Name an amount above zero."),
    "AmountTooLarge": ("An amount of the charter could overflow a sum.", "Lower it to the maximum."),
    "AttesterConvicted": ("The account was convicted of a false attestation.", "Register another account."),
    "BadDraw": ("The draw is not the signature of the registered key on the round's seed.", "Sign with that key."),
    "BadPossession": ("The proof of possession does not fit the public key.", "Make the key and its proof together."),
    "BaseNotFinal": ("The outer root that the work started from is not final yet.", "Try again once it is."),
    "BaseNotStanding": (
        "The outer root named as start fell and was not rescued in time, or was never posted.",
        "Recompute the outer step and start from a root that stands or can still be rescued.",
    ),
    "BaseNotVoid": ("The outer root it starts from has not fallen for good.", "Wait: it may be rescued."),
    "BondTooSmall": ("The charter's verifier bond does not deter a false attestation.", "Raise it to the minimum."),
    "BookNotFound": ("Claims of this kind stand in no book.", "Name the claim's kind correctly."),
    "BountyTooSmall": (
        "With these terms gas at the fee cap costs a winner more than its bounty.",
        "Raise claim lock, price or bounty share.",
    ),
    "ChallengeBondTooSmall": (
        "The charter's challenge bond does not pay for gas at the fee cap.",
        "Raise it to the minimum.",
    ),
    "ClaimLockTooSmall": ("The charter's claim lock does not deter false work.", "Raise it to the minimum."),
    "ClaimNotFound": ("There is no such claim; an incomplete commitment makes none.", "Check round, seat and duty."),
    "ClaimSettled": ("The claim was settled: it cannot be disputed any more.", "Nothing: its window is over."),
    "CommitmentExists": ("The same challenge is committed already.", "Reveal it, or commit another with a fresh salt."),
    "CommitmentMismatch": (
        "The receipt names another commitment than the one on chain.",
        "Fetch the commitment that stands there now, and sign for that.",
    ),
    "CommitmentNotFound": ("There is no such commitment, or it is another account's.", "Check round, seat or salt."),
    "DepositTooLarge": ("A run takes 2^120 wei of a revenue token in all.", "Pay less, or in another listed token."),
    "DepositTooSmall": ("The revenue is too small to be streamed exactly.", "Pay at least the minimum."),
    "DisputeTooLong": ("With these clocks a dispute may outlast what the charter allows.", "Shorten the clocks."),
    "DrawNotRevealed": ("The draw was not revealed in time.", "Reveal it in its window; the duties are not paid."),
    "EndMismatch": ("The list roots of the last state do not hash to its root.", "Commit the state's own lists."),
    "EndRootZero": ("A leaf names no end root.", "Reveal the leaf that was bound."),
    "EscrowShort": ("The escrow does not cover what a round can cost.", "The sponsor funds it; no work is lost."),
    "ExitDelayTooLong": ("The exit delay keeps stakes far longer than they answer for.", "Shorten it."),
    "ExitDelayTooShort": ("The exit delay ends before a dispute can.", "Lengthen it to the minimum."),
    "ExitTooEarly": ("The exit delay is not over.", "Withdraw after the time named."),
    "FeeNotAboveCap": ("A turn is deferred only while the base fee is above the charter's cap.", "Move now."),
    "FeeOnTransfer": ("The token takes a fee from transfers.", "Use a token that moves exact amounts."),
    "GamesOpen": ("Games on it are still open.", "Wait for their verdicts."),
    "GasTooLow": ("The transaction has too little gas for the call.", "Send it again with more gas."),
    "GrantExists": ("These shares were credited already.", "Nothing."),
    "GrantNotFound": ("No shares were credited under this name, or they are gone.", "Check round and account."),
    "InclusionMoved": (
        "Another set of seats is included in this outer step by now; nothing was locked.",
        "Compute the step from the present inclusion and post that.",
    ),
    "IndexOutOfRange": ("A selection names something that is not there.", "Name an entry of the list posted."),
    "InsufficientFree": ("The free stake does not cover the lock.", "Stake more (`assay ledger stake`)."),
    "KeyTaken": ("Another account registered this drawing key.", "Make a key of your own (`assay key new`)."),
    "ListMismatch": ("The list given again is not the one posted.", "Give the list of the last move unchanged."),
    "LockNotFound": ("There is no such lock.", "Nothing: it was released or taken already."),
    "LockTooSmall": ("The lock does not hold that much.", "Report it: this cannot happen in a game."),
    "MalformedProgram": ("The header of a program cannot be read.", "Capture the program again."),
    "MayNotChallenge": (
        "Only a party whose own revealed result differs may challenge at once.",
        "Bind the challenge first and reveal it two blocks later; the agents do so themselves.",
    ),
    "MintTooLarge": ("More shares would exist than votes can count.", "Report it: the charter credits too much."),
    "NoDeferralLeft": ("This side has used its three deferrals of the game.", "Move before the deadline, at any fee."),
    "NoOuterRoot": ("No outer root of the last round stands.", "Post the outer step; anybody seated may."),
    "NoSeats": ("No seat is taken.", "Wait for a solver to join."),
    "NoStake": ("The account's stake does not count in this round.", "A stake counts from the second T0 on."),
    "NotNext": (
        "The deployer creates a run's contracts in their order, each once.",
        "Read `created`, go on from there.",
    ),
    "NotAMember": ("Only seated solvers and verifiers post outer steps.", "Join first."),
    "NotAModule": ("Only contracts of the run move locks.", "Nothing: this is no call for people."),
    "NotAVerifier": ("The account is no verifier whose stake counts in this round.", "Register; wait two T0."),
    "NotAttested": ("The account bound no root for this round.", "Nothing: without a root there are no leaves."),
    "NotAudit": ("Only the audit contract may call this.", "Nothing: this is no call for people."),
    "NotChallengeable": (
        "The claim does not exist, its window is not open, or it has fallen already.",
        "Look it up (`assay explain ID`): its window and its games are named there.",
    ),
    "NotDrawn": ("The leaf is for a duty that the account did not draw.", "Reveal the leaves that were bound."),
    "NotRegistered": ("The account is no verifier or whistleblower.", "Register first."),
    "NotRetired": ("The stake is still needed.", "Retire, and reclaim it after the round named."),
    "NotRounds": ("Only the rounds contract may call this.", "Nothing: this is no call for people."),
    "NotSeated": ("The account does not hold this seat in this round.", "A seat counts from the next T0 on."),
    "NotSettlement": ("Only the settlement contract may call this.", "Nothing: this is no call for people."),
    "NotShares": ("Only the share token may call this.", "Nothing: this is no call for people."),
    "NotSorted": ("Leaves are not in the order of claim id and duty.", "Reveal them in the order of the root."),
    "NotTheGame": ("Only the game may call this.", "Nothing: this is no call for people."),
    "NotTheOwner": ("The lock is another's.", "Nothing."),
    "NotTheSponsor": ("Only the sponsor may call this.", "Use the sponsor's key."),
    "NotVested": ("The shares have not vested.", "Release them after the time named."),
    "NotVesting": ("Only the vesting contract may call this.", "Nothing: this is no call for people."),
    "NotYourTurn": ("The other side is to move, or the account is no party.", "Wait for its move or its deadline."),
    "NotFinite": ("A number of the charter is no finite binary32.", "Name a finite learning rate."),
    "NothingExiting": ("Nothing was asked to be withdrawn.", "Ask first (`assay ledger unstake`)."),
    "NothingToClaim": ("No revenue is due to the account now.", "Revenue streams over four weeks: claim later."),
    "OuterClosed": ("The outer claim is settled or has fallen.", "Nothing."),
    "PrecompileFailed": ("A curve operation failed: bytes are no point, or the chain lacks EIP-2537.", "Check both."),
    "ProgramMismatch": ("Header and tree of a program do not hash to its root.", "Capture the program again."),
    "ProgramNotFound": ("The run has no such program.", "`assay run show` lists the three."),
    "RateTooHigh": ("A rate of the charter is above its maximum.", "Lower it."),
    "ReferencePriceZero": ("The charter names no reference price.", "Name one: every lock is a multiple of it."),
    "RescueOver": (
        "The time in which others could stand up for this outer root is over.",
        "Post within the rescue window that the root's first lost claim begins.",
    ),
    "RevealTooEarly": ("A committed challenge is revealed two blocks later at the earliest.", "Wait for the block."),
    "RevealTooLate": (
        "The committed challenge was not revealed within an hour.",
        "Its deposit is lost; commit a new one.",
    ),
    "RootMismatch": ("The leaves do not hash to the root that was bound.", "Reveal exactly the leaves bound."),
    "RoundNotOpen": ("The round has not been opened.", "Wait for its T0."),
    "RoundNotSettleable": ("The round is not over.", "Settle it from the time named on."),
    "RoundPassed": ("A later round builds on another root of this round.", "Nothing: post for the last round."),
    "RoundUnsettled": ("Work or attendance of the round is not settled yet.", "Settle these first."),
    "RunNotOver": ("The run is not over, or not settled.", "The escrow returns when every round is settled."),
    "RunOver": ("The run opens no more rounds.", "Nothing: settle and claim what is due."),
    "ScheduleTooLong": ("A number of the charter is too large.", "Lower it to the maximum."),
    "SeatFeeTooHigh": ("The seat fee is above the pay of a round.", "Lower it."),
    "SeatsFull": ("All eight seats are taken.", "Wait until one is given up (`assay run show`)."),
    "SeedAlreadyDrawn": ("The seed was drawn already.", "Nothing: the first to draw was enough."),
    "SeedMismatch": (
        "The root's duties were drawn from another seed: a reorganization of the chain drew the seed again.",
        "Draw the duties from the seed that stands, and bind their root.",
    ),
    "SeedNotDrawn": ("The seed has not been drawn.", "Draw it; anybody may, from its time on."),
    "ShardsFewerThanSeats": ("Two seats would share data.", "Cut the data into at least eight shards."),
    "StakeBelowBond": ("The stake is below the run's bond.", "Register with at least the bond."),
    "StakeTooLarge": ("One stake would outweigh what the draws can count.", "Register with less."),
    "StartMismatch": (
        "The commitment starts from another state than the one that the contract builds.",
        "Start from the base's parameters, your last complete optimizer, and the round's scalars.",
    ),
    "TagTooLong": ("A domain tag is too long.", "Report it: the tag is ours."),
    "TicketMismatch": ("The draw given again is not the one revealed.", "Give the same signature."),
    "TokenNotListed": ("The token is no revenue token of the run.", "`assay run show` lists them."),
    "TooEarly": ("It is not time yet.", "Try again at the time named."),
    "TooLate": ("Its time is over.", "Nothing for this round or turn; the deadline is named."),
    "TooManyRevenueTokens": ("More than four revenue tokens are named.", "Name at most four."),
    "UnknownProgram": ("The claim is about a program that the game does not know.", "Report it: check the charter."),
    "ValueZero": ("A value of the charter is zero that must not be.", "Name one above zero."),
    "VaultFull": ("A vault holds at most 2^127 wei at a time.", "Deposit less."),
    "WindowTooShort": ("A window of the charter is too short for people to act.", "Lengthen it to the minimum."),
    "WrongCode": ("The creation code is not the one that this deployer was made for.", "Deploy with the same release."),
    "WrongTerms": ("The terms are not those of the deployer's run.", "Every run has a deployer of its own."),
    "WrongArity": ("The arity of games is no power of two up to 64.", "Choose one, such as 64."),
    "WrongCount": ("A list or path has not exactly the length that belongs there.", "Give it whole and no longer."),
    "WrongDigest": ("An opening does not hash to what it opens.", "Open exactly what was committed to."),
    "WrongRole": ("The account has another role.", "Use the account that is registered for it."),
    "WrongStage": ("The move does not belong to the stage of the game.", "Read the game again: its stage is named."),
}
"""Custom error to its meaning and its remedy."""

STANDING_CODES: Final[dict[str, tuple[str, str]]] = {
    "Incomplete": (
        "Too little of the verifiers' stake signed that everything of this commitment was there, so it makes no claim.",
        "Publish every object before committing, and keep the store reachable until T1+a.",
    ),
    "Excluded": (
        "A drawn party revealed another result, so the work was left out of the outer step; it is paid if it stands.",
        "If your work is right, challenge that attestation within the window.",
    ),
    "Convicted": (
        "A game on one of its claims was lost, and the lock behind it is gone.",
        "`assay bundle export` writes the evidence; of what follows only the next start changes: zero-initialised.",
    ),
    "BaseFell": (
        "The outer root that the work started from fell and was not rescued: the work is void, unpaid, never slashed.",
        "Start from a root that you computed yourself.",
    ),
    "NotSettledYet": (
        "The challenge window, or a game, is still open.",
        "Nothing: actors settle it themselves once it is over, and anybody may.",
    ),
    "Unrevealed": (
        "Results were bound and not revealed, so no duty of that round is paid.",
        "Stay up until T5+r; the journal in the data folder holds the salts.",
    ),
}
"""What may stand between work and pay, though no contract reverts with it."""


@dataclass(frozen=True, slots=True)
class Code:
    """An error code, where it comes from, what it means and what to do."""

    name: str
    source: str
    meaning: str
    remedy: str


def find_code(name: str) -> Code | None:
    """The code of this name, in any spelling of upper and lower case."""
    folded = {known.lower(): known for known in all_codes()}
    known = folded.get(name.lower())
    return None if known is None else all_codes()[known]


@cache
def all_codes() -> dict[str, Code]:
    """Every code that a person can meet, by name."""
    found = _python_codes()
    for name, (meaning, remedy) in CONTRACT_CODES.items():
        found[name] = Code(name, "contract", meaning, remedy)
    for name, (meaning, remedy) in STANDING_CODES.items():
        found[name] = Code(name, "standing", meaning, remedy)
    return found


def _python_codes() -> dict[str, Code]:
    """Codes of this program, read from its own sources: error classes, and codes named where an error is raised."""
    found: dict[str, Code] = {}
    for package in (assay, assay_ledger, assay_solver, assay_verifier, assay_whistleblower):
        for path in sorted(Path(str(package.__file__)).parent.rglob("*.py")):
            for code in _codes_in(ast.parse(path.read_text(encoding="utf-8"))):
                if code.name not in found or len(code.remedy) > len(found[code.name].remedy):
                    found[code.name] = code
    return found


def _codes_in(tree: ast.Module) -> list[Code]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any("Error" in _name(b) or _name(b) in _FAMILIES for b in node.bases):
            remedy = next((_text(s.value) for s in node.body if isinstance(s, ast.Assign) and _is_remedy(s)), "")
            if not node.name.endswith("Error") or remedy:
                found.append(Code(node.name, "assay", ast.get_docstring(node) or "", remedy))
        elif isinstance(node, ast.Call):
            words = {k.arg: _text(k.value) for k in node.keywords}
            if words.get("code") and node.args:
                found.append(Code(words["code"], "assay", _text(node.args[0]), words.get("remedy", "")))
    return found


_FAMILIES: Final = frozenset({"GameError", "BundleMalformed"})


def _is_remedy(statement: ast.Assign) -> bool:
    return any(_name(target) == "remedy" for target in statement.targets)


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.AST) -> str:
    """A string as written; what is only known when it happens stands as three dots."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.IfExp):
        return _text(node.body)
    return ""
