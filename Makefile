# Everything a user or developer runs. Each target creates the environment it needs.
PYTHON ?= python3
DATA ?= DATA
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test test-slow test-cpu lint bench bench-quality bench-start bench-safety bench-scale bench-promises arena arena-quick arena-page reproduce reproduce-quick mutation docs release clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

demo: $(VENV)/.core  ## train on Adult, audit, and write fairproj-demo/report.html
	@$(BIN)/fairproj demo --force

# A file's tests share what they fit, so a process runs whole files; each computes on one core.
# Compiled modules are kept for the other processes, those that tests start among them.
ONE_CORE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 LOKY_MAX_CPU_COUNT=1
PYTEST := PYTHONDONTWRITEBYTECODE= $(ONE_CORE) $(BIN)/python -m pytest -q --dist loadfile

test: $(VENV)/.dev lint  ## lint, types, import layers, then every test that is not slow
	$(PYTEST) -n 2 -m "not slow" --hypothesis-profile=fast

test-slow: $(VENV)/.dev  ## the slow tests, and the properties with all examples
	$(PYTEST) -n 3 -m "slow or hypothesis"

# Results must not rest on the last bits of a sum, which differ between instruction sets.
OTHER_CPU := NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4"
MATHS := accounting adaboost boost certificate constraints costs difference dual fairboost inference \
	inputs many_groups metrics monitor plain_boosting projection reduction reference row_order ties trees

test-cpu: $(VENV)/.dev  ## the tests of the mathematics without AVX (NumPy 2.4 on x86-64)
	$(OTHER_CPU) $(BIN)/python -W error::ImportWarning -m pytest -q -n auto --dist loadgroup \
		$(MATHS:%=tests/test_%.py)

# Prose that people wrote; pages of numbers are written by commands.
PROSE := README.md CONTRIBUTING.md SECURITY.md docs/index.md docs/start.md $(wildcard docs/guide/*.md docs/recipes/*.md docs/migrating/*.md docs/development/*.md)

lint: $(VENV)/.dev  ## ruff, mypy --strict, import-linter, codespell, proselint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs src tests examples benchmarks tools
	$(BIN)/proselint check --config docs/proselint.json $(PROSE)

bench: $(VENV)/.dev  ## speed and memory, each a ratio measured in one run
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/frontier.py --fresh
	$(BIN)/python benchmarks/predict.py
	$(BIN)/python benchmarks/audit.py
	$(BIN)/python benchmarks/reasons.py
	$(BIN)/python benchmarks/commands.py
	$(BIN)/python benchmarks/search.py
	$(BIN)/python benchmarks/groups.py --fresh

bench-start: $(VENV)/.dev  ## how long the command line takes to start
	$(BIN)/python benchmarks/startup.py

bench-safety: $(VENV)/.dev  ## mutated model and data files, kills, full disks, random projections: two hours; continues where it stopped
	$(BIN)/python benchmarks/safety
	$(BIN)/python benchmarks/fuzz_projection.py

bench-scale: $(VENV)/.dev  ## rows, memory and workers, and workers that are killed: half an hour
	$(BIN)/python benchmarks/scale.py --fresh
	$(BIN)/python benchmarks/scale.py --rows 50000000 --rounds 20
	$(BIN)/python benchmarks/cluster_faults.py

bench-promises: $(VENV)/.dev  ## how often intervals and other statements with a probability fail: an hour
	$(BIN)/python benchmarks/interval_coverage.py --fresh
	$(BIN)/python benchmarks/promises.py --fresh

mutation: $(VENV)/.mutation  ## which changes of the mathematics the tests notice: an hour; OPTIONS="--jobs 2"
	$(BIN)/python tools/mutation.py $(OPTIONS)

bench-quality: $(VENV)/.reproduce  ## accuracy at a gap beside peers, and the studies of FairBoost and of the search: an hour
	$(BIN)/python benchmarks/fairboost.py --fresh
	$(BIN)/python benchmarks/steps.py --fresh
	$(BIN)/python benchmarks/watched.py --fresh
	$(BIN)/python benchmarks/selection.py --fresh

arena: $(VENV)/.reproduce  ## every peer on the same splits, into docs/arena.md: an hour; DATA=folder, OPTIONS=--fresh
	$(BIN)/python benchmarks/arena --data "$(DATA)" $(OPTIONS)

arena-quick: $(VENV)/.reproduce  ## a small part of that, into arena-quick.md: a few minutes
	$(BIN)/python benchmarks/arena --plan quick

arena-page: $(VENV)/.reproduce  ## docs/arena.md from kept results
	$(BIN)/python benchmarks/arena --page-only

reproduce: $(VENV)/.reproduce  ## run the paper's experiments anew, into docs/: some twenty minutes
	$(BIN)/fairproj reproduce --fresh --output docs/reproduction
	$(BIN)/fairproj reproduce --fresh --readings --output docs/readings
	git diff --stat -- docs/reproduction.md docs/readings.md

reproduce-quick: $(VENV)/.reproduce  ## a small part of that, into reproduction-quick.md: a minute or two
	$(BIN)/fairproj reproduce --quick

docs: $(VENV)/.docs  ## build the documentation into docs/_build/html and check its links; offline, about two minutes
	$(BIN)/python -m sphinx -W -q -j auto -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py
	@echo "open docs/_build/html/index.html"

release: $(VENV)/.release  ## wheel and sdist into dist/, checked in clean environments, and the page of what was found: some ten minutes
	$(BIN)/python tools/check_release.py

clean:  ## remove the environment and everything built
	rm -rf $(VENV) build dist docs/_build docs/reference/generated docs/gallery .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis fairproj-demo

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check --upgrade pip

$(VENV)/.core: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[cli]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[test,lint]"
	@touch $@ $(VENV)/.core

$(VENV)/.reproduce: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[reproduce]"
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[cli,distributed,docs]"
	@touch $@

$(VENV)/.mutation: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[mutation]"
	@touch $@

$(VENV)/.release: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[release]"
	@touch $@
