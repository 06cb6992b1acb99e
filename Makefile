# The two commands: `make up` (a federation on this machine) and `make test`. Everything else is listed by `make help`.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
NAME ?= propagate
MEMBERS ?= 3
GROUND ?= c
MINUTES ?= 10
COUNT ?= 200
# Tests wait as much as they compute.
WORKERS ?= 4

.PHONY: help venv dev up down test test-fast test-alone test-applications kubernetes test-real test-skew wake-mutants faults kills fuzz world world-mistakes world-mutants lint format bench lock clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# Stamps make the installs instant when nothing changed.
$(VENV)/.run: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Argosy needs Python 3.11 or newer; '$(PYTHON)' is older. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Installing Argosy into $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --no-compile --require-hashes -r requirements.lock
	@$(PIP) install --no-build-isolation --no-deps -e .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.run
	@echo "Installing the test tools ..."
	@$(PIP) install --no-compile --require-hashes -r requirements-dev.lock
	@touch $@

$(VENV)/.bench: requirements-bench.lock $(VENV)/.dev
	@echo "Installing what benchmarks compare with ..."
	@$(PIP) install --no-compile --require-hashes -r requirements-bench.lock
	@touch $@

venv: $(VENV)/.run ## install Argosy and what it runs on into .venv
dev: $(VENV)/.dev ## also install what tests and lint need

up: venv ## start a federation with three simulated members and an example application
	@$(BIN)/argosy up --detach --members $(MEMBERS) --data .argosy --example

down: ## stop it
	@test ! -x $(BIN)/argosy || $(BIN)/argosy down --data .argosy

# Tests of one file share what it starts, so that a file stays with one worker.
test: dev ## run all tests
	@$(BIN)/python -m tests.compiled
	@$(BIN)/python -m tests.rerun -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test-fast: dev ## run the tests that take milliseconds
	@$(BIN)/python -m pytest tests/unit

test-applications: dev ## run published applications, one in each folder of FOLDER, and the example shop: make test-applications FOLDER=...
	@ARGOSY_APPLICATIONS=$(FOLDER) $(BIN)/python -m pytest tests/e2e/test_applications.py -vv

test-alone: dev ## run the tests that measure, which have the machine for themselves
	@$(BIN)/python -m pytest tests/alone

kubernetes: venv ## build the stock Kubernetes that test-real runs against (needs Go; minutes the first time)
	@$(BIN)/python scripts/kubernetes/build.py

# Without Go there is nothing to run against: the build says so in one line, and the tests are skipped by name. Not so in CI.
test-real: dev ## run the tests against stock Kubernetes
	@$(BIN)/python scripts/kubernetes/build.py || test "$$CI" != true
	@$(BIN)/python -m tests.rerun tests/real -n $(WORKERS) --dist loadfile --no-loadscope-reorder -vv -rs --durations=20

test-skew: dev kubernetes ## run the scenarios with members of the oldest Kubernetes that may be one
	@$(BIN)/python scripts/kubernetes/build.py --oldest
	@ARGOSY_MEMBERS=oldest $(BIN)/python -m pytest tests/real/test_scenarios_*.py -n 2 --dist loadfile -vv --durations=10

wake-mutants: dev ## take each declaration out of the wake table and run the test that must fail without it
	@$(BIN)/python -m tests.wakes $(ROWS)

faults: dev kubernetes ## kills, pauses and cuts at random under change: make faults GROUND=b MINUTES=10 SEED=1
	@$(BIN)/python -m tests.faults.storm --ground $(GROUND) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

kills: dev ## SIGKILLs of an API server under load: make kills COUNT=200 SEED=1
	@$(BIN)/python -m tests.faults.kills --count $(COUNT) $(if $(SEED),--seed $(SEED))

fuzz: dev ## odd requests to a control plane and odd answers of a member: make fuzz MINUTES=10 SEED=1
	@$(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(BARS)

world: dev ## whole federations on virtual time, by seed: make world SEEDS=100 [FIRST=1], SEED=7 or MINUTES=2
	@$(BIN)/python -m tests.world $(if $(SEED),--seed $(SEED),$(if $(SEEDS),--seeds $(SEEDS),--minutes $(MINUTES)) $(if $(FIRST),--first $(FIRST)))

world-mistakes: dev ## mass mistakes under faults, undone: make world-mistakes SEEDS=100 [FIRST=1], SEED=7 or MINUTES=2
	@$(BIN)/python -m tests.world --mistakes $(if $(SEED),--seed $(SEED),$(if $(SEEDS),--seeds $(SEEDS),--minutes $(MINUTES)) $(if $(FIRST),--first $(FIRST)))

world-mutants: dev ## plant mistakes in the product, and see that the world finds each
	@$(BIN)/python -m tests.world.mutants $(NAMES)

lint: dev ## style, types and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: dev ## let ruff rewrite what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.bench ## run one benchmark: make bench NAME=propagate
	@$(BIN)/python -m bench.$(NAME)

lock: dev ## resolve the dependencies anew into the lock files
	@$(PIP) install uv
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --upgrade --extra build --extra dev pyproject.toml -o requirements-dev.lock
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --extra build pyproject.toml -c requirements-dev.lock -o requirements.lock
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --extra bench pyproject.toml -c requirements-dev.lock -o requirements-bench.lock

clean: down ## remove everything that was made here
	@rm -rf $(VENV) .argosy .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
