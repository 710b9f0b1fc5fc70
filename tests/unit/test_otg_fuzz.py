# SPDX-License-Identifier: Apache-2.0
"""Requests of the Open Traffic Generator API at random, made of the model's own descriptors: each is answered by the
model, and one that is refused changes nothing. Another run: ``pytest -m long --hypothesis-seed=N``."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from dutperf.model import Trial, TrialResult
from dutperf.model.trial import Stamping
from dutperf.otg import coverage
from dutperf.otg.headers import HEADERS
from dutperf.otg.model import as_members, messages, read
from dutperf.tester import ProgressCallback
from otg_messages import PORTS, Opened, configured, flow, serving

pytestmark = pytest.mark.long

TEXTS = (
    *("p1", "p2", "f1", "f2", "d1", "e1", "left", "right", "c", "", "\0", "名"),
    *("198.18.0.2", "198.18.0.1", "0.0.0.0", "2001:2::2", "::1", "02:00:00:00:00:01", "00", "0xabcd", "abc", "0001"),
)
NUMBERS = (
    0,
    1,
    2,
    3,
    4,
    6,
    15,
    16,
    63,
    64,
    84,
    128,
    255,
    256,
    1518,
    9216,
    65535,
    65536,
    2**24,
    2**31,
    2**32 - 1,
    2**48,
)
WRONG = st.sampled_from(
    (None, True, -1, 1.5, "x", "unspecified", [], {}, [None], [{}], {"choice": "x"}, {"value": None}, 1e999, 2**70)
)
"""Values that few fields can have."""
DEEPEST = 7
CONFIGURATION = ("/config", "/config/append", "/config/delete")


def value(field: FieldDescriptor, depth: int, *, covered: bool) -> st.SearchStrategy[Any]:
    if field.message_type is not None:
        return message(field.message_type, depth + 1, covered=covered)
    if field.enum_type is not None:
        names = st.sampled_from([one.name for one in field.enum_type.values if one.number])
        return names if covered else names | st.integers(-1, 5)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return st.booleans()
    if field.type == FieldDescriptor.TYPE_STRING:
        return st.sampled_from(TEXTS) | st.text(max_size=4)
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return st.sampled_from((0.0, 0.5, 1.0, 50.0, 100.0, 1e-30, 1e30)) | st.floats(width=32)
    return st.sampled_from(NUMBERS) | st.integers(0, 300)


def given_value(field: FieldDescriptor, depth: int, *, covered: bool) -> st.SearchStrategy[Any]:
    """A value of a field, or now and then something else."""
    one = value(field, depth, covered=covered)
    right = st.lists(one, max_size=3) if field.is_repeated else one
    return st.integers(0, 40).flatmap(lambda number: WRONG if number == 0 and not covered else right)


@st.composite
def message(draw: st.DrawFn, kind: Descriptor, depth: int = 0, *, covered: bool) -> dict[str, Any]:
    """Any members of a message; ``covered``: of the right types, and none that is refused by its name."""
    names = set(coverage.covered_of(kind.name)) if covered else set(kind.fields_by_name)
    fields = [one for one in kind.fields if one.name in names and (one.message_type is None or depth < DEEPEST)]
    if not fields:
        return {}
    members = [one for one in fields if one.name != "choice"]
    is_choice = "choice" in kind.fields_by_name and draw(st.integers(0, 9)) > 0
    if is_choice:
        chosen = [draw(st.sampled_from(members))] if members else []
    else:
        chosen = draw(st.lists(st.sampled_from(fields), unique_by=lambda one: one.name, max_size=5))
    return {one.name: draw(given_value(one, depth, covered=covered)) for one in chosen}


def of(name: str, *, covered: bool) -> st.SearchStrategy[dict[str, Any]]:
    return message(messages.DESCRIPTOR.message_types_by_name[name], covered=covered)


def headers() -> st.SearchStrategy[dict[str, Any]]:
    """Any header that is covered."""
    kinds = messages.FlowHeader.DESCRIPTOR.fields_by_name
    return st.sampled_from(sorted(HEADERS)).flatmap(
        lambda name: message(kinds[name].message_type, 2, covered=True).map(lambda members: {name: members})
    )


FOLLOWING = (
    *(("ipv4", "udp"), ("ipv4", "tcp"), ("ipv6", "udp"), ("vlan", "ipv4", "udp"), ("ipv4", "igmpv1"), ("mpls", "ipv6")),
    *(("ipv6", "ipv6_extension_header", "tcp"), ("ipv4", "gre", "ipv4", "udp"), ("ipv4", "udp", "gtpv1", "ipv4")),
    *(("ipv4", "udp", "vxlan", "ethernet", "ipv6"), ("arp",), ("ppp", "ipv4"), ("ipv4", "udp", "gtpv2"), ("custom",)),
)


@st.composite
def packet(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Headers that may follow each other, or any."""
    if draw(st.integers(0, 5)) == 0:
        return [{"ethernet": {}}, *draw(st.lists(headers(), max_size=4))]
    kinds = messages.FlowHeader.DESCRIPTOR.fields_by_name
    names = ("ethernet", *draw(st.sampled_from(FOLLOWING)))
    varied = draw(st.sampled_from(range(len(names))))
    return [
        {name: draw(message(kinds[name].message_type, 2, covered=True)) if number == varied else {}}
        for number, name in enumerate(names)
    ]


@st.composite
def flows(draw: st.DrawFn) -> dict[str, Any]:
    """A flow that is often possible: one or two of its members are at random."""
    parts: dict[str, st.SearchStrategy[Any]] = {
        "packet": packet(),
        "size": of("FlowSize", covered=True) | st.just({"fixed": 1000}),
        "rate": of("FlowRate", covered=True),
        "duration": of("FlowDuration", covered=True),
        "payload": of("FlowPayload", covered=True),
        "metrics": of("FlowMetrics", covered=True),
    }
    names = draw(st.lists(st.sampled_from(sorted(parts)), min_size=1, max_size=2, unique=True))
    return flow(**{"size": {"fixed": 300}, **{name: draw(parts[name]) for name in names}})


def named(flows_of_any_name: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one | {"name": f"f{number}"} for number, one in enumerate(flows_of_any_name, 1)]


def configurations() -> st.SearchStrategy[Any]:
    any_part = st.sampled_from(("layer1", "captures", "devices"))
    with_part = any_part.flatmap(
        lambda name: of("Config", covered=True).map(lambda found: {name: found[name]} if name in found else {})
    )
    return st.one_of(
        st.builds(lambda each, part: configured(*named(each), **part), st.lists(flows(), max_size=3), with_part),
        st.builds(
            lambda each: configured(*named([flow(**one) for one in each])),
            st.lists(known("Flow"), max_size=2),
        ),
        of("Config", covered=False).map(lambda found: {"ports": PORTS} | found),
        of("Config", covered=False),
    )


def known(name: str) -> st.SearchStrategy[Any]:
    return of(name, covered=True) | of(name, covered=False)


REQUESTS: st.SearchStrategy[tuple[str, str, Any]] = st.one_of(
    st.tuples(st.just("POST"), st.just("/config"), configurations()),
    st.tuples(st.just("POST"), st.just("/config"), configurations()),
    st.tuples(st.just("PATCH"), st.just("/config"), known("ConfigUpdate")),
    st.tuples(
        st.just("PATCH"),
        st.just("/config/append"),
        st.lists(known("ConfigAppendResources") | st.builds(lambda one: {"flows": [one]}, flows()), max_size=2),
    ),
    st.tuples(st.just("PATCH"), st.just("/config/delete"), st.lists(known("ConfigDeleteResources"), max_size=2)),
    st.tuples(st.just("POST"), st.just("/control/state"), known("ControlState")),
    st.tuples(
        st.just("POST"),
        st.just("/control/state"),
        st.sampled_from(("start", "stop", "pause", "resume")).map(
            lambda state: {"traffic": {"flow_transmit": {"state": state}}}
        ),
    ),
    st.tuples(st.just("POST"), st.just("/control/action"), known("ControlAction")),
    st.tuples(st.just("POST"), st.just("/monitor/metrics"), known("MetricsRequest")),
    st.tuples(st.just("POST"), st.just("/monitor/states"), known("StatesRequest")),
    st.tuples(st.just("POST"), st.just("/monitor/capture"), known("CaptureRequest")),
    st.tuples(st.just("GET"), st.sampled_from(("/config", "/dutperf/verdicts")), st.none()),
)
LONGEST_S = 10.0
MOST_STAMPED = 1_000_000


class Stamped(Opened):
    """Of trials of a day the simulator would make the delay of each frame."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        if sum(map(trial.intended, trial.all_streams())) > MOST_STAMPED:
            trial = trial.model_copy(update={"stamping": Stamping.NONE})
        return super().run(trial, on_progress)


def check_answer(client: TestClient, method: str, path: str, body: Any) -> bool:
    """Whether a request is accepted; either way it is answered as the model says."""
    sent = b"" if method == "GET" else json.dumps(body).encode("utf-8", "surrogatepass")
    began_s = time.monotonic()
    answer = client.request(method, path, content=sent)
    assert time.monotonic() - began_s < LONGEST_S
    assert answer.status_code in (200, 400, 501), answer.text
    if answer.status_code == 200:
        return True
    error = answer.json()
    assert set(error) == {"code", "kind", "errors"}
    assert error["code"] == answer.status_code
    assert error["errors"]
    assert all(one and "Traceback" not in one for one in error["errors"])
    return False


@given(requests=st.lists(REQUESTS, min_size=1, max_size=6))
@settings(suppress_health_check=list(HealthCheck), max_examples=1000, deadline=None)
def test_every_request_is_answered_by_the_model(requests: Iterable[tuple[str, str, Any]]) -> None:
    for client in serving(Stamped):
        for method, path, body in requests:
            before = client.get("/config").json()
            is_accepted = check_answer(client, method, path, body)
            after = client.get("/config").json()
            if not is_accepted or path not in CONFIGURATION:
                assert after == before
            elif (method, path) == ("POST", "/config"):
                assert after == as_members(read(json.dumps(body).encode(), messages.Config))
            assert client.get("/capabilities/version").status_code == 200
