# SPDX-License-Identifier: Apache-2.0
"""One example for each command: at the end of ``--help``, in the reference and in the manual pages."""

from __future__ import annotations

EXAMPLES = {
    "trial": "--lab kernel-ipv6 --rate 20k --duration 5",
    "throughput": "--lab tayga-siit --frame-size 84,128,1518 --duration 5 --repetitions 5 --out results/gateway",
    "frame-loss": "--config gateway.yaml --rates 10k,20k,50% --out results/loss",
    "back-to-back": "--config gateway.yaml --throughput-from results/gateway --frame-size 84 --max-burst 2",
    "latency": "--config gateway.yaml --throughput-from results/gateway --frame-size 84,128,1518",
    "pdv": "--lab tayga-siit --rate 5k --duration 10 --repetitions 5",
    "ipdv": "--lab tayga-siit --rate 5k --duration 10 --repetitions 5",
    "recovery": (
        "--lab kernel-ipv4 --lab-option limit_fps=10000 --directions forward --rate 10k --overload 5 --duration 10"
    ),
    "reset": "--lab tayga-siit --rate 5k --duration 10 --reset-after 3",
    "capture": "--lab kernel-ipv4 --seconds 5 --to arrived.pcapng",
    "replay": "traffic.pcap --lab kernel-ipv4 --speed 2 --loop 10",
    "script": "examples/scripts/load_latency.py --lab kernel-ipv4",
    "load-latency": "--lab kernel-ipv4 --rate 20k --loads 0,10,50,90,100,120 --duration 10 --pattern poisson",
    "soak": "--lab kernel-ipv4 --rate 10k --duration 5 --for 60 --target 0.2",
    "traffic": "--lab kernel-ipv4 --rate 20k --duration 30 --out results/by-hand",
    "set-rate": "results/by-hand 40k",
    "ramp": "--lab kernel-ipv4 --lab-option limit_fps=10000 --from 1k --to 20k --over 20 --directions forward",
    "establishment-rate": "--lab nft-nat44 --connections 20000 --initial-rate 20k --resolution 5%",
    "table-capacity": "--lab refdut-nat44 --lab-option connections=5000 --initial-rate 20k --resolution 50%",
    "teardown-rate": "--lab nft-nat44 --connections 20000,40000 --repetitions 5",
    "address-capacity": "--lab linux-bridge --lab-option ports=3 --lab-option addresses=1000 --learning-rate 5k",
    "address-learning-rate": "--lab linux-bridge --lab-option ports=3 --addresses 2000 --max-rate 50k",
    "address-ageing": "--lab linux-bridge --lab-option ports=3 --lab-option ageing_s=5 --duration 10",
    "broadcast": "--lab linux-bridge --lab-option ports=4 --max-rate 20k --duration 5 --repetitions 3",
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
    "fleet init": "fleet --testbed rack-1 --testbed rack-2 --master tester.example",
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
"""Arguments by the words of the command."""


def epilog(command: str) -> str:
    """The end of a command's help."""
    return f"Example: {line(command)}"


def line(command: str) -> str:
    """The whole command line of the example."""
    return f"dutperf {command} {EXAMPLES[command]}".rstrip()
