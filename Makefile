# SPDX-License-Identifier: Apache-2.0
# Thin on purpose: each target is a few commands. CI calls `make check test`.

VENV := .venv/bin
DEMO := results/demo

COUNT := 1

.PHONY: docs man help setup setup-dev build demo example test cards test-report truth faults accuracy bench bench-memory check format clean
.NOTPARALLEL:

help:
	@echo "make demo    install what is missing, build, and measure TAYGA, a real NAT64 gateway, into $(DEMO)/"
	@echo "make test    every test but the long ones below (root: they build network namespaces)"
	@echo "make example   why throughput needs a frame timeout and a loss tolerance: beside downloads through the same router, about two minutes"
	@echo "make truth   the tests that measure a known truth at full length, about half an hour"
	@echo "make cards   the engine on every network card that QEMU emulates, and what such cards suffer, under ten minutes"
	@echo "make test-report   reports in Chromium, at three widths, light and dark"
	@echo "make accuracy   what this tester measures of a DUT whose truth is known, as a table, into results/accuracy.md"
	@echo "make faults  harms the tester while it measures: nothing may be blamed on the DUT; COUNT=10 for ten times in a row"
	@echo "make bench   how fast one core sends and receives, against dpdk-testpmd in the same run, into bench.json; what each step costs"
	@echo "make bench-memory   the engine's memory in a PDV trial of a million frames, and of sixty million"
	@echo "make docs    the documentation, to be read offline, into build/site;   make man   manual pages, into build/man"
	@echo "make check   style, types, dependencies between modules"
	@echo "make build   the engine;   make setup   what it needs;   make format   in the house's style;   make clean"

setup:
	@scripts/setup

setup-dev:
	@scripts/setup dev

build: setup
	@scripts/build

demo: build
	rm -rf $(DEMO)
	$(VENV)/dutperf throughput --lab tayga-siit --frame-size 84 --initial-rate 8000 --resolution 1% \
		--duration 1.5 --drain 0.3 --repetitions 3 --out $(DEMO)

example: build
	rm -rf results/gaming-rfc2544
	$(VENV)/python examples/gaming-rfc2544/run.py --out results/gaming-rfc2544

test: setup-dev
	@scripts/build cards
	meson test -C build --print-errorlogs
	$(VENV)/python -m pytest --numprocesses auto tests/unit
	$(VENV)/python -m pytest --ignore tests/unit

cards:
	@scripts/setup cards
	@scripts/build cards
	$(VENV)/python -m pytest --numprocesses 2 --dist loadgroup tests/cards -m "cards or not cards"

test-report:
	@scripts/setup browser
	$(VENV)/python -m pytest -m browser

truth: setup-dev
	@scripts/build
	$(VENV)/python -m pytest -m truth

accuracy: build
	$(VENV)/dutperf selftest --markdown results/accuracy.md

faults: setup-dev
	@scripts/build
	set -e; for run in $$(seq $(COUNT)); do $(VENV)/python -m pytest tests/faults -m "faults or not faults"; done

docs: setup-dev
	NO_MKDOCS_2_WARNING=1 $(VENV)/python -m mkdocs build --quiet --strict
	@echo "the pages begin with build/site/index.html; to search in them: $(VENV)/python -m http.server --bind 127.0.0.1 --directory build/site"

man: setup
	$(VENV)/python -m dutperf.cli.reference build/man

bench: setup
	@scripts/setup bench
	@scripts/build
	$(VENV)/python benchmarks/speed.py
	build/engine/engine-bench
	$(VENV)/python benchmarks/instructions.py

bench-memory: build
	$(VENV)/python benchmarks/pdv_memory.py

check: setup-dev
	@scripts/build
	@scripts/check

format: setup-dev
	$(VENV)/python scripts/typed_parameters
	$(VENV)/ruff check --fix
	$(VENV)/ruff format
	git ls-files -co --exclude-standard 'engine/*.cpp' 'engine/*.hpp' | xargs --no-run-if-empty clang-format -i

clean:
	rm -rf build .venv results .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
