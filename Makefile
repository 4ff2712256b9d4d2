# Every target makes its virtual environment by itself; the second time it takes a moment.
# PYTHON=/path/to/python3.12 chooses the interpreter, PYTEST="-k name" narrows the tests.

.PHONY: demo test up down doctor lint bench lock clean venv

PYTEST ?=
PYTEST_WORKERS ?= auto
RUN = .venv/bin/python manage.py

demo: venv  ## the bundled sessions through the whole pipeline, then where to look
	@$(RUN) demo

test: venv  ## all tests, on a PostgreSQL of their own
	@.venv/bin/python -m pytest -q -n $(PYTEST_WORKERS) --dist loadfile $(PYTEST)

up: venv  ## web, worker and database in the foreground; Ctrl-C stops them
	@exec $(RUN) up

down: venv  ## stop the embedded database
	@$(RUN) down

doctor: venv  ## is it working?
	@$(RUN) doctor

lint: venv
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/lint-imports
	@.venv/bin/mypy
	@DJANGO_SETTINGS_MODULE=tests.settings $(RUN) makemigrations --check --dry-run

bench: venv  ## ratios to a bare floor, measured in the same run
	@.venv/bin/python -m tests.bench

lock: venv  ## requirements.lock anew from pyproject.toml
	@.venv/bin/pip-compile --quiet --upgrade --generate-hashes --extra dev --strip-extras \
	    --allow-unsafe --no-header --no-emit-index-url --no-emit-trusted-host \
	    --no-emit-find-links -o requirements.lock pyproject.toml

clean:  ## what `make` made; never anybody's data
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

venv:
	@.ci/venv
