"""What a payer has signed for one gateway: on disk before a voucher leaves, and never above what it is to pay in all.

The file says, always, at least what was signed and at least what may have been charged for it, so that a restart signs
no amount twice and none too low. What is charged less than was feared is taken back once nothing is open.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assay.protocol.errors import ConfigError, FundsError, UnavailableError
from assay.protocol.payments.voucher import Voucher, VoucherDomain
from assay.protocol.types import Address, Wei
from assay_ledger.json_input import JsonRefused, parse_json
from assay_ledger.new_file import sync_folder
from assay_ledger.vouchers.signed import SignedVoucher, sign_voucher

if TYPE_CHECKING:
    from assay_ledger.keys.keystore import ActorKeys

MAX_BYTES: Final = 4096


class PurseInUse(ConfigError):
    """Another process signs for this gateway from the same folder."""

    remedy = "Stop the other process: two would sign amounts that exclude each other."


class PurseDamaged(ConfigError):
    """The file of what was signed cannot be read, or is of another payer."""

    remedy = (
        "Move it away: the next start begins with what the chain and the gateway say, bounded by what is to be paid."
    )


class PurseEmpty(FundsError):
    """All that was to be paid is signed for."""

    remedy = "Start again with more to pay in all, once you know what it was spent on."


class PurseBehind(FundsError):
    """The gateway says that more was signed or spent than the purse knows of, and the purse is not new."""

    remedy = (
        "Is it an old copy, from a backup say: stop the relay, move that file away, and start again; it then begins "
        "with what the chain and the gateway say, and signs for no more than is to be paid in all. If it is not, the "
        "gateway says more than is true: pay another one."
    )


class PurseNotKept(UnavailableError):
    """The disk does not take what is to be signed, so nothing was signed."""

    remedy = "Make room on the disk of the folder."


@dataclass(frozen=True, slots=True)
class PursePlace:
    """Where vouchers count, and for whom."""

    domain: VoucherDomain
    gateway: Address
    token: Address

    @property
    def name(self) -> str:
        """Of the file."""
        return f"{self.domain.chain_id}-{self.domain.contract.hex()}-{self.gateway.hex()}-{self.token.hex()}"


class Purse:
    """Signs vouchers of one payer for one gateway; safe for threads.

    redeemed: what the chain says was redeemed, with which a new file begins. most: wei that are signed for in all since
    then, whatever anybody says. Raises PurseInUse, PurseDamaged, PurseNotKept.
    """

    def __init__(self, folder: Path, keys: ActorKeys, place: PursePlace, redeemed: Wei, most: Wei) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._keys, self._place, self._most = keys, place, most
        self._path = folder / f"{keys.address.hex()}-{place.name}.json"
        self._guard = self._path.with_suffix(".lock").open("a")
        try:
            fcntl.flock(self._guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._guard.close()
            if not isinstance(error, BlockingIOError):
                remedy = "Name a folder on a file system that has locks (`--purse`)."
                raise PurseInUse(f"{self._path} cannot be locked: {error.strerror}.", remedy=remedy) from None
            raise PurseInUse(f"{self._path} is held by another process.") from None
        self._lock = threading.Lock()
        self._open: dict[Wei, Wei] = {}
        self._lost: tuple[Wei, Wei] | None = None
        """The amount of the voucher that was lost last, and what counts as spent for it."""
        self._is_new = is_first = not self._path.exists()
        self._begun = self._highest = self._spent = redeemed
        if not is_first:
            self._read()
            # What the chain took was signed, whatever the file says.
            self._highest, self._spent = max(self._highest, redeemed), max(self._spent, redeemed)
        else:
            self._write()

    @property
    def spent(self) -> Wei:
        """What this payer has spent at most, in all; less of what is open."""
        with self._lock:
            return self._spent

    @property
    def signed(self) -> Wei:
        """What was signed for since the file began."""
        with self._lock:
            return Wei(self._highest - self._begun)

    def sign(self, cost: Wei) -> SignedVoucher:
        """A voucher that pays for one answer more, of `cost` wei at most. Raises PurseEmpty, PurseNotKept."""
        with self._lock:
            amount = Wei(max(self._highest + 1, self._spent + sum(self._open.values()) + cost))
            # Attack: a gateway that says again and again that more was spent.
            if amount - self._begun > self._most:
                raise PurseEmpty(
                    f"{self._highest - self._begun} wei are signed for, {amount - self._begun} would be, "
                    f"and {self._most} are to be paid in all."
                )
            before = self._highest
            self._highest = amount
            self._open[amount] = cost
            try:
                self._write()
            except PurseNotKept:
                self._highest = before
                del self._open[amount]
                raise
        voucher = Voucher(self._keys.address, self._place.gateway, self._place.token, amount)
        return sign_voucher(self._keys, voucher, self._place.domain)

    def settle(self, signed: SignedVoucher, cost: Wei, said: Wei | None = None) -> None:
        """What an answer cost. said: what the gateway says is spent in all, which counts where it is less than is
        written here, nothing is open, and nothing was signed since: what was feared to be charged was not."""
        with self._lock:
            charged = self._open.pop(signed.voucher.amount, Wei(0))
            self._spent = Wei(self._spent + min(cost, charged))
            if self._is_new and cost:
                self._is_new = False
                with suppress(PurseNotKept):  # the next voucher writes it, before it leaves
                    self._write()
            # Attack by chance: an end that is read late, and says what was spent before others were answered.
            if said is not None and not self._open and signed.voucher.amount == self._highest:
                self._spent = min(self._spent, max(said, self._begun))

    def lose(self, signed: SignedVoucher) -> None:
        """No answer came, and nobody knows what was charged: all of it, until the gateway says less."""
        with self._lock:
            if (cost := self._open.pop(signed.voucher.amount, None)) is not None:
                self._lost, self._spent = (signed.voucher.amount, cost), Wei(self._spent + cost)

    def reopen(self, signed: SignedVoucher) -> bool:
        """Where a voucher was lost, and is the newest, it may be sent again: its cost is open, and no longer spent."""
        with self._lock:
            amount = signed.voucher.amount
            # A gateway may have said less since a newer one: what is counted of this one is not known then.
            if self._lost is None or not amount == self._lost[0] == self._highest:
                return False
            self._open[amount] = self._lost[1]
            self._spent, self._lost = Wei(self._spent - self._lost[1]), None
            return True

    def begin(self, spent: Wei, highest: Wei) -> bool:
        """A gateway says of a new purse what was spent and signed before it; whether it may. `most` bounds it too.

        Raises PurseBehind where the purse is not new, and what the gateway says is more than it knows of.
        """
        with self._lock:
            if not self._is_new or self._open:
                feared = self._spent + sum(self._open.values())
                if not self._is_new and (highest > self._highest or spent > feared):
                    raise PurseBehind(
                        f"The gateway says that {highest} wei were signed for and {spent} spent; {self._path} says "
                        f"{self._highest} and {feared}."
                    )
                return False
            self._spent, self._highest, self._is_new = max(self._spent, spent), max(self._highest, highest), False
            return True

    def close(self) -> None:
        """Lets another process sign; harmless when repeated."""
        with self._lock:
            if not self._guard.closed:
                self._write()
                self._guard.close()

    def _read(self) -> None:
        try:
            with self._path.open("rb") as source:
                document: Any = parse_json(source.read(MAX_BYTES + 1), max_bytes=MAX_BYTES)
            self._begun, self._highest, self._spent = (Wei(int(document[n])) for n in ("begun", "highest", "spent"))
            if not 0 <= self._begun <= self._highest or self._spent < self._begun:
                raise ValueError
            # A relay that ended before its first answer has not heard yet what was signed before it.
            self._is_new = document.get("new") is True
        except (OSError, JsonRefused, KeyError, TypeError, ValueError):
            self._guard.close()
            raise PurseDamaged(f"{self._path} cannot be read.") from None

    def _write(self) -> None:
        """With the lock held. What is open may be charged whatever happens next."""
        feared = self._spent + sum(self._open.values())
        document = {"begun": str(self._begun), "highest": str(self._highest), "spent": str(feared), "new": self._is_new}
        beside = self._path.with_suffix(".new")
        try:
            with beside.open("w") as file:
                json.dump(document, file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except OSError as error:
            raise PurseNotKept(f"{self._path} cannot be written ({error.strerror}).") from None
        sync_folder(self._path.parent)
