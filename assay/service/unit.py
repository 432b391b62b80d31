"""A systemd unit for a service: what it may do is what it needs. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from assay.service.config import ServiceFile, ServiceFileInvalid
from assay_ledger.store.blobs import folder_named
from assay_ledger.store.mirrored import stores_in

MARGIN_S: Final = 30.0
"""Beyond the seconds of all children, before systemd kills what is left."""

_TEXT: Final = """\
[Unit]
Description=Assay: {names}
After=network-online.target
Wants=network-online.target
# A role may have a lock at stake: there is no number of starts after which that does not matter.
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={program} service start --config {config}
Restart=on-failure
RestartSec=10
# A wrong command line stays wrong. A port that is held, a disk that is full and a file in the making do not.
RestartPreventExitStatus=2
# Whoever but systemd ended it, a guard of the machine's memory say: its roles were not done.
RestartForceExitStatus=130 SIGHUP SIGTERM
SuccessExitStatus=130
KillMode=mixed
TimeoutStopSec={stop}
{user}{credentials}StateDirectory=assay
StateDirectoryMode=0700
Environment=HOME=/var/lib/assay
UMask=0077

# Programs are compiled where they run, so that memory must be allowed to be executed.
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
SystemCallArchitectures=native
{writable}
[Install]
WantedBy=multi-user.target
"""


def unit_of(file: ServiceFile, config: Path, program: Path, credentials: Path) -> str:
    """The unit of a service file at `config`; passwords lie in the folder `credentials`, readable by root alone."""
    wanted = sorted({r.password_credential for r in file.roles if r.password_credential is not None})
    state = Path("/var/lib/assay")
    folders = {r.data_dir for r in file.roles if r.data_dir is not None}
    for entry in file.roles:
        folders |= set(_folders_of(entry.store or file.common.store, entry.index_url or file.common.index_url))
    writable = sorted(str(f) for f in folders if f.is_absolute() and not f.is_relative_to(state))
    return _TEXT.format(
        names=", ".join(entry.name for entry in file.roles),
        program=program,
        config=config,
        stop=int(file.stop_s * len(file.roles) + MARGIN_S),
        # Files of passwords must be readable by the user of the service; credentials need no user at all.
        user="DynamicUser=yes\n" if wanted else "User=assay\n",
        credentials="".join(f"LoadCredential={name}:{credentials / name}\n" for name in wanted),
        writable="".join(f"ReadWritePaths={folder}\n" for folder in writable),
    )


def _folders_of(store: str | None, index_url: str | None) -> Iterator[Path]:
    """Where a role writes beside its own folder: stores and mirrors that lie in folders, the place of an SQLite file.

    Raises ServiceFileInvalid.
    """
    try:
        for location in [] if store is None else stores_in(store):
            if (folder := folder_named(location)) is not None:
                yield folder
        if index_url is not None and index_url.startswith("sqlite"):
            yield Path(make_url(index_url).database or "").parent
    except (ValueError, ArgumentError):
        # Never the value: it may be a URL with a key.
        raise ServiceFileInvalid("An address of a store or of a database cannot be read.") from None
