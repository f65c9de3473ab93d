# reverie: the one menu. `make serve` and `make test` need Python 3.11 or later and make, no more.

PYTHON ?= python3
VENV ?= .venv
# Pinned, so that everybody computes with the same library. TORCH_INDEX may name an index with
# builds for the CPU alone, which are smaller than those that bring CUDA.
TORCH ?= torch==2.13.0
TORCH_INDEX ?=
PORT ?=

BIN := $(VENV)/bin
# A process a core, but no more than four: each loads torch.
PYTEST = $(BIN)/python -m pytest -n auto --maxprocesses=4
FAST := $(addprefix tests/,engine kernels media/audio media/video models/contract models/oasis \
	models/diamond sessions/state sessions/protocol sessions/streams sessions/attachments)
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help serve test test-fast test-all check eval bench train format lint types contracts node-test browser-tools

help:
	@echo 'make serve    play: installs what is needed, then serves on http://127.0.0.1:8000;'
	@echo '              PORT=9000 takes another port'
	@echo 'make test     the tests of every package, in Python, node and a real browser'
	@echo 'make test-fast  those that need neither a browser nor a socket'
	@echo 'make check    what CI runs: format, lint, types, import contracts, every test (the slow'
	@echo '              ones too), and whether the embedded model keeps its bars'
	@echo 'make eval     measure the embedded model against its bars: as much as fits into two minutes'
	@echo 'make bench    measure the runtime against the bare model'
	@echo 'make train    train the embedded model, into runs/pocket'
	@echo 'make format   put the code into shape'

serve: $(VENV)/installed
	$(BIN)/reverie serve $(if $(PORT),--port $(PORT))

# Neither a browser nor a socket: for a look between two edits.
test-fast: $(VENV)/installed-dev
	$(PYTEST) -m 'not slow and not browser' $(FAST)

test: $(VENV)/installed-dev browser-tools node-test
	$(PYTEST) -m 'not slow'

test-all: $(VENV)/installed-dev browser-tools node-test
	$(PYTEST)

# Tests come nearly last, so that their summary is seen; the model's own table is the last. It has
# time for every bar where the model makes two frames a second or more.
check: lint types contracts test-all
	$(BIN)/reverie eval pocket --quick --minutes 20

eval: $(VENV)/installed
	$(BIN)/reverie eval pocket --quick

bench: $(VENV)/installed
	$(BIN)/reverie bench

train: $(VENV)/installed
	$(BIN)/reverie train pocket --out runs/pocket

format: $(VENV)/installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

contracts: $(VENV)/installed-dev
	$(BIN)/lint-imports

node-test: browser-tools
	node --test $(sort $(wildcard tests/web_client/*.test.mjs tests/web_client/*/*.test.mjs))

browser-tools:
	@bash .ci/tools

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'reverie needs Python 3.11 or later: make PYTHON=/path/to/python3.11'; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
		|| { rm -f $@; echo 'no venv module: on Debian and Ubuntu, apt install python3-venv'; exit 1; }

# The stamps: an installation is made anew only when pyproject.toml says something new.
$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	@echo 'Installing into $(VENV); the first time this takes some minutes.'
	@$(PIP) install --quiet $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) '$(TORCH)'
	@$(PIP) install --quiet --editable .
	@touch $@

$(VENV)/installed-dev: pyproject.toml plugins/livekit-plugins-reverie-world/pyproject.toml $(VENV)/installed
	@echo 'Installing what the tests need.'
	@$(PIP) install --quiet --editable '.[dev]' --editable plugins/livekit-plugins-reverie-world
	@touch $@
