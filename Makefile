# Everything a newcomer needs: `make demo` and `make test` set up what they use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What the service needs; `requirements/dev.txt` has all of it, and what tests and checks need besides.
RUNTIME := requirements/run.txt
RUN := $(VENV)/.ready-run
DEV := $(VENV)/.ready-dev
ANNOUNCE = @echo "Installing $< into $(VENV): up to two minutes…"
INSTALL := VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet
PHOENIX := .venv-phoenix
DOCS := .venv-docs
# A process of tests for each of the two cores that the smallest machine has.
WORKERS ?= 2
# Trust the certificates of the system, as pip does: those of a proxy that inspects TLS are only there.
export UV_SYSTEM_CERTS ?= true
PYTEST := $(BIN)/python -m pytest --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder
# Slow files first, so that both processes have small ones left at the end.
TESTS := tests/service tests/attack tests/contract tests/unit tests/browser
QUICK := -m "not chaos and not browser"

.PHONY: setup demo ui docs test test-chaos test-browser coverage clients check serve phoenix bench evaluate lock sbom audit clean

setup: $(DEV)

$(BIN)/uv: requirements/bootstrap.txt
	@echo "Installing uv into $(VENV)…"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/bootstrap.txt
	@touch $@

# Adds and takes nothing away, so that it may follow a `make test`.
$(RUN): $(RUNTIME) pyproject.toml $(BIN)/uv
	$(ANNOUNCE)
	$(INSTALL) --require-hashes -r $(RUNTIME)
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): requirements/dev.txt pyproject.toml $(BIN)/uv
	$(ANNOUNCE)
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip sync --quiet --compile-bytecode --require-hashes requirements/dev.txt
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $(RUN) $@

demo: $(RUN)
	$(BIN)/opora demo

# Builds the widget from `ui/src`; what it writes into `ui/static` is committed.
ui: setup
	$(BIN)/python -m ui.build

# Builds the documentation into `site/`: reference pages from the code, then MkDocs, which fails on a broken link.
docs: $(RUN) $(DOCS)/.ready
	$(BIN)/python -m docs.generate
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet

$(DOCS)/.ready: requirements/docs.txt $(BIN)/uv
	$(PYTHON) -m venv $(DOCS)
	VIRTUAL_ENV=$(DOCS) $(BIN)/uv pip sync --quiet --require-hashes requirements/docs.txt
	@touch $@

# In memory where 4 GB are free there: a third of the time goes by while hundreds of small databases are forced to the
# disk.
test test-chaos test-browser coverage: export TMPDIR := $(or $(TMPDIR),$(shell df -k /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000000 {print "/dev/shm"}'),/tmp)

# Keep the bytecode, whatever the environment says: tests start dozens of processes, which would each compile all modules.
test test-chaos test-browser coverage: export PYTHONDONTWRITEBYTECODE :=

test: setup clients
	$(PYTEST) $(QUICK) $(TESTS)

# Kills, broken stores and replicas.
test-chaos: setup
	$(PYTEST) -m chaos $(TESTS)

# Chromium, the demo, and the build of the widget. Only these folders have a browser: reading the others takes a while.
test-browser: setup clients
	$(PYTEST) -m browser tests/service tests/browser

# What `make test` reaches: lines and branches, of the services that it starts as well.
coverage: setup clients
	$(BIN)/coverage erase
	$(PYTEST) $(QUICK) --cov --cov-report=term $(TESTS)

# The npm packages that tests read our streams with. Where they cannot be had, those tests are skipped.
clients: setup
	$(BIN)/python -m tests.clients.install

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

serve: $(RUN)
	$(BIN)/opora serve

# Where traces are looked at; 850 MB in an environment of its own. Then: OPORA_PHOENIX_URL=http://127.0.0.1:6006 make serve
phoenix: $(PHOENIX)/.ready
	$(PHOENIX)/bin/python evaluation/phoenix_server.py

$(PHOENIX)/.ready: requirements/phoenix.txt $(BIN)/uv
	$(PYTHON) -m venv $(PHOENIX)
	VIRTUAL_ENV=$(PHOENIX) $(BIN)/uv pip sync --quiet --compile-bytecode --require-hashes requirements/phoenix.txt
	@touch $@

bench: setup
	-$(BIN)/python -m evaluation.benchmarks.speed
	$(BIN)/python -m evaluation.benchmarks.models

evaluate: $(RUN)
	$(BIN)/opora evaluate fixture

lock: setup
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header requirements/bootstrap.in -o requirements/bootstrap.txt
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header pyproject.toml -o requirements/run.txt
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --group dev pyproject.toml -o requirements/dev.txt
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header requirements/phoenix.in -o requirements/phoenix.txt
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --group docs -o requirements/docs.txt

# What is in the image, as CycloneDX, and which of it has a known weakness. Both fetch their program, the second asks PyPI's
# service too, so neither is part of `check`.
sbom: setup
	$(BIN)/uv tool run --from cyclonedx-bom==7.5.0 cyclonedx-py requirements --output-reproducible requirements/run.txt -o opora.cdx.json

audit: setup
	$(BIN)/uv tool run pip-audit==2.10.1 --require-hashes --disable-pip -r requirements/run.txt

clean:
	rm -rf $(VENV) $(PHOENIX) $(DOCS) site .opora
