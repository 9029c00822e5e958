# FlyDSL Workbench: `make` prints the targets.
#
# Everything runs in .venv, which is made when first needed. `make lab PYTHON=/path/to/python` (and likewise for every
# other target) uses that interpreter's environment instead, and leaves the torch in it untouched.

PY := $(or $(PYTHON),.venv/bin/python)
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

# One process per core; a file's tests stay in one, for what they set up together. A test that ended its process is run
# again by the next one, and that should not go on for ever.
PARALLEL := --numprocesses auto --dist loadfile --max-worker-restart 1
# Files start in the order of tests/conftest.py, long ones first, instead of those with many tests. The slowest tests are
# named at the end. Loading nbval takes a second, which only the notebooks need.
TESTS := $(PARALLEL) --no-loadscope-reorder -p no:nbval --durations=15 --durations-min=1

# Python keeps its bytecode, whatever the shell says: the tests start many processes.
unexport PYTHONDONTWRITEBYTECODE

# The notebooks that the guide lists: what else lies in the folder is the user's.
NOTEBOOKS := $(shell grep -o 'notebooks/[a-z0-9_]*\.ipynb' docs/guide/notebooks.md | sort -u)

# A browser on a busy machine may be late, so what fails is tried once more: for that pytest has to remember it. Half of
# the time is waiting for kernels to start, so two JupyterLabs take less than one.
VIEWS ?= tests/browser -m "sweep or not sweep"
BROWSER = -rs --numprocesses 2 --dist loadfile -o addopts="--import-mode=importlib --strict-markers" -o cache_dir=build/pytest $(VIEWS)

# The whole repository is served, and the address that is printed is that of the tour.
LAB := --ServerApp.root_dir="$(CURDIR)" --LabApp.default_url=/lab/tree/notebooks/00_tour.ipynb \
	--FileContentsManager.pre_save_hook=tools.lab.keep_kernel_metadata

.PHONY: help setup browser lab test all-tests notebooks fast lint types bench sweep table fuzz docs wheel pythons clean

help: ## Print the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' Makefile

setup: ## Make or update the environment; quick when there is nothing to do
	@tools/setup.sh $(PYTHON)

browser: setup ## The tests in a real browser; installs Debian's Chromium where it is missing and this is root
	@tools/browser.sh
	$(PY) -m pytest $(BROWSER) || $(PY) -m pytest $(BROWSER) --last-failed

lab: setup ## Open JupyterLab on the tour; scratch/ is for your own notebooks
	@mkdir -p scratch
	$(PY) -m jupyterlab $(AS_ROOT) $(LAB)

# In the browser, views of compilations and some of the saved notebooks: all of its tests take four minutes.
# mypy takes one core, and a minute when it runs for the first time: beside the tests, no core is idle. Nor is one while
# a browser waits, beside the notebooks.
test: setup lint ## What must hold: lint, types, the tests, all notebooks, and views in a browser
	@$(MAKE) --no-print-directory --jobs 2 types all-tests
	@$(MAKE) --no-print-directory --jobs 2 notebooks browser VIEWS="tests/browser/test_compilation_views.py tests/browser/test_saved.py"

all-tests: setup
	MAKEFLAGS= $(PY) -m pytest $(TESTS) --ignore=tests/browser

notebooks: setup ## Run all notebooks, and compare what they show
	MAKEFLAGS= $(PY) -m pytest $(PARALLEL) --nbval $(NOTEBOOKS)

fast: setup ## The tests that take no time, without notebooks: under a minute
	$(PY) -m pytest $(TESTS) -m "not slow" tests flydsl

pythons: ## The quick tests on every Python from 3.10 to 3.13 that is installed; VERSIONS="3.10 3.13" for some
	@tools/pythons.sh $(VERSIONS)

lint: setup ## Check style and format with ruff
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: setup ## Check types with mypy
	$(PY) -m mypy

bench: setup ## Measure import, first call, each stage, warm call; also writes build/bench.json
	$(PY) -m tests.benchmarks

sweep: setup ## All of what make test takes a part of: types, targets, long shapes, figures of machine code
	CHECK_LAUNCHES=1 $(PY) -m pytest $(PARALLEL) tests/kernels/sweep/*.py tests/simulator/isa/sweep_*.py
	CHECK_LAUNCHES=1 $(PY) -m pytest $(TESTS) -m sweep tests --ignore=tests/browser
	CHECK_LAUNCHES=1 $(PY) -m pytest $(TESTS) tests/kernels/test_*.py
	CHECK_LAUNCHES=index $(PY) -m pytest $(TESTS) tests/kernels/test_*.py

table: setup ## Compile every kernel and write kernels/README.md, the table of their machine code
	$(PY) -m tools.kernel_table

fuzz: setup ## Every fuzzer for many trials, with another seed each time; FUZZ="listings --seed 1 --count 500" for others
	$(PY) -m tests.fuzz $(FUZZ)

# The theme and MyST-NB are needed for nothing else. An installed torch satisfies what the package asks for, and stays.
docs: setup ## Build the documentation site, build/docs/index.html; a warning or a broken link is an error
	@$(PY) -c "import furo, myst_nb" 2>/dev/null || $(PY) -m pip install --quiet --editable '.[docs]'
	$(PY) -m sphinx -q -W --keep-going -b html -c docs -d build/doctrees . build/docs

# The backend copies into build/lib and packs what lies there, deleted modules too.
wheel: setup ## Build dist/*.whl, which pip installs without this checkout
	rm -rf build/lib build/bdist.*
	$(PY) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

clean: ## Remove what was built and cached, but not .venv
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find flydsl workbench kernels tests -name __pycache__ -type d -prune -exec rm -rf {} +
