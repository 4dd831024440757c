# What a developer types. The work is in deploy/setup/; here is only what calls what.
# VENV=/path uses another environment, PYTHON=… another Python 3.11, ARGS='-k name' narrows the tests.

SHELL := /bin/bash
VENV ?= .venv
PYTHON ?= python3.11
PRIMER_HOME ?= .primer
PORT ?= 3000
API_PORT ?= 8788
# Two: more test processes than that need more than 8 GB, since each that parses or embeds loads torch.
WORKERS ?= 2
ARGS ?=

export VENV PYTHON PRIMER_HOME PORT API_PORT

.DEFAULT_GOAL := help
.PHONY: help install demo ui lint test clean

help:
	@echo "make demo    read the samples into both indexes and search them"
	@echo "make ui      Dagster's web UI over what the demo made, at http://127.0.0.1:$(PORT), and the HTTP API on $(API_PORT)"
	@echo "make test    every test, with a Postgres and an S3 server of its own"
	@echo "make lint    ruff, mypy, import rules"
	@echo "make clean   remove .venv and caches (not .primer, which holds indexes)"

install:
	@deploy/setup/system.sh python
	@deploy/setup/venv.sh "$(VENV)"

demo: install
	@deploy/setup/system.sh ocr
	@deploy/setup/demo.sh

ui: install
	@deploy/setup/system.sh ocr
	@deploy/setup/ui.sh

# All four, whichever fail, so that one look shows what there is to mend.
lint: install
	@failed=0; \
	"$(VENV)/bin/python" -m ruff check . || failed=1; \
	"$(VENV)/bin/python" -m ruff format --check . || failed=1; \
	"$(VENV)/bin/python" -m mypy || failed=1; \
	"$(VENV)/bin/lint-imports" || failed=1; \
	exit $$failed

# OMP_NUM_THREADS: without it every test process starts a torch thread a core and they take turns.
# PRIMER_HOME is dropped: tests make homes of their own.
test: install
	@deploy/setup/system.sh ocr postgres s3
	@env -u PRIMER_HOME HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 \
		"$(VENV)/bin/python" -m pytest -n $(WORKERS) --dist loadfile $(ARGS)

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
