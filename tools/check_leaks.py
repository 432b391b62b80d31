"""Fails when a tracked file names a place on somebody's machine, a package host or a secret.

Such names work for one person only, and a lock file with a host in it pins that host on everybody.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Written in pieces, so that this file does not find itself.
PATTERNS = {
    "a path on somebody's machine": r"(?<![\w.~$])/(?:home|root|Users|work|opt)/[\w.-]+|file:/" + r"//",
    "a temporary path": r"(?<![\w.~$}])/(?:tmp|var/tmp)/[\w-]",
    "a package host": r"\b(?:pypi|pythonhosted|npmjs|npmmirror|yarnpkg|artifactory|nexus)\.(?:org|com|io)\b"
    r"|files\." + r"pythonhosted|download\." + r"pytorch\.org",
    "an address inside a private network": r"https?://(?:10\.\d+|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.",
    "a private key": r"-----BEGIN (?:[A-Z]+ )?PRIVATE" + r" KEY-----",
    "a token": r"\b(?:ghp|gho|npm|pypi|hf)_[A-Za-z0-9]{30,}",
}
BINARY = {".png", ".jpg", ".ico", ".woff2", ".safetensors", ".gz", ".zip"}


def tracked() -> list[Path]:
    """Every tracked file, links and binaries apart."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    paths = [ROOT / name for name in names.decode().split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink() and path.suffix not in BINARY]


def find(text: str) -> list[tuple[int, str, str]]:
    """(line, what, found text) for every leak in `text`."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for what, pattern in PATTERNS.items():
            found += [(number, what, match[0]) for match in re.finditer(pattern, line)]
    return found


def main() -> int:
    """Print every leak as file:line; 0 when there is none."""
    count = 0
    for path in tracked():
        for line, what, text in find(path.read_text(encoding="utf-8", errors="replace")):
            print(f"{path.relative_to(ROOT)}:{line}: {what}: {text}")
            count += 1
    print(f"leak check: {count} found")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
