# Every target sets itself up: all that is needed on a fresh machine is python3 and make.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
# The GPU solver is tested on torch's CPU device; TORCH= goes without it.
TORCH  ?= torch==2.13.0
PEERS  ?= .peers
PIP     = $(BIN)/python -m pip --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow check fuzz format docs bench clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.runtime: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade 'pip>=25.1'
	$(PIP) install --editable '.[parquet,report]'
	@touch $@

$(VENV)/.test: $(VENV)/.runtime
	$(PIP) install --group test $(TORCH)
	@touch $@

$(VENV)/.check: $(VENV)/.test
	$(PIP) install --group check
	@touch $@

demo: $(VENV)/.runtime ## train on the built-in shop catalogue and compare
	$(BIN)/taxofit demo

test: $(VENV)/.test ## the tests (minutes)
	$(BIN)/python -m pytest -n auto -m 'not slow'

test-slow: $(VENV)/.test ## the slower truths, on real data
	$(BIN)/python -m pytest -m slow -o faulthandler_timeout=3600

check: $(VENV)/.check ## format, lint, types, import layers, documentation, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) docs
	$(MAKE) test

$(VENV)/.fuzz: $(VENV)/.test
	$(PIP) install --group fuzz
	@touch $@

fuzz: $(VENV)/.fuzz ## mutate files for every reader and for models, 110,000 in all (tens of minutes)
	$(BIN)/python -m tests.fuzz.nightly --runs 10000

format: $(VENV)/.check ## let ruff put the code in shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(VENV)/.docs: $(VENV)/.runtime
	$(PIP) install --group docs
	@touch $@

docs: $(VENV)/.docs ## build the documentation in site/; a broken link is an error
	$(BIN)/mkdocs build --strict

$(PEERS)/.installed: benchmarks/peers/requirements.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip --quiet install --requirement $<
	@touch $@

bench: $(VENV)/.test $(PEERS)/.installed ## time the solver against its peers (tens of minutes)
	$(BIN)/python benchmarks/bank.py naics --hiclass 10 --peers $(PEERS)/bin/python --out runs/bench
	$(BIN)/python benchmarks/bank.py dmoz-small --peers $(PEERS)/bin/python --out runs/bench
	$(BIN)/python benchmarks/whole_fit.py --peers $(PEERS)/bin/python
	$(BIN)/python benchmarks/compiling.py
	$(BIN)/python benchmarks/scaling.py --C 10 --out runs/bench
	$(BIN)/python benchmarks/scaling.py --problem dmoz-small --C 1 --out runs/bench
	$(BIN)/python benchmarks/embeddings.py --out runs/bench

clean: ## remove the environment and caches
	rm -rf $(VENV) $(PEERS) site fuzz-findings .pytest_cache .mypy_cache .ruff_cache .hypothesis
