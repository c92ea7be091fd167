# make run: the window with the node inside. make test: the whole suite. Both set up what they need.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do command -v $$p && break; done)
BIN := .venv/bin

# make torch: what the PyTorch engine's tests need (several GB on Linux); they skip without it.

.PHONY: run serve demo setup dev torch test lint format schema translations pictures package package-test clean

run: setup
	$(BIN)/laya-desktop $(CONFIG)

serve: setup
	$(BIN)/laya-desktop serve $(or $(CONFIG),configs/demo.yaml)

demo: setup
	$(BIN)/laya-desktop demo --exit-after-reply

setup:
	@$(PYTHON) packaging/bootstrap.py

dev:
	@$(PYTHON) packaging/bootstrap.py --dev

torch: dev
	$(BIN)/python -m pip install -q -e '.[dev,dev-torch]'

test: dev
	QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest $(ARGS)

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

schema: dev
	$(BIN)/python -m laya_desktop.config.json_schema

translations: dev
	$(BIN)/python packaging/translations.py

pictures: dev
	QT_QPA_PLATFORM=offscreen $(BIN)/python docs/screenshots.py

package:
	$(PYTHON) packaging/package.py app
	if command -v dpkg-deb > /dev/null; then $(PYTHON) packaging/package.py deb; fi

package-test:
	$(PYTHON) packaging/package.py test

clean:
	rm -rf .venv build dist artifacts .mypy_cache .ruff_cache .hypothesis
