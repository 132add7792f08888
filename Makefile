# viscera: what to type. `make` alone lists it.
# Needs Python 3.11 or newer and make; Node and everything else come from the package registries into this folder.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
PIP := $(PY) -m pip --disable-pip-version-check -q install -c constraints.txt
NPM := $(PY) hatch_build.py npm

# Set by the caller: ARGS is handed to the command that the target runs, NO_BROWSER=1 leaves the browser tests out.
ARGS ?=
NO_BROWSER ?=
# How many test files run side by side; those with a browser come first (tests/conftest.py).
WORKERS ?= 2

.PHONY: help setup run test lint types format bench verify soak audit docs hooks web browser pin clean

help: ## list what can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: $(VENV)/.ready-dev ## make .venv with the command .venv/bin/viscera and all tools

run: $(VENV)/.ready-run web ## serve the page and open it; make run ARGS="run palpation --device cpu"
	@exec $(BIN)/viscera $(ARGS)

test: setup web browser ## the tests: page, Python, browser; slow ones are in `make verify`
	$(NPM) run test
	VISCERA_REQUIRE_BROWSER=$(if $(NO_BROWSER),,1) $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
		-m "not slow$(if $(NO_BROWSER), and not browser)" $(ARGS)

lint: setup ## style of Python and TypeScript, and that generated files and marks of stale figures are current
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(PY) -m viscera.server.typescript --check
	$(PY) -m verify --mark --check
	$(NPM) run lint

types: setup ## types of Python and TypeScript
	$(BIN)/pyright
	$(NPM) run types

format: setup ## put Python into its standard form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## measure what a step costs; make bench ARGS="--quick"
	$(BIN)/viscera bench $(ARGS)

verify: setup web browser ## slow tests, then every figure we claim, at full size; ARGS="--stale": what changed
	$(if $(ARGS),,$(BIN)/pytest -m slow)
	$(PY) -m verify $(ARGS)

soak: setup ## try to break it, without end and with fresh seeds; make soak ARGS="--minutes 60"
	PYTHONPATH=src:.:tests $(PY) -m soak $(ARGS)

audit: $(VENV)/.ready-audit ## known weaknesses of what we depend on (pip-audit, npm audit)
	$(VENV)/audit/bin/pip-audit --strict --progress-spinner off --requirement constraints.txt --no-deps --disable-pip
	$(NPM) audit

# Not with --quiet: that silences the warnings which --strict counts.
docs: $(VENV)/.ready-docs ## build the site into build/site; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Read it with: $(PY) -m http.server --directory build/site"

hooks: setup ## check each commit before it is made (pre-commit, with the tools of .venv)
	$(BIN)/pre-commit install

web: $(VENV)/.ready-run ## build the page when its sources changed
	@$(PY) hatch_build.py page

browser: ## find a Chromium or Chrome for the tests, or install Debian's as root
ifeq ($(NO_BROWSER),)
	@.ci/browser
endif

pin: setup $(VENV)/.ready-docs ## write the installed versions into constraints.txt
	@head -n 1 constraints.txt > $(VENV)/pins
	@$(PY) -m pip list --format=freeze --exclude-editable --exclude setuptools --exclude wheel | sort -f >> $(VENV)/pins
	@mv $(VENV)/pins constraints.txt

clean: ## remove everything that was built or installed here
	rm -rf $(VENV) web/node_modules src/viscera/server/static dist build .pytest_cache .ruff_cache .hypothesis

$(PY):
	@.ci/venv $(VENV)

# The package and what builds the page: all that `make run` waits for.
$(VENV)/.ready-run: pyproject.toml constraints.txt hatch_build.py | $(PY)
	@echo "Installing viscera into $(VENV) (once; a minute or two)"
	@$(PIP) pip
	@$(PIP) --group build
	@$(PIP) --no-build-isolation -e .
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready-run
	@echo "Installing the development tools"
	@$(PIP) --group dev
	@touch $@

# In an environment of its own: what looks for weaknesses need not be among what is looked at.
$(VENV)/.ready-audit: $(VENV)/.ready-run
	@echo "Installing pip-audit"
	@$(PY) -m venv $(VENV)/audit
	@$(VENV)/audit/bin/pip --disable-pip-version-check -q install pip-audit
	@touch $@

$(VENV)/.ready-docs: $(VENV)/.ready-run
	@echo "Installing what builds the site"
	@$(PIP) --group docs
	@touch $@
