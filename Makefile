# Every target sets itself up: all that is needed on a fresh machine is python3 and make.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
PIP     = $(BIN)/python -m pip --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow check format bench clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.runtime: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade 'pip>=25.1'
	$(PIP) install --editable '.[parquet]'
	@touch $@

$(VENV)/.test: $(VENV)/.runtime
	$(PIP) install --group test
	@touch $@

$(VENV)/.check: $(VENV)/.test
	$(PIP) install --group check
	@touch $@

demo: $(VENV)/.runtime ## train on the built-in shop catalogue and compare
	$(BIN)/taxofit demo

test: $(VENV)/.test ## the tests (minutes)
	$(BIN)/python -m pytest -n auto -m 'not slow'

test-slow: $(VENV)/.test ## the slower truths, on real data
	$(BIN)/python -m pytest -m slow

check: $(VENV)/.check ## format, lint, types, import layers, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) test

format: $(VENV)/.check ## let ruff put the code in shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
