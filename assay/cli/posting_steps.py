"""The steps of posting a run: what is checked first, captured, promised, deployed, funded, and typed next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assay.amounts import SHARES, TEST_MONEY, Currency, check_typed
from assay.cli.beacons import network_named
from assay.cli.common import (
    check_run_code,
    confirm,
    open_blobs,
    open_chain,
    parse_address,
    print_json,
    talk,
    unlock_key,
)
from assay.cli.posting_governance import GovernanceWanted, governed_lines
from assay.cli.progress import moved, progress, told_steps
from assay.cli.starting import check_start, read_wanted
from assay.counts import count
from assay.durations import duration
from assay.protocol.errors import UsageError, UserError
from assay.protocol.types import Address, Wei
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.protocol.run.run_charter import RunCharter
    from assay.sponsor.charters import AuditRates, Committee
    from assay.sponsor.preparing import PreparedRounds
    from assay.sponsor.sponsor_words import SponsorWords
    from assay.sponsor.starting import StartValues
    from assay_ledger.rounds.run import Run

DEFAULT_PRESET: Final = "demo"
DEFAULT_STEPS: Final = 25
DEFAULT_TIER: Final = "fixed14"
CAPTURING: Final = "capturing"


@dataclass(frozen=True, slots=True)
class PostWanted(GovernanceWanted):
    """What a sponsor asked for, as options name it; None: what is usual."""

    preset: str | None = None
    data: Path | None = None
    recipe: str | None = None
    steps: int | None = None
    tier: str | None = None
    update: str = "f32"
    merge: str = "mean"
    sums: str = "f32"
    guard: float | None = None
    rounds: int = 20
    seats: int = 8
    group_size: int | None = None
    positions: int = 15
    top_positions: int = 63
    units: int = 5
    least: int = 2
    commit: int | None = None
    audit: float = 0.1
    reaudit: float = 0.2
    capacity: int = 4
    shifts: int = 1
    bounty: float = 0.97
    tickets: int = 5
    profile: str = "local"
    beacon: str | None = None
    escrow: str | None = None
    pays: bool = False
    name: str = "assay"
    data_card: Path | None = None
    licence: str | None = None
    start_from: str | None = None
    resume: str | None = None
    token: str | None = None
    sponsor_multisig: str | None = None

    @property
    def multisig(self) -> Address | None:
        """The contract that sponsors; None for the key. Raises UsageError (AddressInvalid)."""
        return None if self.sponsor_multisig is None else Address(parse_address(self.sponsor_multisig))

    @property
    def merge_words(self) -> str:
        """The merge, how sums of groups travel, and the guard, for people."""
        sums = "" if self.sums == "f32" else f", sums {self.sums}"
        return f"{self.merge}{sums}" if self.guard is None else f"{self.merge}{sums}, guard {self.guard:g}"

    @property
    def drawn_by(self) -> str:
        """The beacon."""
        return self.beacon or ("chain" if self.profile == "local" else "drand")

    @property
    def own_token(self) -> Address | None:
        """The token that was named; None for a fresh test token. Raises UsageError (AddressInvalid)."""
        return None if self.token is None else Address(parse_address(self.token))

    @property
    def rates(self) -> AuditRates:
        """How much is audited."""
        from assay.sponsor.charters import AuditRates

        return AuditRates(
            audit_ppm=round(self.audit * 1e6),
            reaudit_ppm=round(self.reaudit * 1e6),
            capacity=self.capacity,
            shifts=self.shifts,
            tickets=self.tickets,
            drawn_bounty_ppm=round(self.bounty * 1e6),
        )

    def escrow_for(self, charter: RunCharter, money: Currency) -> Wei:
        """What the escrow gets: what all rounds can cost, unless an amount was named."""
        from assay.sponsor.launching import escrow_of

        return escrow_of(charter) if self.escrow is None else money.parse(self.escrow)

    def escrow_ahead(self, inner_steps: int, money: Currency) -> Wei:
        """The same, before anything is captured. Raises UserError (TokenTooCoarse)."""
        from assay.sponsor.charters import chain_terms, escrow_ahead, pace_of
        from assay.sponsor.preparing import group_size_of

        usual = escrow_ahead(
            chain_terms(self.profile, money),
            money=money,
            rounds=self.rounds,
            seats=self.seats,
            pace=pace_of(inner_steps, self.units, self.least, self.commit),
            rates=self.rates,
            pays=self.pays,
            committee=self.committee,
            group_size=group_size_of(self.seats, self.group_size),
        )
        return usual if self.escrow is None else money.parse(self.escrow)

    @property
    def committee(self) -> Committee:
        """Above 64 seats."""
        from assay.sponsor.charters import Committee

        return Committee(self.positions, self.top_positions)


def post_as_wanted(settings: Settings, wanted: PostWanted, *, yes: bool, as_json: bool) -> None:
    """Checks, captures, publishes, deploys and funds. Raises what these raise; nothing is sent before the question."""
    from assay.cli.readiness import check_ready
    from assay.cli.run_documents import describe, show_fields
    from assay.sponsor.charters import pace_of
    from assay.sponsor.launching import fund_calls, fund_run, mint_tokens
    from assay.sponsor.multisig import batch_of, check_multisig
    from assay.sponsor.posting import post_run
    from assay_ledger.chain.client import address_of
    from assay_ledger.rounds.currencies import read_currency

    inner_steps, network = check_wanted(wanted), network_named(wanted.drawn_by, wanted.profile)
    blobs, chain = open_blobs(settings), open_chain(settings)
    keys = unlock_key(settings)
    multisig = wanted.multisig
    if multisig is not None:
        check_multisig(chain, multisig)
    money, paid = TEST_MONEY, None
    if wanted.own_token is not None:
        # Of a token that says no decimals nothing follows; why it is refused is said with what else is missing.
        money = read_currency(chain, wanted.own_token)
        paid = wanted.own_token, wanted.escrow_ahead(inner_steps, money) if money.is_known else Wei(0)
    check_ready(
        chain,
        blobs,
        keys.address,
        settings,
        payer=multisig or keys.address,
        profile=wanted.profile,
        drawn_by=wanted.drawn_by,
        paid=paid,
    )
    start = read_wanted(wanted.start_from, wanted.resume, chain, blobs)
    words = _words(wanted, start)
    sponsor, prepared = keys.account, _prepared(wanted, inner_steps, start)
    prepared = replace(prepared, origin=replace(prepared.origin, words=words))

    def ask(charter: RunCharter) -> None:
        escrow = wanted.escrow_for(charter, money)
        for line in _terms(charter, escrow, money):
            talk.print(line, markup=False, soft_wrap=True)
        pays = f"have {wanted.sponsor_multisig}" if multisig is not None else "and"
        confirm(f"Deploy this run from {sponsor.address} {pays} pay {money.both(escrow)} into its escrow?", yes=yes)

    with told_steps(moved(blobs)) as say:
        run = post_run(
            chain,
            sponsor,
            blobs,
            prepared,
            name=wanted.name,
            rounds=wanted.rounds,
            seats=wanted.seats,
            pace=pace_of(inner_steps, wanted.units, wanted.least, wanted.commit, prepared.step_seconds),
            rates=wanted.rates,
            kind=wanted.profile,
            network=network,
            pays=wanted.pays,
            committee=wanted.committee,
            token=wanted.own_token,
            money=money,
            sponsored_by=multisig,
            governs=wanted.governs,
            talk=say,
            confirm=ask,
        )
        check_run_code(run, settings)
        wei = wanted.escrow_for(run.charter, money)
        if wanted.own_token is None:
            mint_tokens(chain, sponsor, run.token, multisig or address_of(sponsor), wei)
        if multisig is None:
            say(f"funding the escrow with {money.both(wei)}")
            fund_run(chain, sponsor, run, wei)
    document: dict[str, Any] = {"run": "0x" + run.address.hex(), "store": blobs.location}
    document |= {"escrow": wei} | describe(run)
    if multisig is not None:
        talk.print("The escrow is empty until the multisig executes `batch`; `--multisig` prints what it does later.")
        document |= {"batch": batch_of(chain, multisig, "Fund the escrow of a run", fund_calls(run, wei))}
    if as_json:
        print_json(document)
        return
    show_fields(document, money)
    for line in _next_steps(run, money, own_token=wanted.own_token is not None):
        talk.print(line, markup=False, soft_wrap=True)


def check_wanted(wanted: PostWanted) -> int:
    """Steps of a whole commitment, once what was asked for fits together.

    Raises UserError (UnknownProfile, UnknownPreset, UnitsDoNotDivide, TooFewUnits), UsageError (OptionsClash).
    """
    from assay.protocol.economics.chain_profiles import CHAINS
    from assay.sponsor.charters import pace_of

    if wanted.profile not in CHAINS:
        raise UserError(
            f"There is no chain profile {wanted.profile!r}.",
            code="UnknownProfile",
            remedy=f"Choose one of: {', '.join(sorted(CHAINS))}.",
        )
    if wanted.escrow is not None:
        check_typed(wanted.escrow)
    wanted.check_governance()
    for address in (wanted.token, wanted.sponsor_multisig):
        if address is not None:
            parse_address(address)
    check_start(wanted.start_from, wanted.resume)
    _refuse_foreign(wanted)
    inner_steps = _inner_steps(wanted)
    pace_of(inner_steps, wanted.units, wanted.least)
    return inner_steps


def _next_steps(run: Run, money: Currency, *, own_token: bool = False) -> list[str]:
    """What has to happen before the first round, as commands, with amounts that last for all rounds."""
    from assay.node.local import is_local
    from assay.planning.outlook import outlook_of_role

    charter, least = run.charter, run.charter.launch.tickets
    for_seat, for_tickets = outlook_of_role(charter).advised, outlook_of_role(charter, tickets=least).advised
    seat, all_tickets, most = (money.at_least(wei) for wei in (for_seat, for_tickets, max(for_seat, for_tickets)))
    verb = "node fund NAME..." if is_local(run.chain) else "ledger faucet ADDRESS..."
    brought = f"coins and test tokens for them: assay {verb} --tokens AMOUNT   ({most} tokens are enough for each)"
    if own_token:
        brought = f"coins for them, and up to {most} of the token 0x{charter.token.hex()} for each"
    return [
        f"Next, in everybody's shell: export ASSAY_RUN=0x{run.address.hex()}",
        f"  {brought}",
        f"  auditors:  assay verifier start --key NAME --tickets {least} --deposit {all_tickets}   (several may share "
        f"the {least} tickets)",
        f"  solvers:   assay solver start --key NAME --deposit {seat}",
        f"  sponsor:   assay run open --wait --key NAME   (opens it once {least} tickets count, "
        f"{duration(charter.timing.seasoning)} of chain time after they are registered)",
        "  anybody:   assay run show, assay service start   (what it waits for, and pages to watch it)",
    ]


def _terms(charter: RunCharter, escrow: Wei, money: Currency) -> list[str]:
    """What the sponsor is about to promise, in sentences."""
    from assay.planning.outlook import outlook_of_run

    t, e, w = charter.training, charter.economics, charter.timing
    shares = f"{SHARES.show(e.shares_per_unit * t.max_units)} shares"
    paid = f"{money.show(charter.price)} tokens and {shares}" if e.pays else f"{shares} and no tokens"
    whole = outlook_of_run(charter)
    return [
        f"{count(charter.rounds, 'round')} of {w.commit} s for {count(t.seats, 'seat')}, up to "
        f"{count(t.max_units, 'unit')} of {count(t.steps_per_unit, 'step')} each",
        f"a whole commitment earns {paid}, a replay {money.show(e.wage)} tokens; the escrow gets {money.show(escrow)}, "
        f"and what is left in the end goes back to its funders",
        f"a seat locks {money.show(e.seat_lock)} tokens and a fee of {money.show(e.seat_fee)}, a ticket of an auditor "
        f"{money.show(e.ticket_bond)}; {charter.launch.tickets} tickets must count before a round opens",
        f"a round takes at most {duration(whole.round_at_most_seconds)} of chain time, tickets count after "
        f"{duration(whole.before_seconds)}, shares vest after {duration(whole.vesting_seconds)}, stake leaves after "
        f"{duration(whole.exit_seconds)}",
        *governed_lines(charter),
    ]


def _refuse_foreign(wanted: PostWanted) -> None:
    """Options that belong to the other kind of model are refused, not passed over. Raises UsageError (OptionsClash)."""
    recipe = wanted.recipe
    presets, recipes = (
        {"--preset": wanted.preset, "--data": wanted.data, "--guard": wanted.guard},
        {"--steps": wanted.steps, "--tier": wanted.tier},
    )
    foreign = presets if recipe is not None else recipes
    given = [option for option, value in foreign.items() if value is not None]
    if given:
        whose = "a preset's, and a recipe brings its own" if recipe is not None else "a recipe's"
        raise UsageError(
            f"{' and '.join(given)} cannot be given here: {'it is' if len(given) == 1 else 'they are'} {whose}.",
            code="OptionsClash",
            remedy="Leave it out, or name a --recipe." if recipe is None else "Leave it out.",
        )


def _inner_steps(wanted: PostWanted) -> int:
    """H, the steps of a whole commitment. Raises UserError (UnknownPreset)."""
    from assay.training.presets import preset as preset_of

    if wanted.recipe is not None:
        return wanted.steps or DEFAULT_STEPS
    return preset_of(wanted.preset or DEFAULT_PRESET).inner_steps


def _words(wanted: PostWanted, start: StartValues | None) -> SponsorWords:
    """What the run's card says beside its names. Raises UserError (LicenceForm, WordsImplausible, and what
    `stated_data` raises).
    """
    from assay.sponsor.sponsor_words import SponsorWords, check_words, checked_licence, stated_data

    data = None if wanted.data_card is None else stated_data(wanted.data_card)
    licence = "" if wanted.licence is None else checked_licence(wanted.licence)
    tier = DEFAULT_TIER if wanted.recipe is None else wanted.tier or DEFAULT_TIER
    words = SponsorWords(tier, wanted.update, wanted.merge_words, None if start is None else start.words, data, licence)
    check_words(words)
    return words


def _prepared(wanted: PostWanted, inner_steps: int, start: StartValues | None = None) -> PreparedRounds:
    """What the run starts from. Raises UserError (UnknownCarrier, UnknownMerge, UnknownSums, SumsOfNoGroups), and what
    `load_start` and capture raise.
    """
    from assay.programs.capture import tier_of
    from assay.programs.factory import load_recipe
    from assay.sponsor.preparing import check_sums, group_size_of, prepare_recipe_rounds, prepare_rounds
    from assay.training import data as texts
    from assay.training.presets import preset as preset_of
    from assay.training.robust import merge_kind
    from assay.training.updates import sum_wire, update_wire

    wire, sums, kind = update_wire(wanted.update), sum_wire(wanted.sums), merge_kind(wanted.merge)
    check_sums(sums, group_size_of(wanted.seats, wanted.group_size))
    merge = f"merge of {count(wanted.seats, 'seat')} ({wanted.merge_words})"
    four = f"step, update ({wanted.update}), {merge}, witnessed step"
    if start is not None:
        momentum = ", with its outer momentum" if start.momentum else ""
        talk.print(f"the first parameters are those of {start.source}{momentum}", markup=False)
    if wanted.recipe is None:
        chosen = preset_of(wanted.preset or DEFAULT_PRESET)
        text = texts.pydoc_text() if wanted.data is None else texts.read_text(wanted.data)
        talk.print(f"capturing the programs of preset {chosen.name}: {four}")
        with progress(CAPTURING):
            rules: dict[str, Any] = {"wire": wire, "kind": kind, "guard": wanted.guard, "sums": sums}
            return prepare_rounds(chosen, text, wanted.seats, group_size=wanted.group_size, start=start, **rules)
    tier = wanted.tier or DEFAULT_TIER
    tier_of(tier)
    made = load_recipe(wanted.recipe)
    talk.print(f"capturing the programs of {wanted.recipe}: {four}")
    with progress(CAPTURING):
        found = prepare_recipe_rounds(
            made,
            wanted.recipe,
            wanted.seats,
            inner_steps=inner_steps,
            tier=tier,
            wire=wire,
            group_size=wanted.group_size,
            start=start,
            kind=kind,
            sums=sums,
        )
    for line in found.mapped:
        talk.print(f"of what it starts from: {line}", markup=False)
    talk.print(
        f"one exact step took {found.step_seconds:.2g} s here: "
        f"a round of {inner_steps} steps {found.step_seconds * inner_steps:.0f} s"
    )
    return found
