# SPDX-License-Identifier: Apache-2.0
"""What is counted of flows of the Open Traffic Generator API by receiving port, and by the bits of frames as they
arrive."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from starlette.testclient import TestClient

from dutperf.model import SoFar, Trial, TrialResult, Verdict
from dutperf.model.result import Tracked
from dutperf.model.stream import TrackedBits
from dutperf.otg import flows, links
from dutperf.otg.model import Rejected, messages, of_members
from dutperf.setup.ports import other_streams
from dutperf.tester import Progress, ProgressCallback
from otg_messages import LOCATED, UDP, Opened, flow, planned, serving
from plans import counts

PORTS = [{"name": f"p{number}", "location": location} for number, location in enumerate(("left", "right", "third"), 1)]
OF_THREE = LOCATED | {"third": "af_packet:eth3"}
TO_TWO = {"port": {"tx_name": "p1", "rx_names": ["p3", "p2", "p3"]}}


def of_three(*each: dict[str, Any]) -> Sequence[flows.Flow]:
    configuration = of_members({"ports": PORTS, "flows": list(each)}, messages.Config)
    return flows.planned(configuration, links.planned(configuration, OF_THREE))


def egress(*headers: dict[str, Any], **members: Any) -> dict[str, Any]:
    return flow(egress_packet=list(headers), **members)


def tagged(name: str, **members: Any) -> dict[str, Any]:
    return {"metric_tags": [{"name": name} | members]}


def test_a_flow_has_several_receiving_ports() -> None:
    [made] = of_three(flow(tx_rx=TO_TWO))
    assert (made.rx, made.also_rx) == ("p3", ("p2",))
    assert other_streams([made.direction], {made.direction: ["p2"]}) == [
        {"name": "p1->p3:f1", "from": "p1", "to": "p3", "also_to": ["p2"]}
    ]


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (flow(tx_rx={"port": {"tx_name": "p1", "rx_names": ["p2", "p1"]}}), "p1 would send to itself"),
        (flow(tx_rx={"port": {"tx_name": "p1", "rx_names": ["p2", "p9"]}}), "rx_names: there is no port 'p9'"),
        (
            flow(tx_rx=TO_TWO, rate={"pps": "1000000"}, duration={"continuous": {}}),
            "flows[0].duration: f1 would send 86,400,000,000 frames to several ports",
        ),
    ],
)
def test_what_receiving_ports_are_not_possible_is_told(one: dict[str, Any], said: str) -> None:
    with pytest.raises(Rejected) as caught:
        of_three(one)
    assert said in str(caught.value)


def test_tags_are_bits_of_frames_as_they_arrive() -> None:
    headers = (
        {"ethernet": {"dst": tagged("mac", offset=40)}},
        {"vlan": {"priority": tagged("pcp"), "id": tagged("vlan", offset=4, length=8)}},
        {"ipv4": {"priority": {"dscp": {"phb": tagged("phb")}}}},
        {"udp": {"src_port": tagged("port")}},
    )
    [made] = planned(egress(*headers))
    assert [(one.name, one.bits.bit, one.bits.bits) for one in made.tags] == [
        ("mac", 40, 8),
        ("pcp", 112, 3),
        ("vlan", 120, 8),
        ("phb", 18 * 8 + 8, 6),
        ("port", 38 * 8, 16),
    ]
    assert made.stream.tracked[0] == TrackedBits(bit=40, bits=8)


@pytest.mark.parametrize(
    ("fields", "bit", "bits"),
    [
        ({"priority": {"raw": tagged("t")}}, 120, 8),
        ({"priority": {"dscp": {"ecn": tagged("t")}}}, 126, 2),
        ({"priority": {"tos": {"precedence": tagged("t")}}}, 120, 3),
        ({"time_to_live": tagged("t")}, 176, 8),
    ],
)
def test_tags_of_ipv4_are_where_its_fields_are(fields: dict[str, Any], bit: int, bits: int) -> None:
    [made] = planned(egress({"ethernet": {}}, {"ipv4": fields}))
    assert made.stream.tracked == (TrackedBits(bit=bit, bits=bits),)
    [made] = planned(egress({"ethernet": {}}, {"ipv6": {"traffic_class": tagged("t")}}))
    assert made.stream.tracked == (TrackedBits(bit=14 * 8 + 4, bits=8),)


IP = {"ethernet": {}}


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (
            egress(IP, {"ipv6": {"src": tagged("t")}}),
            "egress_packet[1].ipv6.src.metric_tags: 128 bits are not possible; 64 are",
        ),
        (
            egress({"ethernet": {"dst": tagged("a")}}, {"ipv4": {"src": tagged("b")}}),
            "egress_packet: 80 bits are tracked by metric_tags; 64 are possible",
        ),
        (egress(IP, {"ipv4": {"src": tagged("t", offset=8, length=32)}}), "32 bits from bit 8 on are not within"),
        (egress(IP, {"ipv4": {"src": tagged("")}}), "egress_packet[1].ipv4.src.metric_tags: the name is missing"),
        (
            egress(IP, {"ipv4": {"src": tagged("t"), "dst": tagged("t")}}),
            "flows[0].egress_packet: two metric_tags have the same name",
        ),
        (
            egress(IP, {"tcp": {}}),
            "flows[0].egress_packet[1].tcp: cannot follow ethernet",
        ),
        (
            egress(IP, {"ipv4": {}}, {"tcp": {"ctl_syn": tagged("t")}}),
            "flows[0].egress_packet[2].tcp.ctl_syn.metric_tags is not covered",
        ),
        (
            flow(packet=[*UDP[:2], {"udp": {"src_port": {"value": 5} | tagged("t")}}]),
            "flows[0].packet[2].udp.src_port.metric_tags is not covered",
        ),
        (
            egress(IP, {"ipv4": {"src": tagged("t")}}, metrics={"predefined_metric_tags": {"rx_name": True}}),
            "flows[0].metrics.predefined_metric_tags: go without metric_tags",
        ),
    ],
)
def test_what_cannot_be_tagged_is_told(one: dict[str, Any], said: str) -> None:
    with pytest.raises(Rejected) as caught:
        planned(one)
    assert said in str(caught.value)


class Counting(Opened):
    """Of each flow all frames arrive: three of four at the second port, or by their tags."""

    def environment(self) -> dict[str, Any]:
        return {"ports": {key: {"link_up": True} for key in ("p1", "p2", "p3")}}

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        assert on_progress is not None
        on_progress(Progress(0.1, 0, 0, {one: SoFar(sent=0, received=0) for one in trial.other_streams or {}}))
        values = {0x2E << 8 | 5: 70, 0x00 << 8 | 5: 20}
        found = {
            direction: counts(100, 100).model_copy(
                update={
                    "received_at": None if stream.tracked else {"p3": 25, "p2": 75},
                    "tracked": Tracked(values=values, others=10) if stream.tracked else None,
                }
            )
            for direction, stream in (trial.other_streams or {}).items()
        }
        return TrialResult(trial=trial.trial, verdict=Verdict.VALID, other_streams=found)


class Doubling(Counting):
    """A tenth of the frames is lost, and another tenth arrives twice."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        result = super().run(trial, on_progress)
        each = dict.fromkeys(result.other_streams or {}, counts(100, 90, duplicates=10))
        return result.model_copy(update={"other_streams": each})


@pytest.fixture
def client() -> Iterator[TestClient]:
    yield from serving(Counting, located=OF_THREE)


def counted(client: TestClient, wanted: dict[str, Any], **request: Any) -> list[dict[str, Any]]:
    """The tagged metrics of a flow that has been sent."""
    return list(metrics_of(client, wanted, **request).get("tagged_metrics", []))


def metrics_of(client: TestClient, wanted: dict[str, Any], **request: Any) -> dict[str, Any]:
    """Of a flow that has been sent."""
    assert client.post("/config", json={"ports": PORTS, "flows": [wanted]}).status_code == 200
    started = client.post("/control/state", json={"traffic": {"flow_transmit": {"state": "start"}}})
    assert started.status_code == 200, started.text
    for _ in range(200):
        one: dict[str, Any]
        [one] = client.post("/monitor/metrics", json={"flow": request}).json()["flow_metrics"]
        if one["transmit"] == "stopped":
            return one
        time.sleep(0.02)
    raise AssertionError("the flow does not stop")


def test_duplicates_hide_no_loss() -> None:
    for client in serving(Doubling, located=OF_THREE):
        found = metrics_of(client, flow())
        assert (found["frames_tx"], found["frames_rx"], found["loss"]) == ("100", "100", 10.0)


def test_a_frame_that_arrives_at_one_of_its_ports_is_not_lost(client: TestClient) -> None:
    found = metrics_of(client, flow(tx_rx=TO_TWO))
    assert (found["frames_rx"], found["loss"]) == ("100", 0.0)


def test_what_arrived_at_each_port_is_shown(client: TestClient) -> None:
    metrics = {"enable": True, "predefined_metric_tags": {"rx_name": True}}
    found = counted(client, flow(tx_rx=TO_TWO, metrics=metrics))
    assert [(one["tags"][0], one["frames_rx"]) for one in found] == [
        ({"name": "rx_name", "value": {"choice": "str", "str": "p3"}}, "25"),
        ({"name": "rx_name", "value": {"choice": "str", "str": "p2"}}, "75"),
    ]
    ports = client.post("/monitor/metrics", json={"port": {}}).json()["port_metrics"]
    assert [(one["name"], one["frames_tx"], one["frames_rx"]) for one in ports] == [
        ("p1", "100", "0"),
        ("p2", "0", "75"),
        ("p3", "0", "25"),
    ]


TAGGED = egress(IP, {"ipv4": {"priority": {"dscp": {"phb": tagged("phb")}}, "protocol": tagged("low", offset=0)}})


def values(found: list[dict[str, Any]]) -> list[tuple[list[str], str]]:
    each = [[tag["value"][tag["value"]["choice"]] for tag in one["tags"]] for one in found]
    return [(texts, one["frames_rx"]) for texts, one in zip(each, found, strict=True)]


def test_what_arrived_is_shown_by_the_values_of_tags(client: TestClient) -> None:
    """Those beyond the number that is counted are together."""
    found = counted(client, TAGGED)
    assert values(found) == [(["00", "05"], "20"), (["2e", "05"], "70"), (["other", "other"], "10")]
    assert [tag["name"] for tag in found[0]["tags"]] == ["phb", "low"]


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        ({"include": False}, []),
        ({"filters": [{"name": "phb", "values": ["0x2E"]}]}, ["70"]),
        ({"filters": [{"name": "phb", "values": ["0", "other"]}, {"name": "low"}]}, ["20", "10"]),
        ({"metric_names": ["bytes_rx"]}, [None] * 3),
    ],
)
def test_tagged_metrics_are_those_that_are_asked_for(
    wanted: dict[str, Any], shown: list[str | None], client: TestClient
) -> None:
    assert [one.get("frames_rx") for one in counted(client, TAGGED, tagged_metrics=wanted)] == shown


def test_a_filter_of_an_unknown_tag_is_refused(client: TestClient) -> None:
    counted(client, TAGGED)
    request = {"flow": {"tagged_metrics": {"filters": [{"name": "vlan"}]}}}
    answer = client.post("/monitor/metrics", json=request)
    assert (answer.status_code, answer.json()["errors"]) == (
        400,
        ["flow.tagged_metrics.filters[0].name: f1 has no tag 'vlan'"],
    )
