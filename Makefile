# Everything a newcomer needs: `make up` shows Headrace at work, `make test` proves it.
# Both build .venv by themselves; nothing but Python 3.11+, make and git has to be there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

.PHONY: help up venv test lint types imports docs docs-serve kills chaos soak bench clean

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

venv: $(STAMP) ## Make .venv with everything for development

APPS := $(patsubst %/pyproject.toml,%,$(wildcard apps/*/pyproject.toml))

$(STAMP): pyproject.toml $(wildcard apps/*/pyproject.toml)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.5"
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/uv pip install --quiet --editable ".[all]" \
		$(foreach app,$(APPS),--editable ./$(app)) --group dev
	touch $@

# Bundles that `make up` loads: `make up BUNDLES=` loads none.
BUNDLES ?= ingest

up: $(STAMP) ## Start a worker with the built-in tour on the embedded engine
	$(BIN)/headrace up $(if $(BUNDLES),--bundle $(BUNDLES))

lint: $(STAMP) ## Check style, imports and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

# Most tests wait for servers and processes rather than compute, so there are more of them at once
# than cores. `make test ARGS="tests/engine -k sqlite" WORKERS=0` runs some of them in one process.
WORKERS ?= 3

test: lint ## Run the whole suite on SQLite, PostgreSQL and Redis
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS)

docs: $(STAMP) ## Build the documentation as a site with search, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs-serve: $(STAMP) ## Show the documentation on http://127.0.0.1:8000, and again after each change
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

kills: $(STAMP) ## Kill a thousand workers at every point around a stage
	HEADRACE_TEST_KILLS=1000 $(BIN)/pytest -q -s tests/crash/test_killed_stages.py

ENGINE ?= sqlite
MINUTES ?= 2
SEED ?= 1

chaos: $(STAMP) ## Break everything around Headrace, and judge it (make chaos ENGINE=redis MINUTES=30)
	$(BIN)/python -m chaos --engine $(ENGINE) --minutes $(MINUTES) --seed $(SEED) $(ARGS)

soak: $(STAMP) ## Load everything for long, and find what grows (make soak ENGINE=postgres MINUTES=60)
	$(BIN)/python -m soak --engine $(ENGINE) --minutes $(MINUTES) --seed $(SEED) $(ARGS)

bench: $(STAMP) ## Measure Headrace (make bench ONLY=postgres)
	$(BIN)/python -m bench $(if $(ONLY),--only $(ONLY)) $(ARGS)

clean: ## Remove what make built
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist site
