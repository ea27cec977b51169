PYTHON ?= python3
VENV ?= .venv
PIP = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint site pictures bench faults validity peers-validity tightness monte-carlo dist oldest fuzz clean

demo: $(VENV)/.torch
	$(VENV)/bin/tightaudit demo

test: lint
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest --quiet --numprocesses auto --dist loadgroup

lint: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

site: $(VENV)/.dev
	rm -rf site
	$(VENV)/bin/python -m sphinx --fail-on-warning --keep-going --quiet --fresh-env --doctree-dir $(VENV)/doctrees docs site

validity: $(VENV)/.dev
	$(VENV)/bin/python benchmarks/validity.py docs

peers-validity: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(VENV)/bin/python benchmarks/peers_validity.py docs

tightness: $(VENV)/.dev
	$(VENV)/bin/python benchmarks/rank_weights.py docs
	$(VENV)/bin/python benchmarks/tightness.py docs

monte-carlo: $(VENV)/.dev
	TIGHTAUDIT_DRAWS=1000000 $(VENV)/bin/python -m pytest --quiet tests/methods/test_rank_weighted.py -k simulated

fuzz: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m tests.fuzz

pictures: $(VENV)/.dev
	PYTHONPATH=. $(VENV)/bin/python benchmarks/pictures.py docs

dist: $(VENV)/.dev
	rm -rf dist
	$(VENV)/bin/python -m build --outdir dist .
	for built in dist/*.whl dist/*.tar.gz; do \
		rm -rf $(VENV)/empty && $(PYTHON) -m venv $(VENV)/empty && \
		$(VENV)/empty/bin/python -m pip install --quiet --disable-pip-version-check $$built && \
		(cd / && $(CURDIR)/$(VENV)/empty/bin/python $(CURDIR)/tests/smoke.py) || exit 1; \
	done

oldest:
	rm -rf $(VENV)-oldest
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-oldest.txt '.[accounting]' hypothesis mpmath pytest
	(cd / && $(CURDIR)/$(VENV)-oldest/bin/python $(CURDIR)/tests/smoke.py)
	$(VENV)-oldest/bin/python -m pytest --quiet tests/bounds tests/claims tests/methods tests/reference

bench: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(VENV)/bin/python benchmarks/core.py
	OMP_NUM_THREADS=1 $(VENV)/bin/python benchmarks/audit.py
	$(VENV)/bin/python benchmarks/peers.py docs

faults: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(VENV)/bin/python benchmarks/faults.py

clean:
	rm -rf $(VENV) $(VENV)-oldest dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "installing tightaudit into $(VENV)"
	$(PIP) --editable .
	@touch $@

$(VENV)/.torch: $(VENV)/.core
	@echo "installing PyTorch and Opacus into $(VENV)"
	$(PIP) --editable '.[torch]'
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	@echo "installing what the tests need into $(VENV)"
	$(PIP) --editable '.[dev]'
	@touch $@
