"""`assay key`: make, list, import, export and test the encrypted keys of an actor."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import platformdirs
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from assay.cli import actor_folders, backups, completion
from assay.cli.noted_settings import FILE, as_shown, noted_settings
from assay.cli.options import JsonOption
from assay.cli.password import PasswordFile, read_password
from assay.durations import duration
from assay.protocol.errors import UsageError
from assay_ledger.keys import keystore
from assay_ledger.keys.kdf import PBKDF2, SCRYPT, Kdf
from assay_ledger.keys.keystore import ActorKeys, KeyInfo


class AccountNotNamed(UsageError):
    """Which of a signer's accounts is meant is not clear, or it has no such one."""

    remedy = "Name one of its accounts by --address."


app = typer.Typer(
    no_args_is_help=True,
    # A traceback with local variables would print passwords.
    pretty_exceptions_show_locals=False,
    help="Encrypted keys of solvers, verifiers, whistleblowers and owners.",
)


class KdfChoice(StrEnum):
    """Key derivations offered by name."""

    SCRYPT = "scrypt"
    PBKDF2 = "pbkdf2"

    @property
    def kdf(self) -> Kdf:
        """The derivation with its work."""
        return SCRYPT if self is KdfChoice.SCRYPT else PBKDF2


def default_keys_dir() -> Path:
    """Where keys live unless told otherwise: `keys` in the user's data folder."""
    return platformdirs.user_data_path("assay") / "keys"


def unlock(
    key: str, keys_dir: Path | None = None, password_file: Path | None = None, signer: str | None = None
) -> ActorKeys:
    """The unlocked keys that `--key`, `--keys-dir`, `--password-file` and `--signer` name; for commands that sign.

    Raises KeyMissing, KeystoreCorrupt, WrongPassword, PasswordMissing, PasswordFileUnreadable, SignerMissing.
    """
    from assay_ledger.chain.remote_signer import RemoteSigner

    path = keystore.find_key(keys_dir or default_keys_dir(), key)
    made = None if signer is None else partial(RemoteSigner, signer)
    return keystore.load_keys(path, read_password(password_file, what=str(path)), made)


KeysDir = Annotated[
    Path,
    typer.Option(
        "--keys-dir",
        envvar="ASSAY_KEYS_DIR",
        metavar="DIR",
        help="Folder that holds the keys.",
        default_factory=default_keys_dir,
        show_default="keys in the user's data folder",
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the key.")]
NameOrPath = Annotated[
    str,
    typer.Argument(
        metavar="KEY",
        envvar="ETH_KEYSTORE",
        autocompletion=completion.key_names,
        help="Name of a key, its folder, or a keystore file.",
    ),
]
KdfOption = Annotated[
    KdfChoice,
    typer.Option(
        "--kdf", help="scrypt resists guessing (256 MiB per unlock); pbkdf2 (c = 262144) suits demos and tests."
    ),
]


@app.command("new", epilog='Example: assay key new alice --json  ->  {"name", "address", "path"}')
def new(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of the keys; one password for all.")],
    keys_dir: KeysDir,
    password_file: PasswordFile = None,
    kdf: KdfOption = KdfChoice.SCRYPT,
    as_json: JsonOption = False,
) -> None:
    """Make a new key, or several, all or none: an account each."""
    keystore.check_new(keys_dir, names)
    what = f"the new key {names[0]}" if len(names) == 1 else f"the {len(names)} new keys"
    password = read_password(password_file, what=what, confirm=True)
    made = [keystore.create_key(keys_dir, name, password, kdf=kdf.kdf) for name in names]
    _show(made, as_json=as_json, single=len(names) == 1)
    for name in names:
        _nag(name)


@app.command(
    "remote",
    epilog='Example: assay key remote solver-1 --signer http://127.0.0.1:9000 --json  ->  {"name", "address", "path"}',
)
def remote(
    name: Name,
    keys_dir: KeysDir,
    signer: Annotated[
        str, typer.Option("--signer", envvar="ASSAY_SIGNER", metavar="URL", help="Web3Signer or Clef over HTTP.")
    ],
    address: Annotated[
        str | None, typer.Option("--address", metavar="ADDRESS", help="Which of the signer's accounts.")
    ] = None,
    password_file: PasswordFile = None,
    kdf: KdfOption = KdfChoice.SCRYPT,
    as_json: JsonOption = False,
) -> None:
    """Use an account whose key a signer keeps; what is secret and no transaction follows from a key made here."""
    from assay_ledger.chain.remote_signer import RemoteSigner, accounts_of

    keystore.check_new(keys_dir, [name])
    accounts = accounts_of(signer)
    if address is None and len(accounts) != 1:
        raise AccountNotNamed(f"The signer has {len(accounts)} accounts: {', '.join(accounts) or 'none'}.")
    account = accounts[0] if address is None else address
    if account.lower() not in {known.lower() for known in accounts}:
        raise AccountNotNamed(f"The signer has no account {account}.")
    far = RemoteSigner(signer, account)
    password = read_password(password_file, what=f"the local key of {name}", confirm=True)
    made = keystore.create_remote(keys_dir, name, far.address, password, far.sign_text, kdf=kdf.kdf)
    _show([made], as_json=as_json, single=True)
    _nag(name)


@app.command("list", epilog='Example: assay key list --json  ->  [{"name", "address", "path"}, ...]')
def list_(keys_dir: KeysDir, as_json: JsonOption = False) -> None:
    """List the keys; needs no password."""
    keys = keystore.list_keys(keys_dir)
    if not keys and not as_json:
        _talk(f"There are no keys in {keys_dir}. `assay key new NAME` makes one.")
        return
    _show(keys, as_json=as_json)


@app.command("import", epilog='Example: assay key import solver-1 ~/old/evm.json --json  ->  {"name", "address", ...}')
def import_(
    name: Name,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Keystore version 3, a file with the 64 hex digits of an account's secret, or what `export` wrote.",
        ),
    ],
    keys_dir: KeysDir,
    password_file: PasswordFile = None,
    kdf: KdfOption = KdfChoice.SCRYPT,
    as_json: JsonOption = False,
) -> None:
    """Take in a key made elsewhere; it must open with the password given."""
    password = read_password(password_file, what=str(file))
    _show([keystore.import_key(keys_dir, name, file, password, kdf=kdf.kdf)], as_json=as_json, single=True)


@app.command("export", epilog='Example: assay key export solver-1 /media/usb/solver-1 --json  ->  {"files": [...]}')
def export(
    key: NameOrPath,
    target: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the encrypted copy.")],
    keys_dir: KeysDir,
    as_json: JsonOption = False,
) -> None:
    """Copy a key's encrypted files to a backup; the password is not needed and not included."""
    files = keystore.export_key(keystore.find_key(keys_dir, key), target)
    if as_json:
        typer.echo(json.dumps({"files": [str(file) for file in files]}))
    else:
        for file in files:
            typer.echo(str(file))
        _talk(f"Now test it: assay key test-recovery {key} --backup {target}")


@app.command(
    "test-recovery",
    epilog='Example: assay key test-recovery solver-1 --backup /media/usb/solver-1 --json  ->  {"recovers": true, ...}',
)
def test_recovery(
    key: NameOrPath,
    keys_dir: KeysDir,
    backup: Annotated[
        Path | None,
        typer.Option("--backup", metavar="DIR|FILE", help="Test this copy instead, and compare it with KEY."),
    ] = None,
    password_file: PasswordFile = None,
    as_json: JsonOption = False,
) -> None:
    """Prove that the password and the files give the key back: unlock, sign once, compare."""
    path = keystore.find_key(keys_dir, key)
    expected = keystore.describe_key(path) if backup else None
    tested = backup or path
    info = backups.check_recovery(tested, read_password(password_file, what=str(tested)), expected)
    if as_json:
        typer.echo(json.dumps({"recovers": True, **info.to_json()}))
    else:
        typer.echo(f"{tested} gives back {info.address}.")


@app.command(
    "backup",
    epilog='Example: assay key backup solver-1 --out /media/usb/solver-1.backup --json  ->  {"out", "files", ...}',
)
def backup(
    key: NameOrPath,
    keys_dir: KeysDir,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")],
    data_dir: Annotated[
        list[Path] | None,
        typer.Option("--data-dir", metavar="DIR", help="An actor's folder, if not the usual ones; may be repeated."),
    ] = None,
    password_file: PasswordFile = None,
    as_json: JsonOption = False,
) -> None:
    """Write the key, its actors' journals and the settings into one file, encrypted by the key's password."""
    path = keystore.find_key(keys_dir, key)
    folders = data_dir or backups.folders_of(keystore.describe_key(path).name)
    made = backups.write_backup(path, folders, read_password(password_file, what=str(path)), out)
    if as_json:
        typer.echo(json.dumps({"out": str(out), "made_at": made.made_at, "files": sorted(made.files)}))
        return
    typer.echo(str(out))
    _talk(f"It holds {', '.join(sorted(made.files))} and {len(made.settings)} settings, and was opened once.")
    if not folders:
        _talk("No actor of this key has a folder here: name it with --data-dir if there is one.")


@app.command(
    "restore",
    epilog='Example: assay key restore /media/usb/solver-1.backup --json  ->  {"name", "address", "folders", ...}',
)
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `assay key backup` wrote.")],
    keys_dir: KeysDir,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Another name for the key.")] = None,
    actors_dir: Annotated[
        Path | None, typer.Option("--actors-dir", metavar="DIR", help="Where folders of actors shall lie.")
    ] = None,
    password_file: PasswordFile = None,
    as_json: JsonOption = False,
) -> None:
    """Put back what a backup holds; nothing that is there is overwritten."""
    password = read_password(password_file, what=str(file))
    held = backups.open_backup(file, password)
    info, folders = backups.restore(held, password, keys_dir, actors_dir or actor_folders.actors_dir(), name)
    try:
        config = backups.restore_settings(held.settings)
    except (backups.BackupExists, backups.BackupUnreadable) as error:
        # Bad luck: a home that is read-only. The key is back: an error here, and the next try says that it exists.
        config = None
        _talk(f"The settings were not written: {error.message}")
    started = {folder: noted for folder in folders if (noted := noted_settings(folder))}
    if as_json:
        found = {"folders": [str(folder) for folder in folders], "made_at": held.made_at, "settings": held.settings}
        found["started_with"] = {str(folder): noted for folder, noted in started.items()}
        typer.echo(json.dumps({**info.to_json(), **found, "config": config and str(config)}))
        return
    _show([info], as_json=False, single=True)
    for folder in folders:
        typer.echo(str(folder))
    _talk(
        f"Made {duration(max(0, int(time.time()) - held.made_at))} ago: what was done since is found on chain or "
        "computed again. Start actors with --data-dir where their folders are not the usual ones."
    )
    for folder, noted in started.items():
        _talk(f"The actor of {folder} was started with {as_shown(noted)} (ASSAY_CONFIG={folder / FILE} says so again).")
    _talk(f"settings written to {config}" if config else f"settings of the backup: {as_shown(held.settings) or 'none'}")


def _show(keys: tuple[KeyInfo, ...] | list[KeyInfo], *, as_json: bool, single: bool = False) -> None:
    if as_json:
        entries = [key.to_json() for key in keys]
        typer.echo(json.dumps(entries[0] if single else entries, indent=1))
        return
    table = Table(box=None, pad_edge=False)
    for title in ("name", "address"):
        table.add_column(title, overflow="fold")  # an address that ends in dots cannot be compared
    for key in keys:
        table.add_row(escape(key.name), key.address)
    wide = Console(width=None if Console().is_terminal else 256)
    wide.print(table)


def _nag(name: str) -> None:
    _talk(
        f"Back it up now: `assay key export {name} DIR`, then `assay key test-recovery {name} --backup DIR`; once an "
        f"actor works with it, `assay key backup {name} --out FILE` takes its journal along. "
        "Without the file and the password, stake and shares are lost for good."
    )


def _talk(text: str) -> None:
    """Say something to the person, on stderr: stdout is data."""
    Console(stderr=True, soft_wrap=True, highlight=False).print(escape(text))
