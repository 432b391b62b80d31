"""A PostgreSQL of a test's own, where Debian's is installed, on a socket in a folder."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def why_not() -> str | None:
    """Why there is none here; None if there is."""
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed: pip install 'assay[postgres]'"
    if not PLACES:
        return "PostgreSQL is not installed: apt install postgresql"
    return None


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The URL of an empty database; the server ends with the block. It does not run as root, so another owns it."""
    home = folder / "postgres"
    home.mkdir(mode=0o700)
    is_root = os.getuid() == 0
    if is_root:
        someone = pwd.getpwnam("postgres")
        os.chown(home, someone.pw_uid, someone.pw_gid)
        for parent in home.parents:
            if parent.stat().st_uid == 0 and parent != Path("/") and not parent.stat().st_mode & 0o001:
                parent.chmod(parent.stat().st_mode | 0o011)

    def run(command: str, *arguments: str) -> None:
        user = "postgres" if is_root else None
        done = subprocess.run(
            [str(PLACES[0] / command), *arguments], user=user, cwd=home, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    run("initdb", "-D", str(home / "data"), "-A", "trust", "-U", "assay", "--no-sync")
    run(
        "pg_ctl",
        "-D",
        str(home / "data"),
        "-w",
        "-l",
        str(home / "log"),
        "-o",
        f"-c listen_addresses= -k {home}",
        "start",
    )
    try:
        yield f"postgresql:///postgres?host={home}&user=assay"
    finally:
        run("pg_ctl", "-D", str(home / "data"), "-m", "immediate", "-w", "stop")
        shutil.rmtree(home, ignore_errors=True)
