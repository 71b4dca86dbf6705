# What a newcomer needs: `make run`, `make test`, `make check`. Each sets up what it lacks.
.DEFAULT_GOAL := help
.PHONY: help run test test-long check docs map dist images bench soak fuzz mutate-guards lock format clean

# The first Python of the path that is built with optimization: by a distribution, or by that option, which pyenv does not
# use. It runs the tests in a quarter less CPU. Without one, the first Python.
IS_OPTIMIZED := import ensurepip, sys, sysconfig, venv; \
	built = sys.base_prefix == "/usr" or "--enable-optimizations" in str(sysconfig.get_config_var("CONFIG_ARGS")); \
	sys.exit(sys.version_info < (3, 11) or not built)
PYTHON ?= $(or $(shell for each in $$(which -a python3); do \
	$$each -c '$(IS_OPTIMIZED)' 2>/dev/null && echo $$each && break; done),python3)
IS_NEW := import sys; sys.exit(sys.version_info < (3, 11))
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNS := $(VENV)/.runs
WORKERS ?= 5
# Compiled modules are kept: without them every process of the tests compiles 500 modules, a fifth of its start.
export PYTHONDONTWRITEBYTECODE :=
# Files are UTF-8, whatever the locale of the machine says.
export PYTHONUTF8 := 1

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# An environment of a Python that is too old is replaced. One with the tools of developers runs the gateway too.
define environment
	@if test -x $(BIN)/python && ! $(BIN)/python -c '$(IS_NEW)' 2>/dev/null; then rm -rf $(VENV); fi
	@test -x $(BIN)/python || $(PYTHON) -c '$(IS_NEW)' 2>/dev/null || { \
		echo "needs Python 3.11 or newer: $(PYTHON) is older; name another one with make PYTHON=…" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python deploy/install.py $(1)
	@touch $@
endef

$(STAMP): requirements-dev.txt pyproject.toml
	$(call environment,requirements-dev.txt)

$(RUNS): requirements-run.txt deploy/requirements-build.txt pyproject.toml
	$(call environment,requirements-run.txt deploy/requirements-build.txt)

run: $(or $(wildcard $(STAMP)),$(RUNS)) ## Start the gateway with the example, its sample upstream and embedded servers
	@exec $(BIN)/python -m examples.run

test: $(STAMP) ## Run the tests, but for those that take minutes by their nature
	@$(BIN)/python -m tests.whole -q -n $(WORKERS) --dist worksteal -m "not long"

test-long: export SOAK_CALLS ?= 15000
test-long: export SOAK_HISTORIES ?= 2
test-long: export HISTORY_SECONDS ?= 40
test-long: $(STAMP) ## Run what takes minutes by its nature: installs, older releases, long histories and storms
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m long
	@$(BIN)/python -m pytest -q tests/soak

check: $(STAMP) ## Lint, type-check, hold layers, ceilings and prose; ask for known vulnerabilities
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports
	@$(BIN)/mypy
	@$(BIN)/pyright
	@$(BIN)/python -m tests.ceilings
	@$(BIN)/python -m tests.limits
	@$(BIN)/python -m tests.refused_calls
	@$(BIN)/python -m tests.workflows
	@$(BIN)/python -m tests.prose
	@$(BIN)/python -m tests.advisories

docs: $(STAMP) ## Build the site in build/site from docs/ and the code; refuse broken links and unlisted pages
	@$(BIN)/python -m tests.site

map: $(STAMP) ## Write the pages with their generated parts as Markdown: file map, promises, guards, reference
	@$(BIN)/python -m tests.site --pages

dist: $(STAMP) ## Build what a release needs without a registry: wheel, source, bill of materials, offline bundle
	@$(BIN)/python deploy/dist.py

images: $(STAMP) ## Before a release: refuse images without a digest (deploy/images.env; ARGS=--ask asks the registry)
	@$(BIN)/python -m tests.images $(ARGS)

bench: $(STAMP) ## Measure CPU per call, start-up and memory; print the tables (ARGS=--write, --quick)
	@$(BIN)/python -m benchmarks.run $(ARGS)

soak: $(STAMP) ## Run the tests that take long (SOAK_CALLS=60000)
	@$(BIN)/python -m pytest tests/soak -q

fuzz: export FUZZ_EXAMPLES ?= 4000
fuzz: $(STAMP) ## Try other examples and many in the generated tests (FUZZ_EXAMPLES=4000)
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m hypothesis
	@$(BIN)/python -m pytest -q tests/attacks/test_admin_schemathesis.py -m long

mutate-guards: $(STAMP) ## Remove every guard in turn; its test must notice (ARGS="--only NAME")
	@$(BIN)/python -m tests.guards $(ARGS)

format: $(STAMP) ## Format and fix what can be fixed
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: ## Compile the hashed lock files anew (needs uv)
	uv pip compile pyproject.toml --extra embedded --extra keyring --extra traces --group dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate -o requirements-dev.txt
	uv pip compile pyproject.toml --extra embedded --universal --python-version 3.11 --generate-hashes --no-emit-index-url -c requirements-dev.txt --no-header --no-annotate -o requirements-run.txt
	uv pip compile pyproject.toml --extra traces --universal --python-version 3.11 --generate-hashes --no-emit-index-url -c requirements-dev.txt --no-header --no-annotate -o requirements.txt
	uv pip compile deploy/requirements-build.in --universal --python-version 3.11 --generate-hashes --no-emit-index-url -c requirements-dev.txt --no-header --no-annotate -o deploy/requirements-build.txt

clean: ## Remove the environment and all caches (not .gateway/, which holds data)
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
