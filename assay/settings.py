"""Settings of the `assay` command: one typed model, default < file < environment < flag.

The file is `config.toml` in the user's configuration folder, or what ASSAY_CONFIG names. An unknown key is an error: a
misspelt setting that is silently ignored costs somebody a deadline.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay.protocol.errors import ConfigError
from assay.protocol.types import Address, Digest

ENVIRONMENT: Final = {
    "rpc_url": "ETH_RPC_URL",
    "rpc_per_second": "ASSAY_RPC_PER_SECOND",
    "ws_url": "ASSAY_WS_URL",
    "store": "ASSAY_STORE",
    "run": "ASSAY_RUN",
    "keys_dir": "ASSAY_KEYS_DIR",
    "key": "ETH_KEYSTORE",
    "password_file": "ETH_PASSWORD",
    "signer": "ASSAY_SIGNER",
    "data_dir": "ASSAY_DATA_DIR",
    "allow_code": "ASSAY_ALLOW_CODE",
    "sponsor": "ASSAY_SPONSOR",
    "tip_floor": "ASSAY_TIP_FLOOR",
    "drand_relays": "ASSAY_DRAND_RELAYS",
    "index_url": "ASSAY_INDEX_URL",
    "metrics": "ASSAY_METRICS",
    "log_format": "ASSAY_LOG_FORMAT",
}
"""Environment variable of each setting."""

DRAND_RELAYS: Final = (
    "https://api.drand.sh",
    "https://api2.drand.sh",
    "https://api3.drand.sh",
    "https://drand.cloudflare.com",
)
"""Public relays of the League of Entropy; none is trusted with anything."""


class Settings(BaseModel):
    """What commands need to know and may be told in four ways."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rpc_url: str = Field(
        "http://127.0.0.1:8545",
        description="RPC URL of the chain, or several with commas between, the most trusted first",
    )
    rpc_per_second: float = Field(
        0.0, ge=0, le=1e6, allow_inf_nan=False, description="most requests per second to one RPC URL; 0 for any number"
    )
    ws_url: str | None = Field(
        None,
        pattern=r"^wss?://[^\s]+$",
        description="WebSocket of a node of the chain that announces new blocks, beside the RPC URL",
    )
    store: str | None = Field(
        None,
        description="the run's artifact store: a folder or an address such as s3://bucket/prefix; mirrors after commas",
    )
    run: str | None = Field(None, pattern=r"^0x[0-9a-fA-F]{40}$", description="address of the run's charter")
    keys_dir: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("assay") / "keys", description="folder that holds the keys"
    )
    key: str | None = Field(None, description="name of a key, its folder, or a keystore file")
    password_file: Path | None = Field(None, description="file that holds the key's password")
    signer: str | None = Field(
        None,
        pattern=r"^https?://[^\s]+$",
        description="URL of the signer of transactions (Web3Signer or Clef), for a key that is elsewhere",
    )
    data_dir: Path | None = Field(None, description="folder for journal and caches of one actor")
    allow_code: str | None = Field(
        None,
        pattern=r"^0x[0-9a-fA-F]{64}(,0x[0-9a-fA-F]{64})*$",
        description="digests of contracts that are not this release's and that you have checked, with commas between",
    )
    sponsor: str | None = Field(
        None,
        pattern=r"^0x[0-9a-fA-F]{40}(,0x[0-9a-fA-F]{40})*$",
        description="sponsors whose runs this machine works for, with commas between",
    )
    tip_floor: int = Field(
        1_000_000,
        ge=1,
        lt=1 << 64,
        description="least tip of a transaction, in wei of the chain's coin per gas",
    )
    drand_relays: str = Field(
        ",".join(DRAND_RELAYS),
        pattern=r"^https?://[^\s,/@?#]+[^\s,@?#]*(,https?://[^\s,/@?#]+[^\s,@?#]*)*$",
        description="relays that rounds of drand are fetched from, as they are asked, with commas between",
    )
    metrics: str | None = Field(
        None,
        pattern=r"^(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):\d{1,5}$",
        description="host and port on which a process shows its metrics, its health and its readiness",
    )
    log_format: str = Field("plain", pattern="^(plain|json)$", description="form of what a process says on stderr")

    index_url: str | None = Field(
        None,
        pattern=r"^(sqlite|postgresql)(\+\w+)?://",
        description="database of the events of a run; a SQLite file in the actor's folder",
    )

    @property
    def allowed_code(self) -> frozenset[Digest]:
        """The digests in `allow_code`."""
        named = self.allow_code.split(",") if self.allow_code else ()
        return frozenset(Digest(bytes.fromhex(digest[2:])) for digest in named)

    @property
    def known_sponsors(self) -> frozenset[Address]:
        """The addresses in `sponsor`."""
        named = self.sponsor.split(",") if self.sponsor else ()
        return frozenset(Address(bytes.fromhex(address[2:])) for address in named)

    @property
    def relays(self) -> tuple[str, ...]:
        """The URLs in `drand_relays`."""
        return tuple(self.drand_relays.split(","))


@dataclass(frozen=True, slots=True)
class Resolved:
    """Settings with where each value came from: default, file, environment or flag."""

    settings: Settings
    sources: Mapping[str, str]


def config_path() -> Path:
    """The configuration file that applies."""
    named = os.environ.get("ASSAY_CONFIG")
    return Path(named) if named else platformdirs.user_config_path("assay") / "config.toml"


def resolve(flags: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None) -> Resolved:
    """The settings in force; `flags` are those given on the command line (None = not given).

    Raises ConfigError (ConfigUnreadable, ConfigInvalid).
    """
    path = config_path()
    given = _file_values(path)
    sources = dict.fromkeys(given, f"file {path}")
    for name, variable in ENVIRONMENT.items():
        value = (os.environ if environment is None else environment).get(variable)
        if value:
            given[name], sources[name] = value, f"environment {variable}"
    for name, value in (flags or {}).items():
        if value is not None:
            given[name], sources[name] = value, "flag"
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"The setting {name} ({sources.get(name, 'default')}) is not valid: {first['msg']}.",
            code="ConfigInvalid",
            remedy="`assay config show` lists the settings and where each comes from.",
        ) from None
    return Resolved(settings, {name: sources.get(name, "default") for name in Settings.model_fields})


def _file_values(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"The configuration file {path} cannot be read ({error}).",
            code="ConfigUnreadable",
            remedy="Fix or remove it; `assay config show` then lists what is in force.",
        ) from None
