# SPDX-License-Identifier: Apache-2.0
"""One example for each command, and the page of the documents about it: at the end of ``--help``, in the reference and
in the manual pages. Procedures have their examples in their own files."""

from __future__ import annotations

from dutperf import installation

EXAMPLES = {
    "trial": "--lab kernel-ipv6 --rate 20k --duration 5",
    "capture": "--lab kernel-ipv4 --seconds 5 --to arrived.pcapng",
    "replay": "traffic.pcap --lab kernel-ipv4 --speed 2 --loop 10",
    "script": "examples/scripts/load_latency.py --lab kernel-ipv4",
    "otg": "--lab kernel-ipv4",
    "set-rate": "results/by-hand 40k",
    "overload": "throughput frame-loss --lab kernel-ipv4 --flows 1000 --max-rate 20k --duration 0.5 --repetitions 2",
    "run": "plan.yaml --out results/plan",
    "plan": "check plan.yaml",
    "plan check": "plan.yaml",
    "plan split": "plan.yaml --into jobs",
    "resume": "results/gateway",
    "show": "results/gateway",
    "report": "results/gateway",
    "plot": "results/gateway --figure throughput --format pdf",
    "export": "results/gateway --format parquet --trials",
    "compare": "results/before results/after --format markdown",
    "store": "add results",
    "store add": "results/gateway results/older",
    "store list": "--dut tayga --procedure throughput --since 2026-11",
    "store rebuild": "",
    "trend": "--dut tayga --figure throughput_fps",
    "serve": "results --setups /etc/dutperf",
    "testbeds": "",
    "fleet": "init fleet --testbed rack-1 --testbed rack-2",
    "fleet init": "fleet --testbed rack-1 --testbed rack-2",
    "fleet submit": "fleet jobs/plan-64.yaml jobs/plan-128.yaml",
    "lab": "up tayga-siit",
    "lab list": "",
    "lab show": "refdut-ipv4",
    "lab up": "kernel-ipv4 --lab-option limit_fps=60000 --lab-option burst=1000",
    "lab down": "kernel-ipv4",
    "convert": "siitperf.conf > gateway.yaml",
    "ports": "--json",
    "ports bind": "0000:01:00.0 0000:01:00.1 --yes",
    "ports unbind": "0000:01:00.0 0000:01:00.1 --yes",
    "doctor": "--fix",
    "selftest": "--quick --only calibration --only throughput",
}
"""Arguments by the words of the command that is no procedure."""
PAGES = {
    "trial": "getting-started",
    "capture": "frames",
    "replay": "replay",
    "script": "scripts",
    "otg": "otg",
    "overload": "overload",
    "run": "plans",
    "plan": "plans",
    "resume": "getting-started",
    "show": "getting-started",
    "report": "getting-started",
    "plot": "getting-started",
    "export": "getting-started",
    "compare": "compare",
    "store": "store",
    "trend": "store",
    "serve": "serve",
    "testbeds": "testbeds",
    "fleet": "testbeds",
    "lab": "labs",
    "convert": "siitperf",
    "ports": "cards",
    "doctor": "cards",
    "selftest": "accuracy",
    "set-rate": "procedures",
    "dns64": "dns64",
    "recovery": "recovery-and-reset",
    "reset": "recovery-and-reset",
    "establishment-rate": "stateful",
    "table-capacity": "stateful",
    "teardown-rate": "stateful",
    "address-capacity": "switches",
    "address-learning-rate": "switches",
    "address-ageing": "switches",
    "broadcast": "switches",
}
"""Pages in ``docs/`` by the first word of a command; of other procedures: procedures."""


def epilog(command: str) -> str:
    """The end of a command's help; ``\\b``: Click keeps its lines, so that they can be copied."""
    return f"\b\nExample: {line(command)}\nMore: {page(command)}"


def page(command: str) -> str:
    """The document about the command, where this installation has it."""
    return installation.page(PAGES.get(command.split()[0], "procedures"))


def line(command: str) -> str:
    arguments = EXAMPLES[command] if command in EXAMPLES else _of_procedure(command)
    return f"dutperf {command} {arguments}".rstrip()


def _of_procedure(name: str) -> str:
    from dutperf import procedures  # imported late: commands start fast

    return procedures.find(name).example
