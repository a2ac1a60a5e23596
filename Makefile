# One command sets up, one checks in about a minute, one tests everything. PYTHON chooses the interpreter (3.11 or newer).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
PIP := $(BIN)/python -m pip --disable-pip-version-check -q install -c constraints.txt

WORKERS ?= logical
# The tests of `make test` wait for servers, and one worker for a browser: two more than processors work meanwhile.
TEST_WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)
# A thread for each worker: the libraries of numpy would start one a core in every one of them.
PYTEST = OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# The tests start hundreds of interpreters: without kept bytecode each compiles the package anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup check test dashboard lint clean chromium gpu

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is %s: make PYTHON=python3.12 setup" % sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip --disable-pip-version-check -q install --require-hashes -r requirements.lock
	$(BIN)/python -m pip --disable-pip-version-check -q install --no-deps --no-build-isolation -e .
	touch $@

# After pyproject.toml or constraints.txt changed: requirements.lock and docs/licences.md anew.
.PHONY: lock
lock: $(VENV)/.ready
	$(BIN)/python .ci/lock.py

$(VENV)/.test-ready: $(VENV)/.ready constraints.txt
	@extras=test; command -v nvcc >/dev/null || [ -x "$$CUDA_HOME/bin/nvcc" ] || extras=test,build; \
	$(PIP) -e ".[$$extras]"
	touch $@

dashboard: setup
	$(BIN)/profiler data index
	$(BIN)/profiler dashboard --port $(PORT)

# Debian's Chromium drives the browser tests; where it is missing and may not be installed they skip and say so.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	  echo "no Chromium here and it may not be installed: the browser tests will skip"

.PHONY: style
style: $(VENV)/.test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint: style
	$(BIN)/mypy

# Types take one processor a minute: they are checked beside the tests, and what is said of them comes last.
# In a new checkout one process compiles meanwhile what every worker imports, which each would do at once.
define TYPES_AND_TESTS
@$(BIN)/mypy >$(VENV)/mypy.txt 2>&1 & types=$$!; trap 'kill $$types' INT TERM; \
[ -d tests/__pycache__ ] || $(BIN)/python -m pytest -q --collect-only >/dev/null; \
$(PYTEST) $(1); tests=$$?; \
wait $$types; types=$$?; cat $(VENV)/mypy.txt; exit $$((tests | types))
endef

check: $(VENV)/.test-ready style
	$(call TYPES_AND_TESTS,-m "not compiler and not server and not browser and not gpu and not slow and not long")

test: WORKERS = $(TEST_WORKERS)
test: $(VENV)/.test-ready chromium style
	$(call TYPES_AND_TESTS,-rs -m "not long")

# What takes minutes or repeats what a shorter test shows: before a release, and after a change of what it tests.
.PHONY: long
long: WORKERS = $(TEST_WORKERS)
long: $(VENV)/.test-ready chromium
	$(PYTEST) -rs -m long

# Damaged input by the thousand, for half an hour; `make test` has a short campaign.
.PHONY: fuzz
FUZZ ?= 20000
fuzz: $(VENV)/.test-ready
	$(BIN)/python -m tests.fuzz.campaign --count $(FUZZ)

# Commands killed by the hundred, on SQLite and PostgreSQL, for half an hour; `make test` has a few.
.PHONY: kills
KILLS ?= 500
kills: $(VENV)/.test-ready
	$(BIN)/python -m tests.kills.campaign --count $(KILLS)

# On a bare GPU machine: what it can do, bundles in files of their own, its tests. Nothing is installed. First
# correctness, latency and lean counters of the whole lineage; then A/A pairs, by which this run and every later
# one can be judged; then full captures; a test that fails, or a time that is up, must not cost them. Where a
# command may not take long, each part by itself. OUT is a folder, for all; no part stops the next.
BUDGET ?= 8m
NOISE_BUDGET ?= 9m
FULL_BUDGET ?= 4m
NOISE ?= v2d_c
FULL ?= v2d_b,v2d_c
FULL_ON ?= 1x8x512x64
BUNDLE ?= $(if $(OUT),$(OUT)/)collected.zip
comma := ,
.PHONY: gpu-doctor gpu-collect gpu-noise gpu-full gpu-test
gpu:
	@code=0; for part in gpu-doctor gpu-collect gpu-noise gpu-full gpu-test; do \
	  $(MAKE) --no-print-directory $$part || code=1; \
	done; exit $$code

gpu-doctor:
	$(PYTHON) -m profiler doctor

gpu-collect:
	$(PYTHON) -m profiler collect --budget $(BUDGET) --out $(BUNDLE)

gpu-noise:
	$(PYTHON) -m profiler collect --noise $(subst $(comma), ,$(NOISE)) --budget $(NOISE_BUDGET) --out $(if $(OUT),$(OUT)/)noise.zip

gpu-full:
	$(PYTHON) -m profiler collect $(subst $(comma), ,$(FULL)) --workloads $(FULL_ON) --full $(FULL) --no-model \
	  --budget $(FULL_BUDGET) --out $(if $(OUT),$(OUT)/)full.zip

gpu-test:
	@$(PYTHON) -c 'import pytest' 2>/dev/null || echo "no pytest here: the GPU tests are left out"
	! $(PYTHON) -c 'import pytest' 2>/dev/null || $(PYTHON) -m pytest -q -m gpu -o addopts= tests/gpu

clean:
	rm -rf $(VENV) data/index.db* data/cache data/staging
