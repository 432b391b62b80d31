"""A run's contracts are created at the addresses they were told, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest
from eth_account import Account

from assay.protocol.economics.chain_profile import MIN_WINDOW, PPM, min_challenge_bond, min_kept
from assay.protocol.economics.formulas import check_charter, min_bond, min_claim_lock, min_exit
from assay.protocol.errors import AssayError, RejectedError
from assay.protocol.run.charter import Charter, Modules, ProgramRef, modules_tuple
from assay.protocol.types import Address, Wei
from assay_ledger.bindings.charter import CharterContract
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.chain.node import Anvil
from assay_ledger.deployment.deploy import (
    DeploymentFailed,
    WiringWrong,
    deploy_run,
    deploy_seed,
    deploy_token,
    verify_wiring,
)
from assay_ledger.deployment.places import LEAVES, MODULE_CONTRACTS, create_address, places_of
from assay_ledger.index.run import Run
from tests.harness import programs
from tests.harness.contracts import harness, world
from tests.harness.contracts.fresh import fresh_artifacts
from tests.harness.contracts.world import START

NAMES = ["Deployer", "Charter", "TestToken", "PrevrandaoSeed", "Arbiter", *MODULE_CONTRACTS.values(), *LEAVES.values()]

LONG = ("commit", "receipt", "seed_delay", "attest", "draw", "whistle", "reveal", "challenge", "rescue")
"""Windows that the chain's delays bound from below."""


@pytest.fixture(scope="module")
def node() -> Iterator[Anvil]:
    with Anvil(genesis_time=START) as running:
        yield running


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("artifacts")
    with fresh_artifacts(folder, NAMES):
        yield folder


@pytest.fixture(scope="module")
def chain(node: Anvil, artifacts: Path) -> Chain:
    return Chain(node.url)


def account(node: Anvil) -> Account:
    return Account.from_key(node.dev_keys[0])


def real_charter(**changes: object) -> Charter:
    """The tests' charter with three programs that exist, and time for their games."""
    program = ProgramRef.of(programs.counting().program)
    windows = replace(world.WINDOWS, longest_dispute=100_000, exit=240_000)
    terms = world.charter(step=program, update=program, outer=program, windows=windows)
    return replace(terms, **changes)  # type: ignore[arg-type]


def test_create_addresses_are_those_of_ethereum() -> None:
    # Vectors of the Ethereum yellow paper's scheme, as go-ethereum tests them.
    sender = Address(bytes.fromhex("970e8128ab834e8eac17ab8e3812f010678cf791"))
    assert create_address(sender, 0).hex() == "333c3310824b7c685133f2bedb2ca4b8b4df633d"
    assert create_address(sender, 1).hex() == "8bda78331c916a08481428e4b07c96d3e916d165"
    assert create_address(sender, 2).hex() == "c9ddedf451bc62ce88bf9292afb13df35b670699"


def test_a_run_with_the_real_game_stands_and_is_wired(node: Anvil, chain: Chain) -> None:
    sponsor = account(node)
    token, seed = deploy_token(chain, sponsor), deploy_seed(chain, sponsor)
    terms = real_charter(token=token, seed=seed, sponsor=address_of(sponsor), revenue_tokens=(token,))
    run = deploy_run(chain, sponsor, terms)
    assert run.charter == terms
    assert run.run_id == terms.run
    for field in fields(Modules):
        code = chain.code_at(run.contracts()[field.name].address)
        assert 0 < len(code) <= harness.MAX_DEPLOYED, f"{field.name}: {len(code)} bytes"
    assert verify_wiring(Run(chain, run.address)).modules == run.modules


def test_every_contract_of_a_run_is_small_enough(artifacts: Path) -> None:
    for name in NAMES:
        assert len(harness.artifact(name).deployed) <= harness.MAX_DEPLOYED, name


def test_two_runs_share_an_arbiter(node: Anvil, chain: Chain) -> None:
    sponsor = account(node)
    token, seed = deploy_token(chain, sponsor), deploy_seed(chain, sponsor)
    terms = real_charter(token=token, seed=seed, sponsor=address_of(sponsor))
    first = deploy_run(chain, sponsor, terms)
    second = deploy_run(chain, sponsor, replace(terms, name=world.digest("another")))
    assert first.address != second.address and first.run_id != second.run_id
    arbiters = {chain.ask(run.game.arbiter()) for run in (first, second)}
    assert arbiters == {places_of(terms.run).arbiter}


def test_a_contract_of_another_run_is_noticed(node: Anvil, chain: Chain) -> None:
    sponsor = account(node)
    token, seed = deploy_token(chain, sponsor), deploy_seed(chain, sponsor)
    terms = real_charter(token=token, seed=seed, sponsor=address_of(sponsor))
    run = deploy_run(chain, sponsor, terms)
    other = deploy_run(chain, sponsor, replace(terms, name=world.digest("another")))
    run.modules = replace(run.modules, audit=other.modules.audit)
    with pytest.raises(WiringWrong, match="audit"):
        verify_wiring(run)


def test_a_game_that_could_outlast_the_windows_is_refused_by_name(node: Anvil, chain: Chain) -> None:
    sponsor = account(node)
    token, seed = deploy_token(chain, sponsor), deploy_seed(chain, sponsor)
    terms = real_charter(token=token, seed=seed, sponsor=address_of(sponsor), windows=world.WINDOWS)
    with pytest.raises(DeploymentFailed) as failed:
        deploy_run(chain, sponsor, terms)
    assert failed.value.details["reason"] == "DisputeTooLong"


def _with(part: str, **changes: object) -> Charter:
    terms = real_charter()
    return replace(terms, **{part: replace(getattr(terms, part), **changes)})  # type: ignore[arg-type]


MODULES = modules_tuple(Modules(*(world.NOBODY for _ in fields(Modules))))
BASE = real_charter()
REFUSED = {
    "ReferencePriceZero": _with("economics", unit_price=Wei(0)),
    "ClaimLockTooSmall": _with("economics", claim_lock=Wei(min_claim_lock(BASE.economics, 3) - 1)),
    "BondTooSmall": _with("economics", verifier_bond=Wei(min_bond(BASE.economics) - 1)),
    "SeatFeeTooHigh": _with("economics", seat_fee=Wei(BASE.economics.price + 1)),
    "RateTooHigh": _with("economics", bounty_ppm=500_001),
    "ValueZero": _with("economics", wage=Wei(0)),
    "WindowTooShort": _with("windows", reveal=599),
    "ExitDelayTooShort": _with("windows", exit=min_exit(BASE.windows, 0)),
    "ShardsFewerThanSeats": _with("training", shards=7),
    "ScheduleTooLong": _with("training", intervals=65),
    "NotFinite": _with("training", learning_rate=0xFF800000),
    "ProgramMismatch": _with("outer", header=b"another"),
    "ChallengeBondTooSmall": _with("economics", challenge_bond=Wei(min_challenge_bond(BASE.chain, 64) - 1)),
    "BountyTooSmall": _with("economics", bounty_ppm=2 * PPM * (min_kept(BASE.chain, 64) - 1) // (60 * world.ETHER)),
    "TooManyRevenueTokens": replace(BASE, revenue_tokens=(world.NOBODY,) * 5),
}


F, REORG, REPLAY = 3600, 1800, BASE.clocks.replay
SLOW = replace(BASE.chain, inclusion_delay=F, reorg_depth=REORG)
SHORTEST = replace(
    BASE.windows,
    **dict.fromkeys(("commit", "receipt", "draw", "reveal"), F + MIN_WINDOW),
    **dict.fromkeys(("attest", "whistle", "rescue"), F + REPLAY + MIN_WINDOW),
    seed_delay=REORG + 1,
    challenge=2 * F + REORG + REPLAY + MIN_WINDOW,
    longest_dispute=10**6,
    exit=10**7,
)
"""The shortest windows on a chain that keeps transactions out for an hour and undoes half an hour."""

AT_THE_BOUND = replace(BASE, chain=SLOW, windows=SHORTEST, clocks=replace(BASE.clocks, budget=F + MIN_WINDOW))


def _a_second_less(window: str) -> Charter:
    return replace(AT_THE_BOUND, windows=replace(SHORTEST, **{window: getattr(SHORTEST, window) - 1}))


OFF_THE_CHAIN = {
    **{name: ("WindowTooShort", _a_second_less(name)) for name in LONG},
    "draw and reorganizations": (
        "WindowTooShort",
        replace(
            AT_THE_BOUND, chain=replace(SLOW, reorg_depth=F + MIN_WINDOW), windows=replace(SHORTEST, seed_delay=F * 2)
        ),
    ),
    "fee cap": ("ValueZero", replace(BASE, chain=replace(BASE.chain, fee_cap=0))),
    # Attack: a chain that keeps a side's transactions out for F convicts it for its silence.
    "budget and delay": (
        "WindowTooShort",
        replace(AT_THE_BOUND, clocks=replace(AT_THE_BOUND.clocks, budget=F + MIN_WINDOW - 1)),
    ),
    "move": ("WindowTooShort", replace(BASE, clocks=replace(BASE.clocks, move=59))),
    "delay": ("ScheduleTooLong", replace(BASE, chain=replace(SLOW, inclusion_delay=1 << 40))),
    "reorg depth": ("ScheduleTooLong", replace(BASE, chain=replace(SLOW, reorg_depth=1 << 40))),
    "exit": ("ExitDelayTooShort", replace(AT_THE_BOUND, windows=replace(SHORTEST, exit=min_exit(SHORTEST, F)))),
}


def test_the_shortest_windows_that_a_chain_admits_are_accepted_here_and_on_chain(node: Anvil, chain: Chain) -> None:
    check_charter(AT_THE_BOUND, 0)
    assert chain.deploy(account(node), "Charter", AT_THE_BOUND.as_tuple(), MODULES)


@pytest.mark.parametrize("what", sorted(OFF_THE_CHAIN))
def test_what_does_not_fit_the_chain_is_refused_by_name_here_and_on_chain(what: str, node: Anvil, chain: Chain) -> None:
    name, terms = OFF_THE_CHAIN[what]
    with pytest.raises(RejectedError) as refused:
        check_charter(terms, 0)
    assert refused.value.code == name
    with pytest.raises(AssayError) as refused_on_chain:
        chain.deploy(account(node), "Charter", terms.as_tuple(), MODULES)
    assert refused_on_chain.value.code == name


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_charter_that_invites_cheating_is_refused_by_name_here_and_on_chain(
    name: str, node: Anvil, chain: Chain
) -> None:
    terms = REFUSED[name]
    with pytest.raises(RejectedError) as refused:
        deploy_run(chain, account(node), terms)
    assert refused.value.code == name
    modules = modules_tuple(Modules(*(world.NOBODY for _ in fields(Modules))))
    with pytest.raises(AssayError) as refused_on_chain:
        chain.deploy(account(node), "Charter", terms.as_tuple(), modules)
    assert refused_on_chain.value.code == name


def test_the_bounds_themselves_are_accepted(node: Anvil, chain: Chain) -> None:
    economics = replace(BASE.economics, claim_lock=min_claim_lock(BASE.economics, 3))
    economics = replace(economics, verifier_bond=min_bond(economics), seat_fee=economics.price)
    windows = replace(BASE.windows, exit=min_exit(BASE.windows, 0) + 1)
    terms = replace(BASE, economics=economics, windows=windows)
    modules = modules_tuple(Modules(*(world.NOBODY for _ in fields(Modules))))
    address, _ = chain.deploy(account(node), "Charter", terms.as_tuple(), modules)
    assert chain.ask(CharterContract(address).run()) == terms.run
