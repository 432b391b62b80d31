#!/usr/bin/env bash
# Installs the locked dependencies into .venv and node_modules, compiles the native kernels and the contracts.
# A stamp names the content of the locks and this folder, so a second run installs nothing and a moved
# or updated clone installs again. One set-up at a time per clone; clones share nothing but pip's and npm's caches.
# tools/setup.sh [COMMAND...]: what needs the Python packages and no contract is run while contracts compile.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() { printf 'setup: %s\n' "$1" >&2; exit 1; }
key() { { pwd -P; cat "$@"; } | sha256sum | cut -c1-16; }

mkdir -p .build
if command -v flock >/dev/null && [ -z "${ASSAY_SETUP_LOCKED:-}" ]; then
  export ASSAY_SETUP_LOCKED=1
  exec flock .build/setup.lock "$0" "$@"
fi

PYTHON="${PYTHON:-$(command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3 || true)}"
[ -n "$PYTHON" ] || die "Python 3.11 is missing: install it, or name it with 'make setup PYTHON=/path/to/python3.11'"

# Node's tools and the contracts need nothing of Python's packages: they are made meanwhile, in a process group of their own.
contracts() {
  local js_stamp
  js_stamp="node_modules/.assay-$(key package-lock.json)"
  if [ ! -e "$js_stamp" ]; then
    command -v npm >/dev/null || die "npm is missing: install Node.js 20 or newer with npm"
    [ "$(uname -sm)" = "Linux x86_64" ] || die "the pinned anvil, forge and cast are built for Linux x86_64, this is $(uname -sm)"
    echo "setup: installing node packages into node_modules (anvil, forge, cast, solc, OpenZeppelin)" >&2
    npm ci --loglevel=error >&2
    touch "$js_stamp"
  fi
  if [ -n "$(find contracts -name '*.sol' -print -quit)" ]; then
    "$PYTHON" tools/forge.py build --quiet
  fi
}
set -m
contracts </dev/null &
job=$!
set +m
trap 'kill -- "-$job" 2>/dev/null || true' EXIT

py_stamp=".venv/.assay-$(key requirements.lock requirements-torch.in)"
own_stamp=".venv/.own-$(key pyproject.toml tools/package_metadata.py requirements.in requirements-torch.in)"
if [ ! -e "$py_stamp" ]; then
  # Somebody else's environment is neither cleared nor brought to this clone's versions.
  [ ! -L .venv ] || die ".venv is a link, and what it leads to is not this clone's: remove the link"
  "$PYTHON" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' \
    || die "Python 3.11 to 3.14 is needed, $PYTHON is $("$PYTHON" -V 2>&1): name another with 'make setup PYTHON=...'"
  echo "setup: installing Python packages into .venv (about 2.5 GB on disk, once)" >&2
  # An environment knows its own path; in a moved clone it is made anew, otherwise it is brought up to date in place.
  # One without a stamp was broken off: pip takes a package that it had unpacked in part for installed.
  anew=--clear
  compgen -G '.venv/.assay-*' >/dev/null && head -3 .venv/bin/pip | grep -qF "$PWD/.venv/bin/" && anew=
  rm -f .venv/.assay-* .venv/.own-*
  "$PYTHON" -m venv $anew .venv
  # The lock holds everything with hashes, torch's own needs too, and nothing else is looked for: pip would take what is
  # asked for with an extra in its newest release, which has no hash. torch comes after, so it pulls nothing that is not
  # locked except, for a CUDA build, the CUDA libraries that go with it. Then nothing may be missing.
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: \
    -r requirements.lock
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: -r requirements-torch.in
  .venv/bin/python -m pip check --disable-pip-version-check >&2 || die "requirements.lock lacks what its packages need: make lock"
  touch "$py_stamp"
fi
if [ ! -e "$own_stamp" ]; then
  rm -f .venv/.own-*
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
  touch "$own_stamp"
fi

# A compiler and an emulator for ARM, which only tests need: whoever may install them gets them, others are told.
debian=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
if ! { command -v aarch64-linux-gnu-gcc && command -v qemu-aarch64; } >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && { [ -n "${CI:-}" ] || [ -n "${ASSAY_APT:-}" ]; }; then
    echo "setup: installing ${debian[*]}" >&2
    { timeout 120 apt-get update -qq \
      && DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -qq --no-install-recommends "${debian[@]}"; } \
      >.build/apt.log 2>&1 </dev/null || echo "setup: they could not be installed (.build/apt.log): tests of ARM kernels are skipped" >&2
  else
    echo "setup: tests of ARM kernels are skipped without ${debian[*]} (apt install, or make setup ASSAY_APT=1 as root)" >&2
  fi
fi

# Kernels for this machine's instruction sets; without a C compiler programs run by stock torch, and it says so.
.venv/bin/python -m assay.engine.runtime.native.build

[ $# = 0 ] || "$@"

# Its status is the set-up's: what went wrong there has been said there.
wait "$job"
