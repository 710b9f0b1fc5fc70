# SPDX-License-Identifier: Apache-2.0
"""An OTG server as the tester: headers that go there and come back, what its metrics prove, and servers that lie, die
or refuse (tests/otg_fake.py)."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dutperf import procedures
from dutperf.cli import app
from dutperf.frames import Endpoints, Stack, build
from dutperf.model import (
    Bursts,
    Direction,
    FieldMode,
    FrameSpec,
    Question,
    Stamping,
    Stream,
    Trial,
    TrialResult,
    VaryingField,
    Verdict,
    to_json,
)
from dutperf.otg import certificate, flows, links
from dutperf.otg.headers import OpenFields, stack_of
from dutperf.otg.model import messages as model
from dutperf.otg.model import of_members
from dutperf.otg_client import messages
from dutperf.otg_client import tester as client
from dutperf.otg_client.headers import NotPossible, headers_of
from dutperf.otg_client.server import VARIABLE
from dutperf.otg_client.tester import OtgTester
from dutperf.run import tester_needs
from dutperf.run.testbench import Source
from dutperf.setup import configuration
from dutperf.setup.configuration import ConfigError, Setup
from dutperf.tester import EndTrial, Progress, TesterError
from otg_fake import DUT_MAC, FakeOtg, serving

OWN, DUT = "02:00:00:00:00:01", "02:00:00:00:00:02"
RATE, DURATION_S, DRAIN_S = 1000, 0.8, 0.25
ENDPOINTS = Endpoints(
    ipv4=tuple(map(ip_address, ("198.18.0.2", "198.19.0.2"))),  # type: ignore[arg-type]
    ipv6=tuple(map(ip_address, ("2001:2::2", "2001:2:0:1::2"))),  # type: ignore[arg-type]
)


BACKGROUND = FrameSpec(version=6, size=128, source="2001:2::2", destination="2001:2:0:1::2")  # type: ignore[arg-type]


def setup_of(address: str, engine: Mapping[str, Any] | None = None, **left: Any) -> Setup:
    sides = {
        name: {"port": f"10.0.0.1;1;{number}", "version": 4, "ipv4": f"198.1{7 + number}.0.2/24"}
        | {"gateway4": f"198.1{7 + number}.0.1"}
        for number, name in enumerate(("left", "right"), start=1)
    }
    sides["left"] |= left
    return configuration.parse({"engine": {"otg": address, **(engine or {})}, **sides}, "here")


def stream_of(rate_fps: int = RATE, **members: Any) -> Stream:
    ports = {"mode": FieldMode.RANDOM, "min": 1024, "max": 65535}
    frame = FrameSpec(version=4, size=128, source="198.18.0.2", destination="198.19.0.2")  # type: ignore[arg-type]
    of_ports = {"source_port": VaryingField(**ports), "destination_port": VaryingField(**ports)}  # type: ignore[arg-type]
    return Stream(**{"rate_fps": rate_fps, "foreground": frame, **of_ports, **members})


def trial_of(duration_s: float = DURATION_S, **members: Any) -> Trial:
    streams = {"forward": stream_of()} if "forward" not in members else {}
    times = {"duration_ns": round(duration_s * 1e9), "drain_ns": round(DRAIN_S * 1e9)}
    return Trial(**{"trial": 1, **times, **streams, **members})


def result_of(fake: FakeOtg, trial: Trial | None = None, **options: Any) -> TrialResult:
    with serving(fake) as address, OtgTester(setup_of(address)) as tester:
        return tester.run(trial or trial_of(), **options)


def texts(result: TrialResult) -> str:
    return " | ".join(f"{cause.code}: {cause.text}" for cause in result.causes)


# --- headers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "eth/ipv4/udp",
        "eth/ipv4/udp(checksum=no)",
        "eth/vlan(id=5,pcp=3)/vlan(type=0x88a8,id=7)/ipv6(dscp=46)/tcp(flags=SA)",
        "eth/mpls(label=5)/mpls/ipv4/icmp",
        "eth/ipv4/gre(checksum=yes)/ipv4",
        "eth/ipv4/gre/ipv6/icmp",
        "eth/ipv4/udp/gtpu/ipv4/udp",
        "eth/ipv6/ipv4/udp",
        "eth/arp",
        "eth/ipv4/payload(data=0x0102)",
        "eth/ipv4(ttl=increment(1,count=5),id=decrement(9,count=3))/udp(source=list(5,6,7))",
        "eth/ipv4(destination=increment(198.19.0.2,step=256,count=200))/udp",
    ],
)
def test_the_bytes_of_a_frame_come_back_from_its_headers_of_the_model(text: str) -> None:
    """The server reads them with the package's other half, which knows nothing of this one."""
    frame = build(Stack.parse(text), 200, ENDPOINTS)
    packet = of_members({"packet": headers_of(frame, OWN, DUT)}, model.Flow).packet
    back = build(stack_of(packet, "flow", OpenFields()), 200)
    macs = DUT.replace(":", "") + OWN.replace(":", "")
    as_sent = {"bytes": macs + frame.bytes[24:], "source_mac": "given", "destination_mac": "given"}
    assert to_json(back) == to_json(frame) | as_sent


def test_lengths_inside_vxlan_are_left_to_the_server() -> None:
    frame = build(Stack.parse("eth/ipv4/udp/vxlan/eth/ipv4/udp"), 200, ENDPOINTS)
    outer, inner = [one["ipv4"] for one in headers_of(frame, OWN, DUT) if one["choice"] == "ipv4"]
    assert outer["total_length"]["value"] == 200 - 18
    assert "total_length" not in inner


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("eth/ipv6/routing(segments=[2001:2::5])/udp", "a header routing"),
        ("eth/ipv4/esp", "a header esp"),
        ("eth/ipv4/tcp(urgent=5)", "tcp with another urgent than 0"),
    ],
)
def test_a_header_that_the_model_does_not_have_is_named(text: str, named: str) -> None:
    frame = build(Stack.parse(text), 200, ENDPOINTS)
    with pytest.raises(NotPossible, match=named):
        headers_of(frame, OWN, DUT)


def test_a_random_field_has_thousands_of_values_the_same_for_the_same_seed() -> None:
    frame = messages.described(stream_of())
    udp = [headers_of(frame, OWN, DUT, seed)[2]["udp"] for seed in ("a", "a", "b")]
    assert udp[0] == udp[1] != udp[2]
    counts = [len(udp[0][name]["values"]) for name in ("src_port", "dst_port")]
    assert counts == [4093, 4091]
    assert min(udp[0]["src_port"]["values"]) >= 1024
    assert max(udp[0]["src_port"]["values"]) > 60_000


def test_flows_have_fields_that_change_together() -> None:
    text = "eth/ipv4/udp(source=increment(10,count=2,by=flow),destination=increment(20,count=3,by=flow))"
    frame = build(Stack.parse(text), 128, ENDPOINTS, flows=6)
    udp = headers_of(frame, OWN, DUT)[2]["udp"]
    assert udp["src_port"]["values"] == [10, 11] * 3
    assert udp["dst_port"]["values"] == [20, 21, 22] * 2
    in_random_order = frame.model_copy(update={"flow_order": "random"})
    with pytest.raises(NotPossible, match="random order"):
        headers_of(in_random_order, OWN, DUT)


def test_a_whole_configuration_is_one_that_our_own_server_takes() -> None:
    setup, trial = setup_of("http://127.0.0.1", mac="02:00:00:00:00:07"), trial_of(reverse=stream_of(70))
    names = {one: messages.flow_name(one, "ab12") for one in trial.all_streams()}
    macs = {("left", 4): DUT, ("right", 4): DUT_MAC}
    made = messages.without_flows(setup) | {"flows": messages.flows(setup, trial, names, macs)}
    wanted = of_members(made, model.Config)
    planned = links.planned(wanted, {side.port: f"af_packet:{name}" for name, side in setup.sides().items()})
    assert planned.sides["left"].mac == "02:00:00:00:00:07"
    assert {name: str(side.gateway4) for name, side in planned.sides.items()} == {
        "left": "198.18.0.1",
        "right": "198.19.0.1",
    }
    forward, reverse = flows.planned(wanted, planned)
    assert [(one.frames, one.stream.rate_fps) for one in (forward, reverse)] == [(800, RATE), (56, 70)]
    assert forward.stream.frames[0].bytes.startswith((DUT + "02:00:00:00:00:07").replace(":", ""))
    assert reverse.stream.frames[0].bytes.startswith(DUT_MAC.replace(":", ""))


# --- what a trial may not need --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trial", "named"),
    [
        (trial_of(stamping=Stamping.EVERY), "delays"),
        (trial_of(rest_ns=1), "a rest after learning frames"),
        (trial_of(forward=stream_of(pattern=Bursts(frames=8))), "not at one rate throughout"),
        (trial_of(forward=stream_of(m=1, background=BACKGROUND)), "several kinds"),
    ],
)
def test_what_a_server_cannot_do_is_refused_before_anything_is_asked(trial: Trial, named: str) -> None:
    with pytest.raises(NotPossible, match=named), OtgTester(setup_of("http://127.0.0.1:1")) as tester:
        tester.run(trial)


def test_procedures_are_refused_by_what_they_need() -> None:
    refused = {}
    for one in map(procedures.find, procedures.NAMES):
        try:
            tester_needs.check(one, {"engine": {"otg": "http://127.0.0.1"}})
        except ConfigError as error:
            refused[one.name] = error.message
        tester_needs.check(one, {"engine": {}})
    assert set(procedures.NAMES) - set(refused) == {"throughput", "frame-loss"}
    assert "DNS queries" in refused["dns64"]
    assert "the delay of each frame" in refused["latency"]


@pytest.mark.parametrize(
    ("engine", "left", "said"),
    [
        ({"netns": "dut"}, {}, "engine.netns: has no effect beside engine.otg"),
        ({"queues": 2}, {}, "engine.queues: has no effect beside engine.otg"),
        ({}, {"answers_for": ["198.18.1.0/24"]}, "left.answers_for: is not possible with engine.otg"),
        ({}, {"gateway4": None, "gateway_mac": DUT}, "left.gateway4: is missing"),
        ({}, {"port": "two words"}, "left.port: is not a location"),
        ({"otg": "192.0.2.1:8443"}, {}, "engine.otg: is not the address of an OTG server"),
    ],
)
def test_settings_that_a_server_does_not_have_are_errors(
    engine: dict[str, Any], left: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        setup_of("http://127.0.0.1", engine, **left)


def test_locations_are_for_servers_only_and_no_result_has_the_token() -> None:
    setup = setup_of("https://user:secret@192.0.2.1:8443/TOKEN")
    assert setup.engine.otg == "https://user:secret@192.0.2.1:8443/TOKEN"
    written = configuration.as_json(setup)
    assert written["engine"]["otg"] == "https://192.0.2.1:8443"
    assert configuration.parse(written, "again").left == setup.left
    del written["engine"]["otg"]
    with pytest.raises(ConfigError, match=r"left\.port: is not a port"):
        configuration.parse(written, "again")


def test_a_resumed_run_takes_the_server_from_the_present_configuration(tmp_path: Path) -> None:
    setup, file = setup_of("https://192.0.2.1:8443/TOKEN"), tmp_path / "setup.yaml"
    recorded = configuration.as_json(setup)
    file.write_text(json.dumps(recorded | {"engine": {"otg": setup.engine.otg}}))
    resumed = Source.of_plan({"config": str(file)}, recorded).recorded
    assert resumed is not None
    assert resumed.engine.otg == setup.engine.otg


# --- what the metrics prove -----------------------------------------------------------------------


def test_the_loss_of_the_dut_is_counted_and_what_is_not_proven_is_told() -> None:
    fake = FakeOtg(loss=0.1)
    result = result_of(fake)
    counts = result.directions()[Direction.FORWARD]
    assert (result.verdict, counts.sent, counts.received) == (Verdict.VALID, 800, 720), texts(result)
    assert counts.by_metrics is not None
    assert 0.05 < counts.by_metrics.blind_s < 0.5
    [flow] = fake.config["flows"]
    assert flow["packet"][0]["ethernet"]["dst"]["value"] == DUT_MAC


@pytest.mark.parametrize(
    ("fake", "cause"),
    [
        (FakeOtg(sends=0.99), "unsent: forward: only 792 of 800 frames were sent"),
        (FakeOtg(sends=1.01), "otg_metrics: forward: 808 frames were sent, but 800 were asked for"),
        (FakeOtg(speed=0.5), "sender_late: forward: a frame left "),
        (FakeOtg(speed=0.5), "sending_time: forward: sending took "),
        (FakeOtg(speed=4.0), "otg_metrics: forward: frames left at least "),
        (FakeOtg(loss=-0.1), "received_too_many: forward: "),
        (FakeOtg(port={"frames_tx": "10"}), "otg_metrics: forward: the flows count 800 sent frames, but their port 10"),
        (FakeOtg(port={"link": "down"}), "link_down: the link of the left port was down"),
    ],
)
def test_a_tester_that_does_not_send_what_was_meant_makes_the_trial_invalid(fake: FakeOtg, cause: str) -> None:
    result = result_of(fake)
    assert result.verdict is Verdict.INVALID
    assert cause in texts(result)


def test_a_pause_of_the_tester_shows_though_it_makes_up_for_it() -> None:
    result = result_of(FakeOtg(pause_s=(0.6, 1.3)), trial_of(1.4))
    assert texts(result).startswith("sender_late: forward: a frame left ")


@pytest.mark.parametrize("before", [0, 300])
def test_ports_may_begin_to_count_again_with_the_flows_or_not(before: int) -> None:
    class Counting(FakeOtg):
        def _port(self, name: str, flows: list[dict[str, Any]]) -> dict[str, Any]:
            found = super()._port(name, flows)
            earlier = 300 if self.began_s is None else before
            return found | {end: str(earlier + int(found[end])) for end in ("frames_tx", "frames_rx")}

    result = result_of(Counting(loss=0.1))
    assert result.verdict is Verdict.VALID, texts(result)


def test_other_load_from_the_same_port_makes_the_trial_invalid() -> None:
    class Chatty(FakeOtg):
        def _port(self, name: str, flows: list[dict[str, Any]]) -> dict[str, Any]:
            found = super()._port(name, flows)
            return found | {"frames_tx": str(2 * int(found["frames_tx"]))}

    assert "the port sent 1,600 frames, but the flows 800: the DUT had another load" in texts(result_of(Chatty()))


def test_frames_that_the_port_received_and_no_flow_counted_may_be_the_lost_ones() -> None:
    class Deaf(FakeOtg):
        def _port(self, name: str, flows: list[dict[str, Any]]) -> dict[str, Any]:
            sent = sum(int(one["frames_tx"]) for one in flows)
            return super()._port(name, flows) | ({"frames_rx": str(sent)} if name == "right" else {})

    result = result_of(Deaf(loss=0.1))
    assert "80 frames are missing, but the port received 80 frames that no flow counted" in texts(result)


def test_frames_that_are_counted_late_are_waited_for_within_the_drain() -> None:
    counts = result_of(FakeOtg(receives_after_s=0.2)).directions()[Direction.FORWARD]
    assert counts.lost == 0


def test_a_trial_that_its_user_ends_has_what_was_sent_until_then() -> None:
    def end(progress: Progress) -> None:
        if progress.sent >= 200:
            raise EndTrial

    result = result_of(FakeOtg(), on_progress=end)
    counts = result.directions()[Direction.FORWARD]
    assert result.verdict is Verdict.VALID, texts(result)
    assert 200 <= counts.sent == counts.intended < 800


def test_what_is_interrupted_stops_the_flows() -> None:
    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    fake = FakeOtg()
    with pytest.raises(KeyboardInterrupt):
        result_of(fake, on_progress=interrupt)
    assert fake.stopped_s is not None


def test_flows_that_never_stop_end_the_trial_without_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(FakeOtg):
        def _control(self, body: Any) -> dict[str, Any]:
            found = super()._control(body)
            self.stopped_s = None
            return found

    monkeypatch.setattr(client, "STOP_S", 0.2)
    result = result_of(Endless(stops=False))
    assert result.verdict is Verdict.ABORTED
    assert "does not stop its flows" in texts(result)


# --- verdicts of our own server -------------------------------------------------------------------


@dataclass
class FakeOwn(FakeOtg):
    """One that tells verdicts, as ``dutperf otg`` does."""

    told: Any = None

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        if path != "/dutperf/verdicts":
            return super().answer(path, body)
        names = [one["name"] for one in self.config.get("flows", ())]
        return 200, {"trials": [self.told | {"flows": names}] if names else []}


def test_causes_of_our_own_server_count() -> None:
    told = {"verdict": "invalid", "causes": ["others took 9 % of the core of the DUT"], "counts": {}}
    result = result_of(FakeOwn(told=told))
    assert texts(result) == "otg_verdict: others took 9 % of the core of the DUT"
    aborted = result_of(FakeOwn(told={"verdict": "aborted", "causes": ["the engine was killed"], "counts": {}}))
    assert (aborted.verdict, texts(aborted)) == (Verdict.ABORTED, "engine_died: the engine was killed")


# --- servers that are not there, or refuse --------------------------------------------------------


@pytest.mark.parametrize(
    ("fake", "said"),
    [
        (FakeOtg(dies_after_s=0.3), "there is no OTG server at http://127.0.0.1:"),
        (FakeOtg(replaced_after_s=0.3), "another client set its configuration"),
        (FakeOtg(restarts=True), "another client started the flows again"),
        (FakeOtg(without="frames_rx"), "the server's metrics have no frames_rx"),
    ],
)
def test_a_server_that_is_lost_within_a_trial_aborts_it(fake: FakeOtg, said: str) -> None:
    result = result_of(fake)
    assert result.verdict is Verdict.ABORTED
    assert said in texts(result)
    assert not result.directions()


@pytest.mark.parametrize(
    ("fake", "said", "is_temporary"),
    [
        (
            FakeOtg(error=("/config", 400, "ports[0]: no such port")),
            "refused POST /config: ports.0.: no such port",
            False,
        ),
        (FakeOtg(error=("/config", 500, "out of licences")), "out of licences", True),
        (FakeOtg(error=("/capabilities/version", 404, "no")), "refused GET /capabilities/version", False),
        (FakeOtg(token="T0"), "asks for a token", False),
        (FakeOtg(others=("theirs",)), "another client of .* is sending .theirs", True),
        (FakeOtg(answers=False), "198.18.0.1 does not answer the OTG server at the left port", True),
    ],
)
def test_a_server_that_refuses_ends_the_run_with_one_sentence(fake: FakeOtg, said: str, is_temporary: bool) -> None:
    with serving(fake) as address, OtgTester(setup_of(address, {"link_timeout_s": 0.3})) as tester:
        with pytest.raises(TesterError, match=said) as error:
            tester.environment()
        assert error.value.is_temporary is is_temporary
        assert "\n" not in error.value.sentence


def test_the_token_is_given_in_the_path_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(FakeOtg(token="T0")) as address:
        with OtgTester(setup_of(f"{address}/T0/")) as tester:
            assert tester.environment()["otg"]["address"] == address
        monkeypatch.setenv(VARIABLE, "T0")
        with OtgTester(setup_of(address)) as tester:
            assert tester.environment()["engine"] == "OTG server fake"


def test_a_certificate_is_verified_unless_the_user_says_otherwise(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    files, others = (certificate.generate(one, "127.0.0.1") for one in (tmp_path, tmp_path / "other"))

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = HTTPServer(("0.0.0.0", 0), Handler)  # at 127.0.0.2 too
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    port = server.server_address[1]

    def said(address: str, trusted: str | None) -> str:
        engine = {} if trusted is None else {"otg_certificate": trusted}
        with OtgTester(setup_of(address, engine)) as tester, pytest.raises(TesterError) as error:
            tester.environment()
        assert not error.value.is_temporary
        return str(error.value)

    try:
        there = "HTTP status 501"  # it knows no method at all, so TLS was accepted
        assert there in said(f"https://127.0.0.1:{port}", str(files[0]))
        assert there in said(f"https://127.0.0.1:{port}", None)
        assert there in said(f"https://127.0.0.1:{port}", "any")
        assert "is not trusted (self" in said(f"https://127.0.0.2:{port}", None)
        assert "is not trusted" in said(f"https://127.0.0.1:{port}", str(others[0]))
    finally:
        server.shutdown()
        server.server_close()
    with serving(FakeOtg()) as address:
        assert "does not speak TLS" in said(address.replace("http", "https"), None)


def test_the_command_ends_with_a_sentence_and_its_status(tmp_path: Path) -> None:
    file = tmp_path / "setup.yaml"
    arguments = ["trial", "--config", str(file), "--rate", str(RATE), "--duration", "0.4", "--drain", "0.1", "--json"]

    def status(address: str) -> tuple[int, str]:
        sides = configuration.as_json(setup_of(address))
        file.write_text(json.dumps({"engine": {"otg": address}, "left": sides["left"], "right": sides["right"]}))
        done = CliRunner().invoke(app, arguments)
        assert "Traceback" not in done.output
        return done.exit_code, done.output

    assert status("http://127.0.0.1:1")[0] == 75
    with serving(FakeOtg(error=("/config", 400, "no"))) as address:
        assert status(address)[0] == 2
    with serving(FakeOtg(dies_after_s=0.2)) as address:
        assert status(address)[0] == 4
    with serving(FakeOtg(sends=0.5)) as address:
        assert status(address)[0] == 3
    with serving(FakeOtg(loss=0.5)) as address:
        assert status(address)[0] == 0


def test_a_question_that_tolerates_loss_passes_it() -> None:
    result = result_of(FakeOtg(loss=0.01), trial_of(question=Question(tolerated_loss=0.02)))
    assert result.verdict is Verdict.VALID
