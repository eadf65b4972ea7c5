# make demo | test | lint | docs: each sets up what it needs in .venv, with nothing but Python 3.10+ installed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PARTS  := client proxy sim
STAMP  := $(VENV)/.set-up

.PHONY: demo test lint format wheels recordings bench docs clean

demo: $(STAMP)
	mkdir -p build && $(BIN)/traingov-sim demo --report build/demo-report.html

test: $(STAMP)
	$(BIN)/python -m pytest -q

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy policies daemon client proxy sim
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

wheels: $(STAMP)
	$(BIN)/python -m build -q --wheel --outdir build/wheels .
	set -e; for part in $(PARTS); do $(BIN)/python -m build -q --wheel --outdir build/wheels $$part; done

# The recordings of the replay tests (the demonstration's, and one of each kind of trouble): make them anew when a
# decision changes on purpose.
recordings: $(STAMP)
	rm -rf build/recordings && $(BIN)/traingov-sim demo --record build/recordings
	set -e; for run in profile joint tree; do gzip -9nc build/recordings/$$run.jsonl > tests/replay/demo-$$run.jsonl.gz; done
	$(BIN)/traingov-sim scenarios --record build/recordings/scenarios
	set -e; cd build/recordings/scenarios; for run in *.jsonl.gz; do cp $$run ../../../tests/replay/scenario-$$run; done

bench: $(STAMP)
	set -e; for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file; done

# The site of docs/ below build/site, in an environment of its own; a broken link or a page without a place fails.
docs: .venvs/docs/.set-up
	NO_MKDOCS_2_WARNING=1 .venvs/docs/bin/mkdocs build --strict

.venvs/docs/.set-up: docs/requirements.txt
	$(PYTHON) -m venv .venvs/docs
	.venvs/docs/bin/python -m pip install -q -r docs/requirements.txt
	touch $@

$(STAMP): pyproject.toml $(PARTS:%=%/pyproject.toml) requirements-dev.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "traingov needs Python 3.10 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -e . $(PARTS:%=-e %) -r requirements-dev.txt
	touch $@

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
