"""The file of a service: which roles run, each by which key, with which settings and where its password is."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from assay.amounts import check_typed
from assay.protocol.errors import ConfigError, UsageError
from assay.settings import ENVIRONMENT, Settings

MAX_BYTES: Final = 1 << 18
MOST_ROLES: Final = 64

Role = Literal["solver", "verifier", "whistleblower", "explorer"]

_NAME: Final = r"^[a-z0-9][a-z0-9-]{0,39}$"
_CREDENTIAL: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"


class ServiceFileInvalid(ConfigError):
    """The file of a service cannot be read, or says what it must not."""

    remedy = "deploy/service.toml is an example that names every key."


class _ServiceTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Common(_ServiceTable):
    """What a role takes where it does not say otherwise; see Settings."""

    rpc_url: str | None = None
    rpc_per_second: float | None = None
    ws_url: str | None = None
    store: str | None = None
    run: str | None = None
    keys_dir: Path | None = None
    allow_code: str | None = None
    sponsor: str | None = None
    tip_floor: int | None = None
    drand_relays: str | None = None
    signer: str | None = None
    index_url: str | None = None


_SHARED: Final = tuple(Common.model_fields)
"""Settings that all roles may have in common, and each of its own."""


def _amount(text: str) -> str:
    """What `--deposit` takes, the smallest unit too. Raises ValueError."""
    try:
        check_typed(text)
    except UsageError as error:
        raise ValueError(f"it is no amount of tokens. {error.remedy}".rstrip(".")) from None
    return text


class RoleEntry(Common):
    """One role: a child process. `password_credential` is the name of a credential of systemd's."""

    role: Role
    name: str = Field(pattern=_NAME)
    key: str | None = None
    password_file: Path | None = None
    password_credential: str | None = Field(None, pattern=_CREDENTIAL)
    data_dir: Path | None = None
    metrics: str | None = None
    deposit: Annotated[str, AfterValidator(_amount)] | None = None
    tickets: int | None = Field(None, ge=1)
    device: Literal["auto", "cpu", "cuda"] | None = None
    host: str = "127.0.0.1"
    port: int = Field(8080, ge=0, le=65535)
    bonds: str | None = Field(None, pattern=r"^0x[0-9a-fA-F]{40}$")
    gateways: tuple[str, ...] = Field((), max_length=64)

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        acts = self.role != "explorer"
        if acts and self.key is None:
            raise ValueError("it acts, and has no `key`")
        if acts and (self.password_file is None) == (self.password_credential is None):
            raise ValueError("it needs `password_file` or `password_credential`, and not both")
        if acts and self.data_dir is None:
            raise ValueError("it acts, and has no `data_dir`: two runs in one folder would mix their journals")
        if acts and (self.bonds is not None or self.gateways):
            raise ValueError(f"a {self.role} shows no bonds and no gateways")
        if self.role in ("solver", "explorer") and self.tickets is not None:
            raise ValueError(f"a {self.role} has no tickets")
        return self


class ServiceFile(_ServiceTable):
    """A whole file. `status` is the place of the service's own metrics and of the health of all."""

    status: str | None = None
    log_format: Literal["plain", "json"] = "json"
    stop_s: float = Field(60.0, gt=0, le=3600)
    common: Common = Common()
    # By the word of the file. Bad luck: `[[roles]]` for `[[role]]`; what it holds never ran, and nobody was told.
    roles: tuple[RoleEntry, ...] = Field(min_length=1, max_length=MOST_ROLES, validation_alias="role")

    @model_validator(mode="after")
    def _are_apart(self) -> Self:
        for what in ("name", "data_dir"):
            values = [getattr(entry, what) for entry in self.roles if getattr(entry, what) is not None]
            if twice := _twice(values):
                raise ValueError(f"two roles have the {what} {twice[0]}")
        places = [self.status, *(entry.metrics for entry in self.roles)]
        places += [f"{entry.host}:{entry.port}" for entry in self.roles if entry.role == "explorer"]
        if twice := _twice([place for place in places if place is not None and not place.endswith(":0")]):
            raise ValueError(f"two would listen at {twice[0]}")
        return self


def _twice(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if values.count(value) > 1]


def read_service_file(path: Path) -> ServiceFile:
    """The file, checked. Raises ServiceFileInvalid."""
    try:
        data = path.read_bytes()
        if len(data) > MAX_BYTES:
            raise ServiceFileInvalid(f"{path} has more than {MAX_BYTES} bytes.")
        return ServiceFile.model_validate(_flattened(tomllib.loads(data.decode())))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ServiceFileInvalid(f"{path} cannot be read ({error}).") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        # Never the value: it may be a URL with a key.
        raise ServiceFileInvalid(f"{path}: {where}: {first['msg']}.") from None


def _flattened(document: dict[str, Any]) -> dict[str, Any]:
    """`[service]` at the top, and a role's name where it is left out: the role, with a number from the second on."""
    roles = document.get("role", [])
    counts: dict[str, int] = {}
    for entry in roles if isinstance(roles, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("role"), str) and "name" not in entry:
            counts[entry["role"]] = number = counts.get(entry["role"], 0) + 1
            entry["name"] = entry["role"] if number == 1 else f"{entry['role']}-{number}"
    service = document.get("service", {})
    if not isinstance(service, dict):
        return document  # where `service` is no key that a file may have
    return {**service, **{key: value for key, value in document.items() if key != "service"}}


def arguments_of(entry: RoleEntry) -> list[str]:
    """The command of a role, without a word that is a setting: arguments are for everybody on the machine to read."""
    if entry.role == "explorer":
        shown = [] if entry.bonds is None else ["--bonds", entry.bonds]
        shown += [word for url in entry.gateways for word in ("--gateway", url)]
        shown += [] if entry.device is None else ["--device", entry.device]
        return ["service", "start", "--host", entry.host, "--port", str(entry.port), *shown]
    words = [entry.role, "start"]
    for name in ("deposit", "tickets", "device"):
        value = getattr(entry, name)
        if value is not None:
            words += [f"--{name}", str(value)]
    return words


def environment_of(file: ServiceFile, entry: RoleEntry, outer: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a role's process: its own settings over the common ones over what the service was given.

    Raises ServiceFileInvalid for a credential without systemd's folder of them.
    """
    found = dict(os.environ if outer is None else outer)
    # Whose key acts where, and by which password, is said by the file alone.
    for name in ("key", "password_file", "data_dir", "metrics"):
        found.pop(ENVIRONMENT[name], None)
    values: dict[str, Any] = {name: getattr(file.common, name) for name in _SHARED}
    values |= {name: value for name in _SHARED if (value := getattr(entry, name)) is not None}
    values |= {name: getattr(entry, name) for name in ("key", "data_dir", "metrics")}
    values |= {"password_file": _password_file(entry, found), "log_format": file.log_format}
    found |= {ENVIRONMENT[name]: str(value) for name, value in values.items() if value is not None}
    _check(entry, {name: value for name, value in values.items() if value is not None})
    return found


def _password_file(entry: RoleEntry, outer: Mapping[str, str]) -> Path | None:
    if entry.password_credential is None:
        return entry.password_file
    folder = outer.get("CREDENTIALS_DIRECTORY")
    if not folder:
        raise ServiceFileInvalid(
            f"{entry.name} takes its password from credential {entry.password_credential}, and there are none here.",
            remedy="Start it by systemd with LoadCredential= (`assay service unit`), or name a password_file.",
        )
    return Path(folder) / entry.password_credential


def _check(entry: RoleEntry, values: Mapping[str, Any]) -> None:
    """What a child would refuse is refused before any child starts."""
    try:
        Settings.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        raise ServiceFileInvalid(f"{entry.name}: {first['loc'][0]}: {first['msg']}.") from None
