# Everything a newcomer needs: `make up` shows Headrace at work, `make test` proves it.
# Both build .venv by themselves; nothing but Python 3.11+, make and git has to be there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

# The suite starts thousands of programs: where Python may not keep what it has compiled, each of them
# compiles every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help up venv programs test lint types imports docs docs-serve kills rate-kills policy-kills ingest-kills chaos
.PHONY: fail-overs poolers
.PHONY: soak bench hosts
.PHONY: speech-kills spots-kills scanner-kills browser-kills accuracy dist clean
.PHONY: prometheus-soak dashboards

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

venv: $(STAMP) ## Make .venv with everything for development

APPS := $(patsubst %/pyproject.toml,%,$(wildcard apps/*/pyproject.toml))
# Voices for tests and the demo; GPL-3, so nobody gets them without asking.
EXTRAS_speech := [espeak]

$(STAMP): pyproject.toml $(wildcard apps/*/pyproject.toml)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.5"
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/uv pip install --quiet --editable ".[all]" \
		$(foreach app,$(APPS),--editable "./$(app)$(EXTRAS_$(notdir $(app)))") --group dev
	touch $@

# Bundles that `make up` loads: `make up BUNDLES=` loads none.
BUNDLES ?= ingest,speech,spots,scanner

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

# What the tests use and no wheel brings. It is installed where that may be done here; elsewhere the
# tests that need it are skipped, and say so. Nothing of it is started as a service. Without
# chromium-headless-shell, which some distributions have not, pages are tested with chromium, and
# take longer.
PROGRAMS := chromium:chromium chromium-headless-shell:chromium-headless-shell
PROGRAMS += rabbitmq-server:rabbitmq-server prometheus:prometheus amtool:prometheus-alertmanager nginx:nginx-light
PROGRAMS += linux.uml:user-mode-linux ip:iproute2 pgbouncer:pgbouncer valkey-server|redis-server:valkey-server
MISSING = $(strip $(foreach each,$(PROGRAMS),$(if $(shell PATH="$$PATH:/usr/sbin" command -v $(subst |, || command -v ,$(firstword \
	$(subst :, ,$(each))))),,$(lastword $(subst :, ,$(each))))))
INSTALL := DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends
# A Valkey that speaks TLS, which that of the wheel does not. Debian 12 has it among its backports, which
# are read from where this machine has Debian from, and from nowhere else. Where there is none, Debian's Redis does.
BACKPORTS := later=$$(mktemp --suffix=.list); { cat /etc/apt/sources.list 2>/dev/null; \
	apt-get indextargets --format '$$(REPO_URI) $$(CODENAME)' 'Created-By: Packages' 'Origin: Debian' | sort -u | \
	sed -n 's|^\(.*/debian/\) \([a-z]*\)$$|deb \1 \2-backports main|p'; } > $$later; \
	set -- -o Dir::Etc::SourceList=$$later -o APT::Get::List-Cleanup=0 -o Acquire::Retries=0 -o Acquire::http::Timeout=20; \
	apt-get update -qq "$$@" && $(INSTALL) "$$@"

programs: ## Install the browser and the servers that tests need and that no wheel brings
	@left="$(MISSING)"; \
	if [ -n "$$left" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing $$left"; wanted=$$left; left=; apt-get update -qq; \
		for each in $$wanted; do $(INSTALL) $$each >/dev/null || case $$each in \
			valkey-server) { $(BACKPORTS) $$each || $(INSTALL) redis-server; } >/dev/null || left="$$left $$each";; \
			*) left="$$left $$each";; esac; done; rm -f "$$later"; \
	fi; [ -z "$$left" ] || echo "Not here: $$left. Tests that need it are skipped; install it with your system's packages"

# One or two that fail are run once more, alone; what passes then is told as unsteady.
test: lint programs ## Run the whole suite on SQLite, PostgreSQL and Redis
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS) || \
		{ [ $$? = 1 ] && $(BIN)/python -m tests.support.second_try; }

docs: $(STAMP) ## Build the documentation as a site with search, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs-serve: $(STAMP) ## Show the documentation on http://127.0.0.1:8000, and again after each change
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

kills: $(STAMP) ## Kill a thousand workers at every point around a stage
	HEADRACE_TEST_KILLS=1000 $(BIN)/pytest -q -s tests/crash/test_killed_stages.py

rate-kills: $(STAMP) ## Start 10,000 jobs of 100 keys at a rate while workers are killed and frozen
	HEADRACE_TEST_RATE_JOBS=10000 $(BIN)/pytest -q -s tests/crash/test_rated_workers.py

policy-kills: $(STAMP) ## Kill five hundred callers and workers on each engine while jobs replace and put off others
	HEADRACE_TEST_POLICY_KILLS=500 $(BIN)/pytest -q -s tests/crash/policies

fail-overs: $(STAMP) ## Kill a primary of PostgreSQL, and a master of Redis, ten times for each kind of replica, and count
	HEADRACE_TEST_FAIL_OVERS=10 $(BIN)/pytest -q -s tests/crash/test_fail_over.py tests/engine/redis/production/test_fail_over.py

poolers: $(STAMP) programs ## Run the conformance suite on PostgreSQL behind PgBouncer, in both modes
	HEADRACE_TEST_POOLER=session $(BIN)/pytest -q -n $(WORKERS) tests/engine/*.py -k postgres
	HEADRACE_TEST_POOLER=transaction $(BIN)/pytest -q -n $(WORKERS) tests/engine/*.py -k postgres

ingest-kills: $(STAMP) ## Kill two hundred workers at every point of the pipeline of documents
	HEADRACE_TEST_INGEST_KILLS=200 $(BIN)/pytest -q -s apps/ingest/tests/app/test_killed_documents.py

speech-kills: $(STAMP) ## Make a hundred audio files of ten users while their workers are killed
	HEADRACE_TEST_SPEECH_JOBS=100 $(BIN)/pytest -q -s apps/speech/tests/speech_app/test_killed_dialogues.py

spots-kills: $(STAMP) ## Kill two hundred workers at every point of the analysis of shops
	HEADRACE_TEST_SPOTS_KILLS=200 $(BIN)/pytest -q -s apps/spots/tests/test_killed_shops.py

scanner-kills: $(STAMP) ## Scan eight platforms with sixteen workers while they are killed
	HEADRACE_TEST_SCANNER_KILLS=60 $(BIN)/pytest -q -s apps/scanner/tests/kills

browser-kills: $(STAMP) ## Kill a hundred workers while their browser is alive
	HEADRACE_TEST_BROWSER_KILLS=100 $(BIN)/pytest -q -s apps/scanner/tests/kills/test_killed_browsers.py

ENGINE ?= sqlite
MINUTES ?= 2
SEED ?= 1

chaos: $(STAMP) ## Break everything around Headrace, and judge it (make chaos ENGINE=redis MINUTES=30)
	$(BIN)/python -m chaos --engine $(ENGINE) --minutes $(MINUTES) --seed $(SEED) $(ARGS)

soak: $(STAMP) ## Load everything for long, and find what grows (make soak ENGINE=postgres MINUTES=60)
	$(BIN)/python -m soak --engine $(ENGINE) --minutes $(MINUTES) --seed $(SEED) $(ARGS)

prometheus-soak: $(STAMP) programs ## Scrape under load, and compare with the truth (make prometheus-soak MINUTES=10)
	HEADRACE_TEST_PROMETHEUS_MINUTES=$(MINUTES) $(BIN)/pytest -q -s tests/server/test_prometheus_truth.py

dashboards: $(STAMP) ## Make the dashboards of Grafana from deploy/grafana/panels.yaml
	$(BIN)/python deploy/grafana/make.py

bench: $(STAMP) ## Measure Headrace (make bench ONLY=postgres)
	$(BIN)/python -m bench $(if $(ONLY),--only $(ONLY)) $(ARGS)

hosts: $(STAMP) ## A producer, a worker and a store on three hosts (network namespaces), over slow and lossy lines
	$(BIN)/python -m bench.hosts $(ARGS)

dist: $(STAMP) ## Build wheel and sdist, check them, and try them with each extra in a bare environment
	rm -rf dist
	$(BIN)/python -m hatchling build --directory dist
	$(BIN)/twine check --strict dist/*
	HEADRACE_TEST_DIST=dist $(BIN)/pytest -q tests/packaging/test_dist.py

# Real sentences are no part of the repository: DATA is the folder that has them.
accuracy: $(STAMP) ## Measure how well texts are understood (make accuracy DATA=FOLDER)
	@test -d "$(DATA)" || { echo "Give the folder with the sentences: make accuracy DATA=FOLDER"; exit 2; }
	$(BIN)/python -m headrace_ingest.accuracy masking
	$(BIN)/python -m headrace_ingest.accuracy names --data $(DATA)
	$(BIN)/python -m headrace_ingest.accuracy similar --data $(DATA)
	$(BIN)/python -m headrace_spots.accuracy $(DATA)

clean: ## Remove what make built
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist site
