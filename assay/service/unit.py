"""A systemd unit for a service: what it may do is what it needs. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from assay.service.config import ServiceFile

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
    stores = {r.store or file.common.store for r in file.roles}
    folders |= {Path(store) for store in stores if store is not None and store.startswith("/")}
    writable = sorted(str(folder) for folder in folders if not folder.is_relative_to(state))
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
