# Everything one types. Needs git, make and python3 (3.11 or newer); nothing else.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
LEAN   := $(VENV)/lean/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PINS   := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup demo check smoke test test-all lint format bench dev clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.lean  ## make .venv with what Quorum needs to run

demo: $(VENV)/.lean  ## answer three questions on the sample database, without a key
	@$(BIN)/quorum demo

check: $(VENV)/.full  ## check style, types and the fast tests, in a minute
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/mypy & types=$$!; $(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not slow and not heavy"; tests=$$?; \
	    wait $$types && exit $$tests

smoke: $(VENV)/.wheel  ## install the wheel without extras, and try what a newcomer types
	@$(LEAN) --no-deps --no-build-isolation --force-reinstall .
	@$(VENV)/lean/bin/python -P tests/smoke.py

test: smoke $(VENV)/.full  ## install every extra, try the lean install, and run the tests, in five minutes
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not heavy"

test-all: smoke $(VENV)/.full $(VENV)/.servers  ## the same with servers, kills, a browser and all that takes long
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile

lint: $(VENV)/.full  ## check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.full  ## put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.full  ## run the benchmarks of speed and overhead
	@for file in tests/benchmarks/bench_*.py; do \
	    echo "$$file" && $(BIN)/python -m tests.benchmarks.$$(basename $$file .py) || exit 1; done

dev: $(VENV)/.studio  ## serve the graph for LangGraph Studio (make dev PORT=2025)
	@LANGGRAPH_CLI_NO_ANALYTICS=1 LANGGRAPH_NO_VERSION_CHECK=true \
	    LANGSMITH_TRACING=$${LANGSMITH_TRACING:-false} \
	    $(BIN)/langgraph dev --no-browser --n-jobs-per-worker 10 $(if $(PORT),--port $(PORT))

clean:  ## remove .venv and caches; traces stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# An environment that cannot run, is too old or was made for another folder is stale and made anew.
MADE  := $(VENV)/.made
STALE := $(shell test -e $(VENV) || exit 0; \
    $(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
    && { test ! -e $(MADE) || test "$$(cat $(MADE))" = "$(CURDIR)"; } || echo stale)

.PHONY: stale
$(MADE): $(STALE)
	@test -z "$(STALE)" || rm -rf $(VENV)
	@test -e $(VENV) || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "Quorum needs Python 3.11 or newer; $(PYTHON) is: $$($(PYTHON) --version 2>&1)" >&2; \
	    echo "Name another one, e.g.: make PYTHON=python3.12 $(or $(MAKECMDGOALS),setup)" >&2; exit 2; }
	@test -e $(VENV) || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 2; }
	@echo "$(CURDIR)" > $@

$(VENV)/.lean: $(PINS) $(MADE)
	@echo "installing Quorum into $(VENV) (once; about a minute)"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.studio: $(PINS) $(MADE)
	@echo "installing Quorum with what serving needs into $(VENV) (once; about a minute)"
	@$(PIP) --editable ".[studio]"
	@touch $(VENV)/.lean $@

$(VENV)/.full: $(PINS) $(MADE)
	@echo "installing Quorum with every extra into $(VENV) (once; some minutes)"
	@$(PIP) --editable ".[bigquery,cluster,embeddings,evals,mysql,pdf,plots,postgres,serve,snowflake,sqlalchemy,studio,xlsx,dev]"
	@touch $(VENV)/.lean $(VENV)/.studio $@

# The tests' .venv has every extra, so the wheel has an environment without any.
$(VENV)/.wheel: $(PINS) $(MADE)
	@echo "installing what the wheel needs into $(VENV)/lean (once; half a minute)"
	@$(BIN)/python -m venv --clear $(VENV)/lean
	@$(LEAN) hatchling .
	@touch $@

# fakesnow wants another sqlglot than Quorum, and schemathesis another jsonschema-rs than LangGraph's server.
# Of axe-playwright-python only the script axe.min.js is used, so Playwright is left out. MCP's TypeScript SDK is there
# where npm is.
$(VENV)/.servers: tests/servers/constraints.txt $(MADE)
	@echo "installing the tests' Snowflake server, schemathesis, axe and an MCP client into $(VENV)/servers (once; half a minute)"
	@$(BIN)/python -m venv --clear $(VENV)/servers
	@$(VENV)/servers/bin/python -m pip install --quiet --disable-pip-version-check \
	    --constraint tests/servers/constraints.txt "fakesnow[server]" schemathesis
	@$(VENV)/servers/bin/python -m pip install --quiet --disable-pip-version-check \
	    --constraint tests/servers/constraints.txt --no-deps axe-playwright-python
	@! command -v npm >/dev/null || npm install --silent --no-fund --no-audit --no-save \
	    --prefix $(VENV)/servers @modelcontextprotocol/sdk@1.32.2
	@touch $@
