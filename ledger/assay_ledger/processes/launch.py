"""Become another program that dies with its parent. Run as a script: `launch.py PARENT_PID PROGRAM [ARGUMENT...]`.

Stands alone (`python -I -S`) so that nothing runs between fork and exec inside a process that may hold locks or torch's
threads. The parent-death signal is set on the process itself and survives exec. Linux alone has it (prctl(2)):
elsewhere a program outlives a parent that is killed, and ends with one that ends it.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    """Set the parent-death signal, check that the parent still lives, and exec; exit 127 where exec fails."""
    parent, program = int(argv[0]), argv[1:]
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            sys.exit(f"launch: prctl failed: {os.strerror(ctypes.get_errno())}")
    # The parent may have died before the signal was set; then it would never be sent.
    if os.getppid() != parent:
        sys.exit("launch: the parent is gone")
    try:
        os.execvp(program[0], program)
    except OSError as error:
        sys.stderr.write(f"launch: {program[0]}: {error.strerror}\n")
        sys.exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
