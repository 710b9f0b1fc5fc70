# SPDX-License-Identifier: Apache-2.0
"""``dutperf convert``: siitperf's file as ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dutperf.cli import app
from dutperf.setup import configuration
from dutperf.setup.conditions import Foreground, Usual
from dutperf.setup.ports import open_request
from dutperf.siitperf import convert, setup
from dutperf.siitperf.configuration import InputError, parse
from plans import make_trial
from siitperf_files import ENUMERATED, MACS, ROUTER, TRANSLATOR, with_lines
from siitperf_plans import VETHS, WITH_CORES, plan

SAMPLE = (
    MACS
    + """\
IP-L-Vers 6 # Left Sender's IP version for foreground traffic
IP-R-Vers 4 # Right Sender's IP version for foreground traffic
IPv6-L-Real 2001:2:0:0::2
IPv6-L-Virt :: # currently not used
IPv6-R-Real 2001:2:0:8000::2
IPv6-R-Virt 2001:2:0:1000::2
IPv4-L-Real 0.0.0.0 # currently unused
IPv4-L-Virt 198.18.0.2
IPv4-R-Real 198.19.0.2
IPv4-R-Virt 0.0.0.0 # currently unused
Forward 1
Reverse 1
Promisc 0
Num-L-Nets 1
Num-R-Nets 1
MEM-Channels 2
"""
)
"""As siitperf's README shows it."""
NAT44 = with_lines(
    SAMPLE,
    "IP-L-Vers 4",
    "IPv4-L-Real 198.18.0.2",
    "IPv6-L-Real ::",
    "IPv6-R-Real ::",
    "IPv4-L-Virt 0.0.0.0",
    "IPv6-R-Virt ::",
    "Stateful 1",
    "Responder-ports 3",
    *ENUMERATED["Fwd"],
)
NAT64 = with_lines(NAT44, "IP-L-Vers 6", "IPv4-L-Real 0.0.0.0", "IPv6-L-Real 2001:2::2", "IPv6-R-Virt 64:ff9b::c613:2")
VARYING = "IP-R-var 2\nIP-R-min 5\nIP-R-max 0xff\nIPv4-R-offset 1\nIPv6-R-offset 8\n"
CONVERTED: list[tuple[str, str, str]] = [
    ("translator", TRANSLATOR, "84 1000 1 100 2 2"),
    ("translator with MAC addresses and background", TRANSLATOR + MACS, "84 1000 1 100 10 9"),
    ("router", ROUTER, "84 1000 1 100 2 2"),
    ("router with background", ROUTER + MACS, "84 1000 1 100 2 1"),
    (
        "all ports otherwise",
        TRANSLATOR + "Fwd-sport-min 5\nRev-sport-max 6000\nFwd-dport-max 7\nNum-L-Nets 3\nNum-R-Nets 256\n",
        "84 1000 1 100 2 2",
    ),
    ("varying addresses", TRANSLATOR + VARYING, "84 1000 1 100 2 2"),
    ("one direction", TRANSLATOR + "Forward 0\n", "84 1000 1 100 2 2"),
    ("siitperf's sample", SAMPLE, "84 1000 1 100 2 2"),
    ("siitperf's sample with background", SAMPLE, "84 1000 1 100 2 1"),
    ("one direction of the sample", with_lines(SAMPLE, "Reverse 0", "IPv4-L-Virt 0.0.0.0"), "84 1000 1 100 2 2"),
]


@pytest.mark.parametrize(("text", "words"), [row[1:] for row in CONVERTED], ids=[row[0] for row in CONVERTED])
def test_a_converted_file_is_the_same_trial(text: str, words: str) -> None:
    settings = parse(text)
    planned = plan(words=words, settings=settings)
    ours = configuration.parse_yaml(convert.text(settings, VETHS), "converted")
    size, rate, duration, timeout, n, m = map(int, words.split())
    chosen = Usual(
        duration_s=duration,
        drain_s=timeout / 1000,
        foreground=Foreground(n=n, m=m),
        learning_rest_s=2,
        seed=7,
        directions=setup.directions(settings),
    )
    ipv4_alone = settings["IP-L-Vers"] == 4 and n == m
    assert make_trial(ours, chosen, size - 20 if ipv4_alone else size, rate, 1) == planned.trial
    assert open_request(ours, 1518) == open_request(planned.setup, 1518)


@pytest.mark.parametrize("sample", [NAT44, NAT64, with_lines(NAT44, "Forward 0", "Reverse 0")])
def test_stateful_samples_with_placeholders_are_the_same_connections(sample: str) -> None:
    settings = parse(sample)
    planned = plan(words="84 1000 1 100 2 2 1000 1000 1000 100 2000", settings=settings)
    ours = configuration.parse_yaml(convert.text(settings, VETHS), "converted")
    assert ours.stateful == planned.setup.stateful
    assert ours.sides() == planned.setup.sides()


def test_what_the_next_command_would_refuse_is_not_written() -> None:
    with pytest.raises(InputError, match=r"IPv4-R-Real: 198\.19\.0\.2 is already the address of left"):
        convert.text(parse(with_lines(ROUTER, "IPv4-L-Real 198.19.0.2")), replace(VETHS, ports=None))
    with pytest.raises(InputError, match=r"IPvx-L-Virt: 127\.0\.0\.1 is a loopback address"):
        convert.text(parse(with_lines(SAMPLE, "IPv4-L-Virt 127.0.0.1")), VETHS)


def test_what_has_no_counterpart_stands_in_a_comment() -> None:
    every = "Promisc 0\nMEM-Channels 2\nStateful 0\nEnumerate-ports 1\nEnumerate-ips 2\nResponder-tuples 3\n"
    unused = "IPv4-R-Virt 198.19.0.9\nIP-L-min 1\nIPv6-L-offset 6\nReverse 0\nFwd-var-sport 0\nFwd-sport-min 5000\n"
    text = convert.text(parse(with_lines(TRANSLATOR, *(every + unused).splitlines())), WITH_CORES)
    comments = [line for line in text.splitlines() if line.startswith("#")]
    for words in (
        "Promisc 0 has",
        "MEM-Channels 2 has",
        "Stateful 0 has",
        "Enumerate-ports 1 has",
        "Enumerate-ips 2 has",
        "Responder-tuples 3 has",
        "--directions forward",
    ):
        assert any(words in line for line in comments), words
    [left_out] = [line for line in comments if "without effect" in line]
    for key in (
        "IPv4-R-Virt 198.19.0.9",
        "IP-L-min 1",
        "IPv6-L-offset 6",
        "Fwd-sport-min 5000",
        "CPU-R-Send 6",
        "CPU-L-Recv 8",
    ):
        assert key in left_out
    assert configuration.parse_yaml(text, "converted").engine.cores == (2, 4)


def test_ports_that_are_not_known_are_left_to_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup.pci, "dpdk_ports", list)
    text = convert.text(parse(TRANSLATOR), replace(VETHS, ports=None))
    assert "# left.port and right.port are missing" in text
    with pytest.raises(configuration.ConfigError, match=r"left.port: is missing"):
        configuration.parse_yaml(text, "converted")


def test_the_command_converts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUTPERF_PORTS", "ring,ring")
    file = tmp_path / "siitperf.conf"
    file.write_text(TRANSLATOR)
    done = CliRunner().invoke(app, ["convert", str(file)])
    assert done.exit_code == 0
    assert configuration.parse_yaml(done.stdout, "converted").left.port == "ring"
    file.write_text("Forwards 1\n")
    refused = CliRunner().invoke(app, ["convert", str(file)])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"{file}, line 1: cannot be read: 'Forwards 1'" in refused.stderr


def test_ports_that_decide_the_ranges_of_a_stateful_test_are_not_left_out() -> None:
    """Where nothing is enumerated; where ports are, their order is another key's."""
    random = ("Enumerate-ports 0", "Fwd-var-sport 3", "Fwd-var-dport 3")
    assert "Fwd-var-sport" not in convert.text(parse(with_lines(NAT44, *random)), VETHS)
    enumerated = convert.text(parse(with_lines(NAT44, "Fwd-var-sport 3")), VETHS)
    assert "without effect in the file: " in enumerated
    assert "Fwd-var-sport 3" in enumerated
