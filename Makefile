# Everything a newcomer needs: `make demo` and `make test` set up what they use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PHOENIX := .venv-phoenix

.PHONY: setup demo test clients test-inside test-service check serve phoenix bench evaluate lock clean

setup: $(READY)

$(READY): requirements/bootstrap.txt requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/bootstrap.txt
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip sync --quiet --compile-bytecode --require-hashes requirements/dev.txt
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup
	$(BIN)/opora demo

# In two processes, for the two cores that the smallest machine has. In memory where 4 GB are free there: a third of
# the time goes by while hundreds of small databases are forced to the disk.
test: setup clients
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target --keep-going test-inside test-service

test-inside test-service: export TMPDIR := $(or $(TMPDIR),$(shell df -k /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000000 {print "/dev/shm"}'),/tmp)

# The npm packages that tests read our streams with. Where they cannot be had, those tests are skipped.
clients: setup
	$(BIN)/python -m tests.clients.install

test-inside:
	$(BIN)/python -m pytest tests/unit --ignore=tests/unit/evaluation

test-service:
	$(BIN)/python -m pytest tests/contract tests/service tests/unit/evaluation

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

serve: setup
	$(BIN)/opora serve

# Where traces are looked at; 850 MB in an environment of its own. Then: OPORA_PHOENIX_URL=http://127.0.0.1:6006 make serve
phoenix: $(PHOENIX)/.ready
	$(PHOENIX)/bin/python evaluation/phoenix_server.py

$(PHOENIX)/.ready: requirements/phoenix.txt | $(READY)
	$(PYTHON) -m venv $(PHOENIX)
	VIRTUAL_ENV=$(PHOENIX) $(BIN)/uv pip sync --quiet --compile-bytecode --require-hashes requirements/phoenix.txt
	@touch $@

bench: setup
	$(BIN)/python -m evaluation.bench.speed
	$(BIN)/python -m evaluation.bench.models

evaluate: setup
	$(BIN)/opora evaluate fixture

lock: setup
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header requirements/bootstrap.in -o requirements/bootstrap.txt
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header pyproject.toml -o requirements/run.txt
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --extra vectors pyproject.toml -o requirements/run-vectors.txt
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --group dev --extra vectors pyproject.toml -o requirements/dev.txt
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header requirements/phoenix.in -o requirements/phoenix.txt

clean:
	rm -rf $(VENV) $(PHOENIX) .opora
