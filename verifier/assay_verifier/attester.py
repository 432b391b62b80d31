"""The actions of drawn auditors: registration, replays, hidden leaves, reveals.

A replay takes its inputs from the store and never from the audited party. Shared by verifier and whistleblower.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from assay.protocol.digests import keccak
from assay.protocol.errors import ConfigError
from assay.protocol.run.claims import AttestationLeaf, attestation_root
from assay.protocol.run.draws import Purpose
from assay.protocol.types import Digest, Role, Round, Wei
from assay_ledger.agents.actions import Attest, Register, Replay, Retire, RevealDraw, RevealLeaves
from assay_ledger.agents.handlers import Handlers
from assay_ledger.agents.loop import RunStore
from assay_ledger.agents.participant import Participant, RecheckMismatch
from assay_ledger.bindings.structs import LeafFields
from assay_ledger.index.archive import Compute
from assay_ledger.index.records import RoundRecord
from assay_ledger.index.run import Run
from assay_ledger.index.view import Duty, Leaf, RunView
from assay_ledger.keys.bls import BlsKey
from assay_ledger.keys.keystore import ActorKeys
from assay_verifier.attesting import leaves_are_stale


class AttesterAgent(Participant):
    """An actor with a drawing key. `stake` registers it; None leaves that to somebody's command.

    Raises ConfigError (DrawingKeyMissing).
    """

    attester_role: Role
    purpose: Purpose

    def __init__(
        self,
        run: Run,
        keys: ActorKeys,
        store: RunStore,
        data_dir: Path,
        compute: Compute,
        *,
        stake: Wei | None = None,
        **options: Any,
    ) -> None:
        if keys.bls is None:
            raise ConfigError(
                f"The key {keys.name!r} has no drawing key.",
                code="DrawingKeyMissing",
                remedy="Make one with `assay key new`, or import an EIP-2335 file with `assay key import`.",
            )
        super().__init__(run, keys, store, data_dir, compute, **options)
        self.bls: BlsKey = keys.bls
        self.stake = stake
        self._drawn_from: dict[Round, Digest] = {}

    def refresh(self, view: RunView) -> None:
        """See Agent: this key's draw of the latest round, and what it draws."""
        super().refresh(view)
        record = view.state.round
        me = view.state.attesters.get(self.me)
        seed = None if record is None or me is None else self.seed(record)
        if record is None or me is None or seed is None:
            return
        # A reorganization of the chain draws another seed, or leaves other commitments to draw from.
        drawn_from = draw_of(record, seed)
        if self._drawn_from.get(record.number) == drawn_from:
            return
        y = self.bls.sign_draw(
            self.facts.chain_id, self.target.modules.audit, self.facts.run_id, record.number, self.purpose, seed
        )
        self.memory.y[record.number] = y
        self.memory.duties[record.number] = self.choose(view, record, view.drawn(record, me, y))
        self._drawn_from[record.number] = drawn_from
        if leaves_are_stale(view, record, drawn_from):
            del self.memory.leaves[record.number]

    def seed(self, record: RoundRecord) -> Digest | None:
        """The seed that this role draws under."""
        return record.seed if self.attester_role is Role.VERIFIER else record.whistle_seed

    def choose(self, view: RunView, record: RoundRecord, drawn: tuple[Duty, ...]) -> tuple[Duty, ...]:
        """Which of the drawn duties are this role's."""
        return drawn

    def handlers(self) -> Handlers[RunView]:
        """See Agent."""
        table = super().handlers()
        table.add(Register, self.do_register).add(Retire, self.do_retire)
        table.add(Replay, self.do_replay).add(Attest, self.do_attest)
        return table.add(RevealDraw, self.do_reveal_draw).add(RevealLeaves, self.do_reveal_leaves)

    def do_register(self, action: Register, view: RunView) -> None:
        """Registers the drawing key with proof of possession, in a run whose programs are some."""
        self.archive.check_programs()
        self.archive.check_genesis()
        proof = self.bls.prove_possession(self.facts.chain_id, self.target.modules.audit, self.me)
        self.send(self.target.audit.register(action.role, self.bls.public_key, proof, action.stake))

    def do_retire(self, action: Retire, view: RunView) -> None:
        """Is drawn no more from the second T0 on."""
        self.send(self.target.audit.retire())

    def do_replay(self, action: Replay, view: RunView) -> None:
        """Computes the end of a duty; twice, by two kernel variants, before it says that somebody's claim is false."""
        record = view.state.rounds[action.round]
        duty = view.duty(record, record.commitments[action.seat], action.duty)
        self.recorder.result(view.program_of(duty), duty.x, self.replay(duty, view))

    def replay(self, duty: Duty, view: RunView) -> Digest:
        """The end root of a duty by this actor's own calculation. Raises RecheckMismatch, UnavailableError."""
        job = self.archive.job(view, duty)
        doing = f"replaying seat {duty.seat} duty {duty.number}"
        first = self.archive.end_root(
            duty,
            self.compute.run(job.program, job.lists, job.steps, on_step=lambda t: self.progress(doing, t, job.steps)),
        )
        if first == duty.y:
            return first
        second = self.archive.end_root(duty, self.compute.recheck(job.program, job.lists, job.steps))
        if second == duty.y:
            return second
        if second != first:
            raise RecheckMismatch(f"Two replays of duty {duty.number} of seat {duty.seat} differ.", first=first)
        return first

    def do_attest(self, action: Attest, view: RunView) -> None:
        """Binds the results under fresh salts; they are on disk before the root is sent."""
        if action.round not in self.memory.leaves:
            leaves = []
            for duty in self.memory.duties[action.round]:
                end = view.result(duty)
                if end is not None:
                    salt = Digest(secrets.token_bytes(32))
                    leaves.append(Leaf(duty.seat, AttestationLeaf(duty.id, duty.number, end, salt)))
            self.recorder.leaves(action.round, self._drawn_from[action.round], tuple(leaves))
        root = attestation_root([leaf.leaf for leaf in self.memory.leaves[action.round]])
        audit = self.target.audit
        bind = audit.attest if self.attester_role is Role.VERIFIER else audit.whistle
        self.send(bind(action.round, action.seed, root))

    def do_reveal_draw(self, action: RevealDraw, view: RunView) -> None:
        """Reveals this key's draw."""
        self.send(self.target.audit.reveal_draw(action.round, self.memory.y[action.round]))

    def do_reveal_leaves(self, action: RevealLeaves, view: RunView) -> None:
        """Reveals the results in the order of their tree."""
        leaves = [
            LeafFields(leaf.seat, leaf.leaf.duty, leaf.leaf.end_root, leaf.leaf.salt)
            for leaf in self.memory.leaves[action.round]
        ]
        self.send(self.target.audit.reveal_leaves(action.round, leaves, self.memory.y[action.round]))


def draw_of(record: RoundRecord, seed: Digest) -> Digest:
    """Names everything that duties are drawn from: the seed, and the commitments that are complete."""
    return keccak(seed + b"".join(sorted(c.digest for c in record.commitments.values() if c.complete)))
