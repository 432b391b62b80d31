"""What commands share: how they open a run, and how they print."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

import platformdirs
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.protocol.errors import ConfigError, RejectedError, UsageError, UserError
from assay.settings import Settings

if TYPE_CHECKING:
    from web3.types import TxReceipt

    from assay.protocol.types import Address, Digest
    from assay_ledger.chain.client import Chain
    from assay_ledger.chain.transaction_signer import TransactionSigner
    from assay_ledger.contract import Call
    from assay_ledger.deployment.code import RunCode
    from assay_ledger.keys.keystore import ActorKeys
    from assay_ledger.rounds.archive import Archive
    from assay_ledger.rounds.run import Run
    from assay_ledger.store.blobs import BlobStore


WAITED_FOR_S: Final = 5.0
"""So long a command asks a node again, since somebody waits for it; an actor asks as long as a chain does."""


class SpokenConsole(Console):
    """What commands say to people; where the log is one of documents, a line of that."""

    def print(self, *objects: Any, **options: Any) -> None:
        """See rich.console.Console."""
        from assay.observing import logs

        if not logs.is_json():
            super().print(*objects, **options)
            return
        words = [str(o) if options.get("markup") is False else Text.from_markup(str(o)).plain for o in objects]
        logging.getLogger("assay.talk").info("%s", " ".join(words))


talk = SpokenConsole(stderr=True, highlight=False, soft_wrap=True, emoji=False)
"""stderr: for people, word by word as it is said: `own:factory:` is a name and no picture. stdout is data."""


@contextmanager
def never_waiting() -> Iterator[None]:
    """In this block nothing that is said or logged waits for whoever reads stderr, or fails with it."""
    from assay.observing import logs
    from assay.observing.unhurried import UnhurriedStream

    unhurried = UnhurriedStream(sys.stderr)
    stream = cast("TextIO", unhurried)
    talk.file, before = stream, logs.write_to(stream)
    try:
        yield
    finally:
        unhurried.finish()
        talk.file = None  # type: ignore[assignment]  # rich takes it for stderr, whatever that is then
        logs.write_to(before)


def configure_log(settings: Settings) -> None:
    """The log of a command that serves, in the form that the settings name; what only we should know stays out."""
    from assay.observing import logs

    given = filter(None, (settings.rpc_url, settings.ws_url, settings.store, settings.index_url, settings.signer))
    for url in (one for several in given for one in several.split(",")):
        if "://" in url:
            logs.hide_url(url)
    if settings.log_format == logs.JSON:
        logs.configure(logs.JSON, logs.write_line)
    else:
        logs.configure(logs.PLAIN, lambda text: talk.print(text, markup=False, soft_wrap=True))


def open_chain(settings: Settings, retry_for_s: float = WAITED_FOR_S) -> Chain:
    """The chain at the RPC URLs. Raises UnavailableError (NodeUnreachable)."""
    from assay_ledger.chain.client import Chain

    return Chain(
        settings.rpc_url,
        retry_for_s=retry_for_s,
        tip_floor=settings.tip_floor,
        per_second=settings.rpc_per_second,
    )


def open_round_run(settings: Settings, chain: Chain | None = None) -> Run:
    """The run that the settings name. Raises ConfigError (RunMissing), RejectedError (NotARun)."""
    where = run_address(settings)
    return run_at(chain or open_chain(settings), where, settings.data_dir)


def run_at(chain: Chain, where: Address, folder: Path | None = None) -> Run:
    """The run with a charter, whose first block is noted in a folder, else in that of Assay's data.

    Raises RejectedError (NotARun).
    """
    from assay.cli.first_blocks import first_block
    from assay_ledger.rounds.run import Run

    return Run(chain, where, begins=partial(first_block, folder or platformdirs.user_data_path("assay")))


def archive_of(run: Run, store: BlobStore) -> Archive:
    """What was published of a run, as its store has it."""
    from assay_ledger.index.publications import Publications
    from assay_ledger.rounds.archive import Archive
    from assay_ledger.store.objects import Objects

    objects = Objects(store)
    return Archive(run.charter, run.facts, objects, Publications(run.chain, objects))


def run_address(settings: Settings) -> Address:
    """Where the run's charter is. Raises ConfigError (RunMissing)."""
    from assay.protocol.types import Address

    if settings.run is None:
        raise ConfigError(
            "No run is named.", code="RunMissing", remedy="Give --run ADDRESS, or set ASSAY_RUN (`assay run list`)."
        )
    return Address(bytes.fromhex(settings.run[2:]))


def check_run_code(run: Run, settings: Settings) -> RunCode:
    """What every command does before it approves or stakes anything. Raises RejectedError (UnknownCode)."""
    from assay_ledger.deployment.code import check_code

    code = check_code(run, settings.allowed_code)
    if code.unknown:
        talk.print("Allowed by you, not this release's: " + ", ".join(c.name for c in code.unknown))
    if not code.token.is_known:
        talk.print(f"The token 0x{run.charter.token.hex()} is {code.token_words}.")
    return code


def check_money(run: Run, token: Address | None = None) -> None:
    """What commands do before they take on something new in a token, the run's own unless another of its is named.

    Raises UserError (TokenUnreadable).

    Who has something at stake is not held up by it: a token that is changed must not keep a stake from being defended.
    """
    of = run.charter.token if token is None else token
    if not run.currency_of(of).is_known:
        raise UserError(
            f"The run's token 0x{of.hex()} says no decimals that a token can have.",
            code="TokenUnreadable",
            remedy="Nobody can say what amounts of it are: put none of it in this run.",
        )


def open_blobs(settings: Settings) -> BlobStore:
    """The run's store. Raises ConfigError (StoreMissing, StoreAddressInvalid)."""
    from assay_ledger.store.mirrored import open_stores

    if settings.store is None:
        raise ConfigError(
            "No store is named.", code="StoreMissing", remedy="Give --store DIR or ADDRESS, or set ASSAY_STORE."
        )
    return open_stores(settings.store)


def unlock_key(settings: Settings) -> ActorKeys:
    """The unlocked keys that the settings name."""
    from assay.cli.key import unlock

    if settings.key is None:
        raise ConfigError(
            "No key is named.", code="KeyNotNamed", remedy="Give --key NAME; `assay key list` lists them."
        )
    return unlock(settings.key, settings.keys_dir, settings.password_file, settings.signer)


def parse_address(text: str) -> bytes:
    """The 20 bytes of an address as typed; with small and capital letters, none of them may be wrong (EIP-55).

    Raises UsageError (AddressInvalid, AddressUnchecked).
    """
    digits = text.removeprefix("0x")
    try:
        value = bytes.fromhex(digits)
    except ValueError:
        value = b""
    if len(value) != 20:
        raise UsageError(
            f"{text!r} is no address.", code="AddressInvalid", remedy="An address is 0x and 40 hex digits."
        )
    # Attack by chance: one digit that is wrong pays a deposit into, or names as payee, what nobody has the key of.
    if digits not in (digits.lower(), digits.upper()):
        _check_letters(text)
    return value


def digest_typed(text: str, option: str, code: str, remedy: str) -> Digest:
    """The 32 bytes that an option names. Raises UsageError with this code and remedy."""
    from assay.protocol.types import Digest

    try:
        value = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        value = b""
    if len(value) != 32:
        raise UsageError(f"{option} wants 64 hex digits, not {text!r}.", code=code, remedy=remedy)
    return Digest(value)


def parse_checked_address(text: str) -> bytes:
    """The same of an address that must be typed with its checksum: what it is named for cannot be put right later.

    Raises UsageError (AddressInvalid, AddressUnchecked).
    """
    value = parse_address(text)
    _check_letters(text)
    return value


def _check_letters(text: str) -> None:
    from eth_utils.address import is_checksum_address

    if not is_checksum_address(text if text.startswith("0x") else "0x" + text):
        raise UsageError(
            f"The capital letters of {text} are no checksum of it (EIP-55).",
            code="AddressUnchecked",
            remedy="Copy the address as its wallet shows it: one wrong letter here cannot be put right later.",
        )


def address_named(name: str, keys_dir: Path) -> Address:
    """The address of a key by its name, or as typed. Raises UsageError (AddressInvalid), ConfigError (KeyMissing)."""
    from assay.protocol.types import Address
    from assay_ledger.keys.keystore import describe_key, find_key

    if not name.startswith("0x"):
        name = str(describe_key(find_key(keys_dir, name)).address)
    return Address(parse_address(name))


def address_asked(settings: Settings, who: str | None) -> Address:
    """Whose case a command that needs no password looks at: an address as typed, or the key's.

    Raises UsageError (AddressInvalid, AddressMissing), ConfigError (KeyMissing).
    """
    from assay.protocol.types import Address
    from assay_ledger.keys.keystore import describe_key, find_key

    if who is not None:
        return Address(parse_address(who))
    if settings.key is None:
        raise UsageError("No address is named.", code="AddressMissing", remedy="Give --address ADDRESS or --key NAME.")
    return Address(parse_address(str(describe_key(find_key(settings.keys_dir, settings.key)).address)))


def send_unless_done(chain: Chain, account: TransactionSigner, call: Call, code: str) -> TxReceipt | None:
    """Sends what others may do too; None where somebody was first, which the contract says by this error."""
    try:
        return chain.send(account, call)
    except RejectedError as error:
        if error.code != code:
            raise
    return None


def print_batch(run: Run, multisig: str, what: str, calls: Sequence[Call], *, simulated: bool = True) -> None:
    """What a multisig is to execute, as one JSON document on stdout. `simulated`: the first call is tried as it.

    Raises UserError (NotAMultisig), UsageError (AddressInvalid), RejectedError where the contracts would refuse.
    """
    from assay.protocol.types import Address
    from assay.sponsor.multisig import batch_of, check_multisig

    who = Address(parse_address(multisig))
    check_multisig(run.chain, who)
    if simulated:
        run.chain.simulate(calls[0], sender=who)
    talk.print(f"Nothing was sent. Have {multisig} execute these {len(calls)} calls, as one batch or in this order.")
    print_json(batch_of(run.chain, who, what, calls))


def confirm(question: str, *, yes: bool) -> None:
    """Asks before money moves. Raises CancelledError, or UsageError (ConfirmationNeeded) without a terminal."""
    from assay.protocol.errors import CancelledError

    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "This moves money, and there is no terminal to confirm it.", code="ConfirmationNeeded", remedy="Add --yes."
        )
    if not typer.confirm(question, err=True):
        raise CancelledError("Nothing was sent.", code="Cancelled")


def print_json(document: Any, file: TextIO | None = None) -> None:
    """One JSON document on stdout, or on what stands in for it, in ASCII where that takes anything but UTF-8.

    What is no number, such as the loss of a training that diverged, is `null`: JSON has no other word for it.
    """
    is_utf8 = ((file or sys.stdout).encoding or "").lower().replace("-", "") == "utf8"
    write = partial(json.dumps, default=_jsonable, ensure_ascii=not is_utf8)
    try:
        text = write(document, allow_nan=False)
    except ValueError:
        text = write(json.loads(write(document), parse_constant=lambda _: None))
    typer.echo(text, file=file)


LEAST_WIDTH = 10
"""Characters that a column of words is left beside those of figures."""


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on stdout."""
    console, table = Console(highlight=False), Table(title=title or None, title_justify="left")
    widths = [max((len(str(row[k])) for row in rows), default=0) for k in range(len(columns))]
    # A figure or an address that is broken in two is misread, so these are not, where there is room for all of them.
    is_text = [any(" " in str(row[k]) for row in rows) for k in range(len(columns))]
    # Nor are words of headings, where there is room: a heading of several words has as many lines as it takes.
    stacked = [
        name.replace(" ", "\n") if len(name) > width and not text else name
        for name, width, text in zip(columns, widths, is_text, strict=True)
    ]
    least = [max(width, *map(len, name.split("\n"))) for name, width in zip(stacked, widths, strict=True)]
    names = [k for k in range(len(columns)) if any(_is_name(str(row[k])) for row in rows)]
    if not any(is_text) and sum(least) + 3 * len(columns) + 1 <= console.width:
        columns, widths = stacked, least
    elif not any(is_text) and names:
        # A long name takes several lines before an address, a figure or a heading does.
        is_text[max(names, key=widths.__getitem__)] = True
    is_whole = [
        max(map(len, column.split("\n"))) <= width and not text
        for column, width, text in zip(columns, widths, is_text, strict=True)
    ]
    wanted = sum(width if whole else min(width, LEAST_WIDTH) for width, whole in zip(widths, is_whole, strict=True))
    has_room = wanted + 3 * len(columns) + 1 <= console.width
    for column, whole in zip(columns, is_whole, strict=True):
        table.add_column(column, overflow="fold", no_wrap=whole and has_room)
    for row in rows:
        # Cells are strangers' words: never markup.
        table.add_row(*(Text(str(cell)) for cell in row))
    console.print(table)


def _is_name(cell: str) -> bool:
    """Whether it is neither a figure nor an address."""
    return not cell.startswith("0x") and any(letter.isalpha() for letter in cell)


def print_fields(fields: Mapping[str, object]) -> None:
    """Names and values, one a line, on stdout; a dash where there is none."""
    width = max((len(name) for name in fields), default=0)
    for name, value in fields.items():
        typer.echo(f"{name:<{width}}  {'-' if value is None else value}")


def _jsonable(value: object) -> object:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
