# Every target makes its virtual environment by itself; the second time it takes a moment.
# PYTHON=/path/to/python3.12 chooses the interpreter, PYTEST="-k name" narrows the tests.

.PHONY: demo test test-clients up down doctor hook plugin lint bench lock clean venv

PYTEST ?=
PYTEST_WORKERS ?= auto
RUN = .venv/bin/python manage.py

demo: venv  ## the bundled sessions through the whole pipeline, then where to look
	@$(RUN) demo

test: venv  ## all tests, on a PostgreSQL of their own
	@.venv/bin/python -m pytest -q -n $(PYTEST_WORKERS) --dist loadfile \
	    --no-loadscope-reorder $(PYTEST)

test-clients: venv  ## the same hooks in the real clients, fetched from npm into .clients (needs node)
	@mkdir -p .clients && cp tests/realclients/package.json .clients/
	@cd .clients && npm install --no-audit --no-fund --silent
	@cd .clients/node_modules/@anthropic-ai/claude-code && node install.cjs
	@CLIENT_BIN=.clients/node_modules/.bin .venv/bin/python -m pytest -q -n 2 --dist load \
	    tests/realclients $(PYTEST)

hook: venv  ## the client as one file: build/argus-hook.pyz
	@.venv/bin/python -m argus.hook.bundle build/argus-hook.pyz

plugin: venv  ## the client as a plugin of Claude Code: build/argus-plugin
	@.venv/bin/python -m argus.plugin build/argus-plugin

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
	rm -rf .venv .clients build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

venv:
	@.ci/venv
