# SPDX-License-Identifier: Apache-2.0
"""The reference DUT's client and labs without any DUT: what is asked of it, and what becomes of its
answers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dutperf.dut.device import Device
from dutperf.dut.reference import ReferenceDevice
from dutperf.lab.refdut import Dns64Properties, NatProperties, Properties, RefDut, RefDutError
from dutperf.lab.reference import Dns64Options, NatOptions, Ports, ReferenceOptions, open_request, sides_of_tester
from dutperf.model import Direction
from dutperf.setup import configuration

QUANTILES = {"p50": 1.0, "p99": 2.0, "p999": 3.0, "max": 4.0}
DIRECTION = {
    **dict.fromkeys(("translated", "tunnelled", "reordered", "delayed", "corrupted"), 0),
    **dict.fromkeys(("delay_us", "lateness_us"), QUANTILES),
    "received": 10,
    "forwarded": 6,
    "held": 1,
    "lost": {"queue": 2, "random": 1},
    "duplicated": 1,
}
PORT = {"lost_before": 0, "lost_after": 0}
COUNTERS = {
    "event": "counters",
    "id": 1,
    "forward": DIRECTION,
    "reverse": DIRECTION,
    "left": PORT,
    "right": PORT,
    "checksums_computed": 0,
}

Serve = Callable[[dict[str, Any] | None], tuple[RefDut, list[dict[str, Any]]]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """A socket that gives one answer (none: hangs up) to one request, and what it was asked."""
    threads: list[threading.Thread] = []

    def one(answer: dict[str, Any] | None) -> tuple[RefDut, list[dict[str, Any]]]:
        asked: list[dict[str, Any]] = []
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(tmp_path / "socket"))
        listener.listen()

        def talk() -> None:
            with listener, listener.accept()[0] as client:
                asked.append(json.loads(client.makefile().readline()))
                if answer is not None:
                    client.sendall(json.dumps(answer).encode() + b"\n")

        threads.append(threading.Thread(target=talk))
        threads[-1].start()
        return RefDut(tmp_path / "socket", timeout_s=5), asked

    yield one
    for thread in threads:
        thread.join()


def test_counters_are_values(serve: Serve) -> None:
    dut, asked = serve(COUNTERS)
    truth = dut.counters()
    assert asked == [{"id": 1, "method": "counters"}]
    assert truth.forward.received == truth.forward.forwarded + truth.forward.lost_total + truth.forward.held


CONNECTIONS = {
    **dict.fromkeys(("refused", "untracked", "evicted", "expired", "deleted", "remapped"), 0),
    **dict.fromkeys(("created", "current", "highest"), 12),
}


def by_control(answering: RefDut) -> Device:
    """The connections of a DUT that a configuration names by its control socket."""
    sides = {
        side: {"port": "null", "version": 4, "ipv4": address}
        for side, address in (("left", "198.18.0.2/24"), ("right", "198.19.0.2/24"))
    }
    return ReferenceDevice(configuration.parse({**sides, "dut": {"control": str(answering.socket)}}, "test").dut)


def test_connections_of_a_nat_are_counted_by_its_socket(serve: Serve) -> None:
    answering, _ = serve(COUNTERS | {"connections": CONNECTIONS})
    assert by_control(answering).count_connections() == 12


def test_a_reference_dut_without_a_nat_has_no_count(serve: Serve) -> None:
    answering, _ = serve(COUNTERS)
    assert by_control(answering).count_connections() is None


def test_connections_of_a_nat_are_cleared_by_its_socket(serve: Serve) -> None:
    answering, asked = serve({"event": "done", "id": 1})
    assert by_control(answering).clear_connections() >= 0
    assert asked == [{"id": 1, "method": "clear_connections"}]


def test_a_reference_dut_without_a_nat_cannot_clear(serve: Serve) -> None:
    answering, _ = serve({"event": "error", "id": 1, "code": "no_nat", "message": "the DUT has no connections"})
    with pytest.raises(configuration.ConfigError, match=r"^dut\.control: .* rejects .*: the DUT has no connections$"):
        by_control(answering).clear_connections()


@pytest.mark.parametrize(("counted", "deletes"), [({"connections": CONNECTIONS}, True), ({}, False)])
def test_in_a_row_only_a_nat_is_asked_to_delete_connections(
    counted: dict[str, Any], deletes: bool, serve: Serve
) -> None:
    answering, _ = serve(COUNTERS | counted)
    assert by_control(answering).deletes_connections() == deletes


def test_what_its_ports_lost_is_its_loss(serve: Serve) -> None:
    answering, _ = serve(
        COUNTERS | {"left": {"lost_before": 7, "lost_after": 2}, "right": {"lost_before": 1, "lost_after": 5}}
    )
    lost = by_control(answering).losses()
    assert lost == {
        Direction.FORWARD: DIRECTION["lost"] | {"port_before": 7, "port_after": 5},
        Direction.REVERSE: DIRECTION["lost"] | {"port_before": 1, "port_after": 2},
    }


def test_options_of_a_nat_become_a_request() -> None:
    texts = {
        "connections": "1000",
        "when_full": "evict",
        "evict_count": "10",
        "timeout_s": "0.5",
        "establishment_cps": "5000",
        "establishment_queue": "0",
        "deletion_cps": "100",
        "ports": "preserve",
        "remap_every": "7",
        "remap_after_ms": "20",
        "pool_addresses": "2",
        "last_port": "2000",
        "loss_every": "9",
    }
    options = NatOptions.model_validate(texts)
    request = options.properties().request()
    assert request["nat"] == {
        "capacity": 1000,
        "when_full": "evict",
        "evict_count": 10,
        "timeout_ns": 500_000_000,
        "establishment_cps": 5000,
        "establishment_queue": 0,
        "deletion_cps": 100,
        "ports": "preserve",
        "remap_every": 7,
        "remap_after_ms": 20,
    }
    assert request["loss"]["every"] == 9
    opened = open_request("nat64", Ports("null", "null"), options)["nat"]
    assert opened == {
        "pool": ["198.19.254.129", "198.19.254.130"],
        "first_port": 1024,
        "last_port": 2000,
        "prefix": "2001:2:0:6464::/96",
    }
    assert "prefix" not in open_request("nat44", Ports("null", "null"), options)["nat"]


def test_a_nat_has_all_properties_of_the_reference_dut() -> None:
    assert NatProperties().request().keys() - Properties().request().keys() == {"nat"}


def test_options_of_a_dns64_become_a_request() -> None:
    texts = {"cache": "1000", "pending": "10", "servfail_every": "7", "wrong_id_every": "9", "capacity_fps": "5000"}
    options = Dns64Options.model_validate(texts)
    request = options.properties().request()
    wrong = {kind: every for kind, every in request["dns64"].pop("wrong").items() if every}
    assert (request["dns64"], wrong) == ({"cache_names": 1000, "pending": 10}, {"servfail": 7, "wrong_id": 9})
    assert request["capacity_fps"] == 5000


@pytest.mark.parametrize(("version", "server"), [("4", "198.19.0.2"), ("6", "2001:2:0:8000::2")])
def test_a_dns64_asks_the_testers_right_side_and_forwards_nothing(version: str, server: str) -> None:
    options = Dns64Options.model_validate({"server_version": version, "prefix": "2001:db8::/32"})
    request = open_request("dns64", Ports("null", "null"), options)
    assert request["dns64"] == {"server": server, "prefix": "2001:db8::/32"}
    assert (request["to_left"], request["to_right"]) == ({}, {})
    _, right = sides_of_tester("dns64")
    assert server in (right["ipv4"].partition("/")[0], right["ipv6"].partition("/")[0])


def test_a_dns64_has_all_properties_of_the_reference_dut() -> None:
    assert Dns64Properties().request().keys() - Properties().request().keys() == {"dns64"}


def test_what_a_dns64_counted_is_a_value(serve: Serve) -> None:
    counts = {
        "queries", "answered", "cache_hits", "synthesised", "existing", "retries", "timed_out", "unsent", "unexpected",
        "malformed", "unsupported", "pending", "pending_full", "cached", "evicted",
    }  # fmt: skip
    dns64 = {**dict.fromkeys(counts, 3), "upstream": {"a": 4, "aaaa": 5}, "wrong": {"servfail": 6}}
    dut, _ = serve(COUNTERS | {"dns64": dns64})
    truth = dut.counters().dns64
    assert truth is not None
    assert truth.model_dump() == dns64


@pytest.mark.parametrize("method", ["stall", "reset"])
def test_a_disturbance_is_asked_for_in_nanoseconds(serve: Serve, method: str) -> None:
    dut, asked = serve({"event": "done", "id": 1})
    getattr(dut, method)(0.25, after_s=1.5)
    assert asked == [{"id": 1, "method": method, "params": {"duration_ns": 250_000_000, "after_ns": 1_500_000_000}}]


def test_a_refusal_is_one_sentence(serve: Serve) -> None:
    dut, _ = serve({"event": "error", "id": 1, "code": "not_open", "message": "no ports are open yet"})
    with pytest.raises(RefDutError, match="rejects clear: no ports are open yet"):
        dut.clear()


def test_a_dut_that_hangs_up_or_is_not_there_is_said(serve: Serve, tmp_path: Path) -> None:
    dut, _ = serve(None)
    with pytest.raises(RefDutError, match="does not answer clear"):
        dut.clear()
    with pytest.raises(RefDutError, match="does not answer counters"):
        RefDut(tmp_path / "nothing").counters()


def test_options_are_text_and_become_a_request() -> None:
    texts = {
        "capacity_fps": "20000",
        "queue": "100",
        "delay_ms": "0.5",
        "jitter": "normal",
        "jitter_ms": "0.1",
        "loss": "0.001",
        "bit_error_every": "7",
    }
    request = ReferenceOptions.model_validate(texts).properties().request()
    assert (request["capacity_fps"], request["queue_frames"], request["delay_ns"]) == (20_000, 100, 500_000)
    assert request["jitter"] == {"kind": "normal", "ns": 100_000}
    assert (request["loss"], request["bit_error"]) == (
        {"ratio_ppb": 1_000_000, "every": 0},
        {"ratio_ppb": 0, "every": 7},
    )


def test_without_options_it_does_nothing_to_frames() -> None:
    request = Properties().request()
    assert all(request[name] == {"ratio_ppb": 0, "every": 0} for name in ("loss", "duplicate", "reorder", "bit_error"))
    assert (request["capacity_fps"], request["delay_ns"], request["extra_delay"]["every"]) == (0, 0, 0)


@pytest.mark.parametrize("wrong", [{"loss": 1.1}, {"cores": 0}, {"delay_ms": -1}, {"speed": 1}])
def test_what_it_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Properties(**wrong)


@pytest.mark.parametrize("kind", ["siit", "ipv4", "ipv6", "nat44", "nat64", "dns64"])
def test_both_ends_of_the_cables_know_each_other(kind: Any) -> None:
    of_kind = {"nat44": NatOptions, "nat64": NatOptions, "dns64": Dns64Options}
    options = of_kind.get(kind, ReferenceOptions)()
    left, right = sides_of_tester(kind)
    setup = configuration.parse(
        {"left": {"port": "af_packet:tl", **left}, "right": {"port": "af_packet:tr", **right}}, origin="test"
    )
    request = open_request(kind, Ports("null", "null"), options)
    for side, name in ((setup.left, "left"), (setup.right, "right")):
        for version in (4, 6):
            own = side.address(version)
            assert (own and str(own.ip)) == request[name].get(f"gateway{version}")
            gateway = side.gateway(version)
            assert (gateway and str(gateway)) == request[name].get(f"ipv{version}")
    assert ("translator" in request) == (kind == "siit")
    assert ("nat" in request) == kind.startswith("nat")
    assert ("dns64" in request) == (kind == "dns64")
