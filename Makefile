# One command sets up, one tests everything. PYTHON chooses the interpreter (3.11 or newer).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
PIP := $(BIN)/python -m pip --disable-pip-version-check -q install -c constraints.txt

.PHONY: setup test dashboard lint clean chromium gpu

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is %s: make PYTHON=python3.12 setup" % sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.test-ready: $(VENV)/.ready
	$(PIP) -e '.[test]'
	@command -v nvcc >/dev/null || [ -x "$$CUDA_HOME/bin/nvcc" ] || $(PIP) -e '.[build]'
	touch $@

dashboard: setup
	$(BIN)/profiler index
	$(BIN)/profiler dashboard --port $(PORT)

# Debian's Chromium drives the browser tests; where it is missing and may not be installed they skip and say so.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	  echo "no Chromium here and it may not be installed: the browser tests will skip"

lint: $(VENV)/.test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: $(VENV)/.test-ready chromium lint
	$(BIN)/python -m pytest -q

# On a bare GPU machine: what it can do, a bundle of the whole lineage in one file, its tests. Nothing is
# installed. The bundle comes first: a test that fails, or a time that is up, must not cost it. Where a command
# may not take long: `make gpu-collect`, then `make gpu-test`. OUT is a folder, for both; no part stops the next.
BUDGET ?= 8m
FULL ?= v2d_b,v2d_c
BUNDLE ?= $(if $(OUT),$(OUT)/)collected.zip
.PHONY: gpu-doctor gpu-collect gpu-test
gpu:
	@code=0; for part in gpu-doctor gpu-collect gpu-test; do \
	  $(MAKE) --no-print-directory $$part || code=1; \
	done; exit $$code

gpu-doctor:
	$(PYTHON) -m profiler doctor

gpu-collect:
	$(PYTHON) -m profiler collect --budget $(BUDGET) --full $(FULL) --out $(BUNDLE)

gpu-test:
	@$(PYTHON) -c 'import pytest' 2>/dev/null || echo "no pytest here: the GPU tests are left out"
	! $(PYTHON) -c 'import pytest' 2>/dev/null || $(PYTHON) -m pytest -q -m gpu -o addopts= tests/gpu

clean:
	rm -rf $(VENV) data/index.db* data/cache data/staging
