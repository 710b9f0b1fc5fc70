# SPDX-License-Identifier: Apache-2.0
"""The seam between engine and client, tested from both sides against the golden transcripts
(protocol/golden/README.md)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dutperf.engine.client import EngineCommand, EngineTester, Patience
from dutperf.engine.process import EngineProcess
from dutperf.model import LEFT_AND_RIGHT, Trial, Verdict, to_json
from fakes import fake_engine, transcript
from protocol_schemas import EVENTS, REQUESTS

ENGINE = Path(__file__).parents[2] / "build" / "engine" / "dutperf-engine"
NO_REQUEST = ("bad_json", "bad_request")


TRANSCRIPTS = transcript.names()


def test_there_are_transcripts() -> None:
    assert {"start_up", "trial_null", "trial_ring", "paths", "refusals", "open_fails", "busy"} <= set(TRANSCRIPTS)


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_the_schema_accepts_exactly_the_requests_that_are_not_refused(name: str) -> None:
    for exchange in transcript.read(name):
        refused = any(event.get("code") in NO_REQUEST for event in exchange.events)
        try:
            accepted = REQUESTS.is_valid(json.loads(exchange.line))
        except ValueError:
            accepted = False
        assert accepted == (not refused or exchange.beyond_schema), exchange.line


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_every_event_is_as_the_schema_has_it(name: str) -> None:
    for exchange in transcript.read(name):
        for event in exchange.events:
            EVENTS.validate(transcript.example(event))


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_every_request_is_answered_at_last(name: str) -> None:
    exchanges = transcript.read(name)
    ends = {event["id"] for exchange in exchanges for event in exchange.events if event["event"] != "progress"}
    assert {
        exchange.request["id"]
        for exchange in exchanges
        if exchange.request is not None and isinstance(exchange.request.get("id"), int)
    } - {-1} <= ends


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_every_bad_request_names_the_member(name: str) -> None:
    errors = [
        event for exchange in transcript.read(name) for event in exchange.events if event.get("code") == "bad_request"
    ]
    assert all(event["field"] for event in errors)


def test_every_error_code_that_a_request_alone_can_cause_is_shown() -> None:
    shown = {
        event["code"]
        for name in TRANSCRIPTS
        for exchange in transcript.read(name)
        for event in exchange.events
        if event["event"] == "error"
    }
    assert {"bad_json", "bad_request", "not_open", "already_open", "busy", "port_away"} <= shown


@pytest.mark.parametrize("name", ["trial_null", "trial_ring", "paths", "patterns"])
def test_the_client_says_what_the_transcript_says(name: str) -> None:
    exchanges = transcript.read(name)
    command = EngineCommand(f"replay:{name}", prefix=(sys.executable, fake_engine.__file__))
    with EngineTester(command, request_of(exchanges, "open")["params"], Patience(answer_s=20)) as tester:
        for exchange in exchanges:
            if exchange.request is not None and exchange.request["method"] == "run" and is_run(exchange):
                planned = trial_of(exchange.request["params"])
                asked = {one: stream.get("streams") for one, stream in streams_of(exchange.request["params"]).items()}
                assert asked == {one: stream.get("streams") for one, stream in streams_of(planned.request()).items()}
                result = tester.run(planned)
                retagged = any("vlan_tags" in counts for counts in streams_of(exchange.events[-1]).values())
                assert {cause.code for cause in result.causes} == ({"vlan_tags"} if retagged else set())
                assert result.verdict is (Verdict.INVALID if retagged else Verdict.VALID)
                assert to_counts(result.directions()) == to_counts(exchange.events[-1])


def trial_of(request: dict[str, Any]) -> Trial:
    """The trial of a request. The client knows streams by their names, the engine by numbers."""
    params = json.loads(json.dumps(request))
    for stream in streams_of(params).values():
        for frame, number in zip(stream.get("frames", ()), stream.pop("streams", ()), strict=False):
            frame["stream"] = f"stream {number}"
    return Trial.model_validate(params)


def streams_of(params: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The streams of the active paths of a request."""
    return params.get("paths") or {one: params[one] for one in LEFT_AND_RIGHT if one in params}


def is_run(exchange: transcript.Exchange) -> bool:
    return bool(exchange.events[-1]["event"] == "result")


def to_counts(result: Any) -> dict[str, Any]:
    """Sent and received frames of each path, of a result or of a result event."""
    by_path = result.get("paths", result)
    counts = {
        name: transcript.example(one if isinstance(one, dict) else to_json(one))
        for name, one in by_path.items()
        if name in LEFT_AND_RIGHT or "->" in name
    }
    return {
        direction: (one["intended"], one["sent"], one["received"], one["foreground_received"])
        for direction, one in counts.items()
    }


def request_of(exchanges: list[transcript.Exchange], method: str) -> dict[str, Any]:
    return next(
        exchange.request
        for exchange in exchanges
        if exchange.request is not None and exchange.request.get("method") == method
    )


@pytest.mark.skipif(not ENGINE.exists(), reason=f"the engine is not built ({ENGINE})")
@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_the_engine_answers_as_the_transcript_says(name: str) -> None:
    process = EngineProcess([str(ENGINE)])
    try:
        for exchange in transcript.read(name):
            process.send_line(exchange.line)
            wrong = await_events(process, exchange)
            assert not wrong, f"after {exchange.line}: " + "\n".join(wrong)
    finally:
        status = process.close()
    assert status == 0, process.last_words()


def await_events(process: EngineProcess, exchange: transcript.Exchange) -> list[str]:
    """What is wrong with the engine's answer to an exchange."""
    script = transcript.Script(exchange.events)
    wrong: list[str] = []
    while not script.done and not wrong:
        event = process.receive(timeout_s=60)
        wrong = [error.message for error in EVENTS.iter_errors(event)] + script.take(event)
    return wrong


DIFFERENCES: list[tuple[str, Any, Any, int]] = [
    ("the same", {"a": 1}, {"a": 1}, 0),
    ("another value", {"a": 1}, {"a": 2}, 1),
    ("a truth is no number", {"a": 1}, {"a": True}, 1),
    ("a member is missing", {"a": 1, "b": 2}, {"a": 1}, 1),
    ("a member is too much", {"a": 1}, {"a": 1, "b": 2}, 1),
    ("deep inside", {"a": {"b": {"c": 0}}}, {"a": {"b": {"c": 1}}}, 1),
    ("of the kind", {"a": "<integer>"}, {"a": 7}, 0),
    ("not of the kind", {"a": "<integer>"}, {"a": -7}, 1),
    ("a truth is no integer", {"a": "<integer>"}, {"a": True}, 1),
    ("a number or null", {"a": "<number or null>"}, {"a": None}, 0),
    ("an object", {"a": "<object or nothing>"}, {"a": {"b": 1}}, 0),
    ("or nothing", {"a": "<object or nothing>"}, {}, 0),
    ("but no list", {"a": "<object or nothing>"}, {"a": []}, 1),
    ("no empty text", {"a": "<string>"}, {"a": ""}, 1),
]


@pytest.mark.parametrize(
    ("expected", "actual", "count"), [row[1:] for row in DIFFERENCES], ids=[row[0] for row in DIFFERENCES]
)
def test_the_comparison_finds_differences(expected: Any, actual: Any, count: int) -> None:
    assert len(list(transcript.differences(expected, actual))) == count


def test_the_comparison_knows_the_order_of_events() -> None:
    first, second, other = {"id": 1, "event": "a"}, {"id": 1, "event": "b"}, {"id": 2, "event": "c"}
    script = transcript.Script([first, second, other])
    assert script.take(other) == []
    assert script.take({"id": 1, "event": "progress"}) == []
    assert script.take(first) == []
    assert not script.done
    assert script.take(second) == []
    assert script.done
    assert script.take(first) != []
