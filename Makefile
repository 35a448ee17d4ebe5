# A fresh machine needs Python 3.10 or later, git and make beside this file.
# Each target sets up its requirements, prints its steps, and does nothing twice.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.14 python3.11 python3.10 python3; do command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; raise SystemExit(sys.version_info < (3, 10))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
RELEASE := .venv-release
# More workers than the two cores of the CI: tests wait as well. Long files come first (tests/conftest.py).
PYTEST := $(BIN)/python -m pytest -n $(or $(WORKERS),6) --dist loadfile --no-loadscope-reorder $(if $(ORDER),--random-order $(ORDER))

# Servers, crawls and commands start many times: their modules are compiled once, also where the caller switched that off.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help dev demo test test-unit test-long test-crash test-full test-whole proof test-matrix test-scrapy test-image fuzz check audit crash soak bench figures figures-check wheel release-check sizes docs clean
.DEFAULT_GOAL := help

help:
	@echo "make demo   run the example crawl, with both services, and show what was stored"
	@echo "make test   run all tests but the longest (some 11 minutes on two cores); needs PostgreSQL's programs (apt-get install postgresql)"
	@echo "make test-unit  run those that need Python alone (about a minute)"
	@echo "make test-long  run those that take long: the examples of the guide, the example project, the HTTP API on PostgreSQL"
	@echo "make check  lint, types and words"
	@echo "make audit  check the licences and the known vulnerabilities of all dependencies"
	@echo "make crash  kill crawls and servers in many more places (takes longer)"
	@echo "make soak   inject random faults for 30 minutes, and compare the acknowledged writes with the stored data; ENGINE=sqlite, TIME=2h, SEED=7"
	@echo "make test-crash  kill crawls, workers and servers at the steps that matter most (some minutes)"
	@echo "make test-full  run all tests, with more of each kind, Scrapy's own, and fuzz (takes longer)"
	@echo "make proof  run all of these in one series, resumable, and write docs/architecture/proof.rst; ONLY=wheel,docs, SCALE=0.01; a day"
	@echo "make test-matrix  run the tests of crawls on each supported version of Python and Scrapy; NOX=\"--tags ci\" on the oldest"
	@echo "make fuzz   fuzz every parser of untrusted input, guided by coverage, for 10 minutes; TIME=1h, SEED=7; Linux on x86-64"
	@echo "make test-scrapy  run Scrapy's own tests with the add-on switched on by default (takes longer)"
	@echo "make test-image  build the container image, and run, drain and kill servers and workers in it (on Debian, as root)"
	@echo "make bench  measure beside Scrapy and its peers; needs a quiet machine (takes hours; BENCH=--quick: minutes)"
	@echo "make figures  measure what the documentation shows and what is missing or older than its script; about three hours, needs a quiet machine; ONLY=crawl_rate, AGAIN=1, LABELLED=folder"
	@echo "make figures-check  fail if a figure of the documentation is missing or older than its script"
	@echo "make wheel  build the wheel, install it in an empty environment, and crawl with it (takes longer)"
	@echo "make release-check  build wheel and sdist, check them, install them on the oldest and the newest Python, and crawl"
	@echo "make sizes  measure the size and the time of the installation of each extra"
	@echo "make docs   build the documentation into docs/_build/html"
	@echo "make dev    set up .venv with all that a contributor needs"
	@echo "make clean  remove all that make has created"

# ── setting up ──

# What the demo needs.
$(VENV)/server: pyproject.toml tools/install.py
	$(call install,server)
	@touch $@

# What a contributor needs, that included.
$(VENV)/installed: pyproject.toml tools/install.py
	$(call install,dev)
	@touch $@ $(VENV)/server

define install
@if [ -z "$(PYTHON)" ]; then echo "Python 3.10 or later is needed: install it, or name it with make PYTHON=..." >&2; exit 1; fi
@$(PYTHON) tools/install.py $(VENV) $(1)
endef

$(VENV)/browser: $(VENV)/server tools/get_browser.sh
	@sh tools/get_browser.sh $(BIN)
	@touch $@

dev: $(VENV)/installed $(VENV)/browser
	@echo "── Ready: . $(BIN)/activate"

# ── doing ──

demo: $(VENV)/server $(VENV)/browser
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m example_project.demo

# ORDER=7: in a random order, the same for each number.
# The unit tests first, apart: they only compute, so that two workers, and the collection for two, are enough.
test: test-unit $(VENV)/browser
	$(PYTEST) tests --ignore tests/unit --ignore tests/acceptance/crash

test-unit: $(VENV)/installed
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/unit $(if $(ORDER),--random-order $(ORDER))

test-long: $(VENV)/installed $(VENV)/browser
	$(PYTEST) tests --ignore tests/acceptance/crash --long

test-crash: $(VENV)/installed $(VENV)/browser
	$(PYTEST) tests/acceptance/crash

check: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/prose.py
	$(BIN)/python tools/changelog.py

# AUDIT=--require-advisories: fails where the advisories cannot be reached.
audit: $(VENV)/installed
	$(BIN)/python tools/audit.py $(AUDIT)

test-full: test-whole
	$(MAKE) fuzz
	$(MAKE) test-scrapy

# LANE=integration: that folder of tests alone. The crash tests have a target of their own, crash.
test-whole: $(VENV)/installed $(VENV)/browser
	$(PYTEST) tests/$(LANE) --full $(if $(LANE),--ignore tests/acceptance/crash)

# ONLY=wheel,docs: those steps. SCALE=0.01: shorter fuzz and soak. AGAIN=1: also what has passed on this commit.
proof: $(VENV)/installed
	@$(BIN)/python tools/proof.py $(if $(ONLY),--only $(ONLY)) $(if $(SCALE),--scale $(SCALE)) $(if $(AGAIN),--again)

# NOX="--tags ci", NOX="--list", NOX="--session scrapy-2.15-python-3.11 -- tests/acceptance/poet": options of nox.
test-matrix: $(VENV)/installed
	$(BIN)/nox $(NOX)

# TIME: such as 90s, 10m or 4h, shared by the parsers. FUZZ="--target cron": options of tests/fuzz.
fuzz: $(VENV)/installed
	$(BIN)/python -m tests.fuzz --time $(or $(TIME),10m) $(if $(SEED),--seed $(SEED)) $(FUZZ)

# SCRAPY="--source ../scrapy": those of a checkout of Scrapy instead of the installed version.
test-scrapy: $(VENV)/installed
	$(BIN)/python -m tests.scrapy_suite $(SCRAPY)

crash: $(VENV)/installed $(VENV)/browser
	$(PYTEST) tests/acceptance/crash --full

# TIME: such as 90s, 30m or 4h; SEED: repeats the same faults.
soak: $(VENV)/installed
	@$(BIN)/python -m tests.soak --time $(or $(TIME),30m) $(if $(ENGINE),--engine $(ENGINE)) $(if $(SEED),--seed $(SEED))

# IMAGE=--keep-images: with the images of the last run.
test-image: $(VENV)/installed
	$(BIN)/python -m tests.image $(IMAGE)

# What the benchmarks compare with.
$(VENV)/peers: $(VENV)/installed benchmarks/requirements.txt
	@command -v redis-server >/dev/null || { echo "The peers need redis-server: on Debian and Ubuntu, apt-get install redis-server" >&2; exit 1; }
	@$(BIN)/pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt
	@touch $@

# BENCH=--quick: only to see that they work.
bench: $(VENV)/peers $(VENV)/browser
	@for script in $(filter-out benchmarks/measure.py,$(wildcard benchmarks/*.py)); do $(BIN)/python $$script $(BENCH) || exit 1; done

# ONLY=crawl_rate,jobs: those alone. AGAIN=1: also what is of this version. LABELLED: a folder of labelled pages (benchmarks/quality).
figures: $(VENV)/peers $(VENV)/browser
	@$(BIN)/python benchmarks/measure.py $(if $(ONLY),--only $(ONLY)) $(if $(AGAIN),--again) $(if $(LABELLED),--labelled $(LABELLED))

figures-check: $(VENV)/installed
	@$(BIN)/python benchmarks/measure.py --check

# In an environment of their own: what builds a release is pinned, and little.
$(RELEASE)/installed: tools/release-requirements.txt
	@echo "── Setting up $(RELEASE) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(RELEASE)
	@$(RELEASE)/bin/pip install --quiet --disable-pip-version-check -r tools/release-requirements.txt
	@touch $@

wheel: $(RELEASE)/installed
	$(RELEASE)/bin/python tools/try_wheel.py

release-check: $(RELEASE)/installed
	$(RELEASE)/bin/python tools/release_check.py

# SIZES="server poet": those extras alone.
sizes:
	@$(PYTHON) tools/measure_install.py $(SIZES)

docs: $(VENV)/installed
	$(BIN)/sphinx-build -W -q -b html docs docs/_build/html
	@echo "── docs/_build/html/index.html"

clean:
	rm -rf $(VENV) $(RELEASE) tests/acceptance/server/ui/screenshots build dist *.egg-info docs/_build soak-report .proof .nox .mypy_cache .ruff_cache .pytest_cache
