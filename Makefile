# SPDX-License-Identifier: Apache-2.0
# Each target is a few commands; the logic is in scripts/. CI calls `make check test`.

VENV := .venv/bin
DEMO := results/demo

COUNT := 1
SECONDS := 60
CORES := 1
RELEASE := bookworm
PYTEST := scripts/own_session $(VENV)/python -m pytest
# Tests start the command some hundred times. Where this is set, as in many containers, each start compiles the package.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: fuzz fuzz-protocol fuzz-serve deb deb-test wheel wheel-test container arm64 docs man help setup setup-dev build demo example dns64-example transition scalability forwarders accuracy-study test test-long cards test-report truth faults accuracy spacing bench bench-memory check format clean
.NOTPARALLEL:

help:
	@echo "make demo          install what is missing, build, and measure TAYGA, a NAT64 gateway, into $(DEMO)/; then build the reference DUT"
	@echo "make build         build the engine"
	@echo "make setup         install the packages to build and run"
	@echo "make test          all tests except the long ones below (as root: they create network namespaces)"
	@echo "make test-long     statistical tests, shortened examples and whole searches, about twenty minutes"
	@echo "make truth         measure a known truth at full length, about an hour"
	@echo "make cards         run the engine on every network card that QEMU emulates, with faults, and the labs in QEMU, about a quarter of an hour"
	@echo "make faults        inject faults into the tester while it measures: no trial may blame the DUT; COUNT=10 repeats it ten times"
	@echo "make fuzz          frames of any shape for the receiver, under sanitizers; SECONDS=3600 for an hour"
	@echo "make fuzz-protocol requests of any shape for the engine, under sanitizers; SECONDS=1800 for half an hour"
	@echo "make fuzz-serve    requests of any shape for dutperf serve; SECONDS=1800 for half an hour"
	@echo "make test-report   test reports in Chromium, at three widths, light and dark"
	@echo "make accuracy      compare results with the known truth of a reference DUT, as a table, into results/accuracy.md"
	@echo "make spacing       measure the gaps between frames with both kinds of pacing, on the fake card of the tests, into results/spacing"
	@echo "make example       show why throughput needs a frame timeout and a loss ratio goal, with downloads through the same router, about two minutes"
	@echo "make forwarders    compare bridging, routing, Open vSwitch, testpmd and TAYGA, in under 20 minutes, into results/forwarders"
	@echo "make dns64-example compare Unbound, BIND, Knot Resolver and PowerDNS as DNS64 servers, in under 20 minutes, into results/dns64"
	@echo "make transition    compare transition technologies, both devices in a row and one alone, in under 20 minutes, into results/transition"
	@echo "make accuracy-study   how far a throughput depends on ports, networks and the tester: 20 repetitions of each, about 10 minutes"
	@echo "make scalability   measure a stateful gateway over its connections and CORES=$(CORES) (1,2,4), about ten minutes for each"
	@echo "make bench         measure how fast one core sends and receives, against dpdk-testpmd, DNS queries against dnsperf, what connections cost, and each step, into bench.json"
	@echo "make bench-memory  measure the engine's memory in PDV trials of one million and of sixty million frames"
	@echo "make deb           build Debian packages for RELEASE=$(RELEASE) in a clean chroot, into build/deb"
	@echo "make deb-test      install, use, upgrade and purge them in a clean chroot of RELEASE=$(RELEASE)"
	@echo "make wheel         build a Python wheel with the engine inside, into build/wheel"
	@echo "make wheel-test    measure with the wheel in fresh virtual environments"
	@echo "make container     build a container image from the packages (podman)"
	@echo "make arm64         build the engine for arm64 and run its unit tests under emulation"
	@echo "make docs          build the documentation for offline reading, into build/site"
	@echo "make man           build the manual pages, into build/man"
	@echo "make check         check style, types and dependencies between modules"
	@echo "make format        format the sources"
	@echo "make clean         remove everything that was built or installed here"

setup:
	@scripts/setup

setup-dev:
	@scripts/setup dev

build: setup
	@scripts/build

demo:
	@scripts/setup demo
	@scripts/build demo
	rm -rf $(DEMO)
	$(VENV)/dutperf throughput --lab tayga-siit --frame-size 84 --initial-rate 10k --resolution 5% \
		--duration 0.5 --drain 0.2 --repetitions 3 --out $(DEMO)
	@scripts/build programs

example: build
	rm -rf results/gaming-rfc2544
	$(VENV)/python examples/gaming-rfc2544/run.py --out results/gaming-rfc2544

forwarders: setup-dev
	@scripts/build
	$(VENV)/python examples/forwarders/run.py

dns64-example: build
	rm -rf results/dns64
	$(VENV)/python examples/dns64/run.py --out results/dns64

transition: build
	rm -rf results/transition
	$(VENV)/python examples/transition/run.py --out results/transition

accuracy-study: build
	$(VENV)/python examples/accuracy-study/run.py

scalability: build
	$(VENV)/python examples/stateful-scalability/run.py --cores $(CORES)

test: setup-dev
	@scripts/build
	meson test -C build --print-errorlogs
	@failed=0; \
	$(PYTEST) --part beside --numprocesses auto || failed=1; \
	$(PYTEST) --part alone || failed=1; \
	exit $$failed

test-long: setup-dev
	@scripts/build
	$(PYTEST) -m long

cards:
	@scripts/setup cards
	@scripts/build cards
	$(PYTEST) --numprocesses 2 --dist loadgroup tests/cards tests/integration/test_guests.py tests/integration/test_tunnels.py -m "cards or not cards"

fuzz: setup
	@scripts/fuzz $(SECONDS)

fuzz-protocol: setup-dev
	$(VENV)/python scripts/fuzz_protocol $(SECONDS)

fuzz-serve: setup-dev
	$(VENV)/python scripts/fuzz_serve $(SECONDS)

test-report:
	@scripts/setup browser
	$(PYTEST) -m browser

truth: setup-dev
	@scripts/build
	$(PYTEST) -m truth

accuracy: build
	$(VENV)/dutperf selftest --markdown results/accuracy.md

faults: setup-dev
	@scripts/build
	set -e; for run in $$(seq $(COUNT)); do $(PYTEST) tests/faults -m "faults or not faults"; done

deb:
	@scripts/deb $(RELEASE)

deb-test:
	@scripts/check_deb $(RELEASE)

wheel: setup
	@scripts/wheel

wheel-test:
	@scripts/check_wheel

container:
	@scripts/container

arm64:
	@scripts/arm64

docs: setup-dev
	NO_MKDOCS_2_WARNING=1 $(VENV)/python -m mkdocs build --quiet --strict
	@echo "open build/site/index.html; for the search: $(VENV)/python -m http.server --bind 127.0.0.1 --directory build/site"

man: setup
	$(VENV)/python -m dutperf.cli.reference build/man

bench: setup
	@scripts/setup bench
	@scripts/build
	$(VENV)/python benchmarks/speed.py
	$(VENV)/python benchmarks/queries.py
	$(VENV)/python benchmarks/preparation.py
	build/engine/engine-bench
	$(VENV)/python benchmarks/instructions.py

spacing: build setup-dev
	$(VENV)/python benchmarks/spacing.py --out results/spacing

bench-memory: build
	$(VENV)/python benchmarks/pdv_memory.py

check: setup-dev
	@scripts/build
	@scripts/check

format: setup-dev
	$(VENV)/python scripts/command_index
	$(VENV)/ruff check --fix
	$(VENV)/ruff format
	git ls-files -co --exclude-standard 'engine/*.cpp' 'engine/*.hpp' | xargs --no-run-if-empty clang-format -i

clean:
	rm -rf build .venv results .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
