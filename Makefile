# Everything a person types. `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
JOBS   ?= 2
ARGS   ?=
BIN    := .venv/bin
FORGE  := $(BIN)/python tools/forge.py

# Torch's threads and the test workers share the same cores.
# Nothing is compiled while tests write and rewrite modules; what commands import is compiled before (`test`).
TEST_ENV := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
PYTEST   := $(TEST_ENV) $(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0 --durations 15 --durations-min 5

# What `make quick` tests: the rules, the house and what runs them, without a chain, a compiler or a captured training.
# It has 2 minutes of two cores: a file above 5 CPU seconds belongs into NOT_QUICK, or is made faster.
QUICK     := tests/house tests/unit/protocol tests/unit/model tests/unit/ledger tests/unit/engine tests/unit/training
NOT_QUICK := $(addprefix tests/unit/engine/test_,arm.py calibrate.py capture.py causality.py gradients.py hostile_views.py layers.py layouts.py \
  models.py outliers.py parallel.py reproducibility.py sanitized.py selection.py watch.py) \
  $(addprefix tests/unit/training/test_,against_eager.py capture_report.py hidden_state.py optimizers.py own_optimizers.py \
  capture_report_threads.py packages.py programs.py recipe.py schedulers.py sixteen_bits.py) \
  $(addprefix tests/unit/ledger/test_,bindings.py code.py deploy.py hostile_stores.py outbox.py) \
  $(addprefix tests/unit/model/test_,model_differential.py model_machine.py) \
  $(addprefix tests/house/test_,mutant_outcomes.py packaging.py)

# What is looked at and not run: each takes one core.
READ := lint types check-layout leak-check

# What the gate tests while contracts compile, which keeps one core busy: it needs none of them. Long files come first.
EARLY := $(addprefix tests/unit/,engine protocol simulation model datasets planning solvers) tests/second/test_vectors.py

# `make device` runs where nothing was set up: by the Python that is named, else by .venv's, else by python3.
DEVICE := $(if $(filter file,$(origin PYTHON)),$(firstword $(wildcard $(BIN)/python) python3),$(PYTHON))

.PHONY: help setup demo test early late compiled test-long soak clients quick check read lint types fmt-sol docs-check check-layout leak-check cover format docs lock vectors mutants sanitize snapshots slither audit models device release-check clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: ## install the locked dependencies and compile the contracts; a second run installs nothing
	@PYTHON="$(PYTHON)" tools/setup.sh

demo: setup ## train, cheat, catch, settle and claim on this machine (ARGS="--cheat blind-auditor")
	@$(BIN)/assay demo $(ARGS)

test: setup compiled ## every test not marked `long`, Python and forge
	$(PYTEST) -m "not long"
	$(FORGE) test

compiled:
	@$(BIN)/python -m compileall -q assay $(addsuffix /assay_*,ledger solver verifier whistleblower)

# Collected once before, with what pytest makes of assertions kept: each worker reads that, and does not make it again.
early: compiled
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest --collect-only -qq -m "not long" >.build/collected.log || { tail -50 .build/collected.log; exit 1; }
	$(PYTEST) -m "not long" $(EARLY)

late:
	$(PYTEST) -m "not long" $(addprefix --ignore ,$(EARLY))
	$(FORGE) test

cover: setup ## the same Python tests with the coverage floor (half as long again)
	$(PYTEST) -m "not long" --cov --cov-report=term:skip-covered

test-long: setup clients ## the tests marked `long`, all vectors, deeper fuzzing
	$(PYTEST) -m "long and not soak" --fail-on-skip -o timeout=1800
	ASSAY_VECTORS=20000 $(PYTEST) -m "vectors and not long" --fail-on-skip -o timeout=1800
	FOUNDRY_PROFILE=long $(FORGE) test

# Its node keeps a megabyte of each of 18,000 blocks: on the disk, where other tests keep their files in memory.
soak: setup ## 300 rounds in which everything fails at random: memory, disks, nobody honest loses (ASSAY_SOAK_ROUNDS, ASSAY_SOAK_SEED)
	TMPDIR=$${TMPDIR:-/tmp} $(TEST_ENV) $(BIN)/pytest -s -n 0 -m soak --show-capture=no tests/integration/actors/test_soak.py

clients: ## another client's node (Hardhat, 197 MB), for `make test-long` alone
	@mkdir -p .build/clients && cp tests/clients/package.json tests/clients/package-lock.json .build/clients/
	@cmp -s tests/clients/package-lock.json .build/clients/node_modules/.installed || \
	  (cd .build/clients && npm ci --ignore-scripts --loglevel=error && cp package-lock.json node_modules/.installed)

quick: setup ## the inner loop, under 2 minutes: lint, types, docs, and the tests of rules, engine and ledger that need no chain
	@$(MAKE) --no-print-directory -j $(JOBS) --output-sync=target $(READ) fmt-sol docs-check
	$(PYTEST) -m "not long and not vectors" $(QUICK) $(addprefix --ignore ,$(NOT_QUICK))

check: ## the gate: lint, types, docs, tests
	@PYTHON="$(PYTHON)" tools/setup.sh $(MAKE) --no-print-directory read early
	@$(MAKE) --no-print-directory fmt-sol docs-check late

read:
	@$(MAKE) --no-print-directory -j $(JOBS) --output-sync=target $(READ)

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	git ls-files '*.[ch]' | xargs $(BIN)/clang-format --dry-run -Werror

types:
	$(BIN)/mypy

fmt-sol:
	$(FORGE) fmt --check

docs-check:
	$(BIN)/python -m tools.check_docs
	$(BIN)/python tools/bindings.py --check

check-layout: ## lines of documents, names of tests, and how the house is laid out
	$(BIN)/python tools/check_layout.py

leak-check:
	$(BIN)/python tools/check_leaks.py

format: setup ## rewrite sources in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	git ls-files '*.[ch]' | xargs $(BIN)/clang-format -i
	$(FORGE) fmt

docs: setup ## renew the generated blocks in documents and the bindings of the contracts
	$(BIN)/python -m tools.check_docs --write
	$(BIN)/python tools/bindings.py

lock: ## write requirements.lock from requirements*.in (needs a network)
	$(PYTHON) tools/lock.py

vectors: setup ## compare every implementation of the arithmetic on 100,000 cases per operator (4 CPU minutes)
	ASSAY_VECTORS=100000 $(PYTEST) -m vectors --fail-on-skip -o timeout=1800

mutants: setup ## put in each fault of tests/mutants and see its named test turn red (ARGS="game leaf-rank-ties")
	$(BIN)/python -m tools.mutants $(ARGS)

sanitize: setup ## run all native kernels under address and undefined-behaviour sanitizers, on random programs
	$(BIN)/python tools/sanitize.py $(ARGS)

snapshots: setup ## measure the contracts' gas and sizes anew and print them in docs/
	ASSAY_SNAPSHOTS=write $(TEST_ENV) $(BIN)/pytest -q tests/integration/contracts/test_sizes.py tests/integration/contracts/test_code_manifest.py tests/integration/contracts/test_leaf_gas.py \
	  tests/integration/contracts/test_game_gas.py tests/integration/contracts/test_float32_gas.py tests/integration/contracts/test_beacon.py \
	  tests/integration/rounds/test_rounds_gas.py tests/integration/rounds/test_duties_gas.py tests/integration/rounds/test_tickets.py \
	  tests/integration/rounds/test_dispute_gas.py tests/integration/rounds/test_money_gas.py tests/integration/actors/test_seat_gas.py tests/integration/payments/test_voucher_gas.py
	$(BIN)/python -m tools.check_docs --write

audit: setup ## known vulnerabilities of everything that is locked; needs a network (ARGS=--offline)
	$(BIN)/python tools/audit.py $(ARGS)

slither: setup ## hold slither's findings to docs/security/slither.md (needs a network the first time)
	@stamp=.build/slither/.assay-$$({ pwd -P; cat requirements-slither.lock; } | sha256sum | cut -c1-16); \
	if [ ! -e "$$stamp" ]; then \
	  echo "slither: installing it into .build/slither (once)" >&2; \
	  "$(PYTHON)" -m venv --clear .build/slither; \
	  .build/slither/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: \
	    -r requirements-slither.lock; \
	  touch "$$stamp"; \
	fi
	@.build/slither/bin/python tools/slither.py $(ARGS)

models: ## capture 258 training steps of others' libraries and write docs/models.md (half an hour; ARGS="--only gpt2")
	@stamp=.build/models/.assay-$$({ pwd -P; cat requirements-models.lock requirements-torch.in; } | sha256sum | cut -c1-16); \
	if [ ! -e "$$stamp" ]; then \
	  echo "models: installing the libraries into .build/models (about 2 GB, once)" >&2; \
	  "$(PYTHON)" -m venv --clear .build/models; \
	  .build/models/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: \
	    -r requirements-models.lock; \
	  .build/models/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: -r requirements-torch.in; \
	  touch "$$stamp"; \
	fi
	@$(TEST_ENV) HF_HUB_OFFLINE=1 PYTHONPATH=.:ledger:solver:verifier:whistleblower .build/models/bin/python -m tools.models $(ARGS)

device: ## conformance, benches and quality runs, on a GPU where one is; needs Python and torch alone (ARGS="--only step")
	@PYTHONPATH=.:ledger:solver:verifier:whistleblower $(DEVICE) -m assay.device $(ARGS)

release-check: setup ## build the newest commit's sdist and wheel, install it by pip and by uv, run it (needs a network; ARGS="--keep dist")
	$(BIN)/python tools/release_check.py $(ARGS)

clean: ## remove what was built and installed here
	rm -rf .venv .build node_modules build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .coverage .coverage.*
