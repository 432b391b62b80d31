"""Remove a folder once a process has ended. Run as a script: `reap.py PID FOLDER`.

Stands alone (`python -I -S`). It outlives its parent by a moment on purpose: a process killed by SIGKILL cannot clean
up after itself. Others that die with it may still write for an instant, so the folder is removed until it stays away.
"""

import os
import select
import shutil
import sys
import time

POLL_S = 0.1
QUIET_S = 0.3
GIVE_UP_S = 5.0


def wait_for_end(pid: int) -> None:
    """Return when process `pid`, our parent, has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        descriptor = -1
    # Asked after the descriptor is open: from here on the number cannot have been given to another process.
    if os.getppid() != pid:
        return
    if descriptor >= 0:
        select.select([descriptor], [], [])
        return
    while os.getppid() == pid:
        time.sleep(POLL_S)


def remove(folder: str) -> None:
    """Remove `folder` until it has stayed away for QUIET_S, for GIVE_UP_S at most."""
    start = gone_since = time.monotonic()
    while (now := time.monotonic()) - start < GIVE_UP_S and now - gone_since < QUIET_S:
        if os.path.lexists(folder):
            shutil.rmtree(folder, ignore_errors=True)
            gone_since = now
        time.sleep(POLL_S / 2)


if __name__ == "__main__":
    os.chdir("/")
    wait_for_end(int(sys.argv[1]))
    remove(sys.argv[2])
