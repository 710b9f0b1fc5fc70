# SPDX-License-Identifier: Apache-2.0
"""What clients may ask for, whatever the transport: the model's operations, from message to message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dutperf.otg import coverage
from dutperf.otg.generator import Generator
from dutperf.otg.model import SPECIFICATION, Message, Rejected, chosen, messages, name_of
from dutperf.version import __version__

MOST_BODY = 16 * 1024 * 1024
"""Bytes of a request."""
_ANY_VERSION = ">=1.0.0"
"""Clients take the server's version as a condition on their own."""
MessageOrFile = Message | bytes


@dataclass(frozen=True)
class Operation:
    """One of the model's."""

    name: str
    """Over gRPC."""
    method: str
    path: str
    request: Any
    """The class of its message; None: it has none."""
    answer: Callable[[Generator, Any], MessageOrFile | list[str]]
    """A message, a file, or warnings. Raises a :class:`dutperf.errors.DutperfError` where it is not possible."""

    def answered(self, generator: Generator, wanted: Message) -> MessageOrFile:
        answer = self.answer(generator, wanted)
        return messages.Warning(warnings=answer) if isinstance(answer, list) else answer


def controlled(generator: Generator, wanted: Message) -> list[str]:
    """Change the state of flows or captures. Returns warnings. Raises Rejected: it is not possible."""
    coverage.check(wanted)
    kind = chosen(wanted)
    if kind == "protocol":
        return ["protocol.all: devices answer ARP and Neighbour Discovery from the configuration on"]
    changes = {
        ("traffic", "flow_transmit"): (generator.transmit, "flow_names"),
        ("port", "capture"): (generator.capture, "port_names"),
        ("port", "link"): (generator.link, "port_names"),
    }
    what = chosen(getattr(wanted, kind)) if kind in ("traffic", "port") else ""
    if (kind, what) not in changes:
        raise Rejected("the state says nothing of flows, captures, links or protocols")
    change, names = changes[kind, what]
    given = getattr(getattr(wanted, kind), what)
    if not given.HasField("state"):
        raise Rejected(f"{kind}.{what}.state is missing")
    return change(name_of(given, "state"), list(getattr(given, names)))


def acted(generator: Generator, wanted: Message) -> Message:
    """Let devices ping. Raises Rejected: it is not possible."""
    coverage.check(wanted)
    version = chosen(wanted.protocol)
    given = getattr(wanted.protocol, version, None)
    if given is None or chosen(given) != "ping":
        raise Rejected("the action is no ping")
    found = messages.ControlActionResponse()
    answer = found.response
    for one in ("protocol", version, "ping"):
        answer.choice = answer.Choice.Enum.Value(one)
        answer = getattr(answer, one)
    for source, destination, is_answered in generator.ping(int(version[-1]), given.ping.requests):
        response = answer.responses.add(src_name=source, dst_ip=destination)
        response.result = response.Result.Enum.Value("succeeded" if is_answered else "failed")
    return found


def measured(generator: Generator, wanted: Message) -> Message:
    """The metrics of flows or ports. Raises Rejected: it is not possible."""
    coverage.check(wanted)
    kind = chosen(wanted, "port")
    found = messages.MetricsResponse(choice=messages.MetricsResponse.Choice.Enum.Value(f"{kind}_metrics"))
    if kind == "flow":
        each = generator.flow_metrics(list(wanted.flow.flow_names))
        found.flow_metrics.extend(_with_tags(_only(one, wanted.flow, "metric_names"), wanted.flow) for one in each)
    else:
        each = generator.port_metrics(list(wanted.port.port_names))
        found.port_metrics.extend(_only(one, wanted.port, "column_names") for one in each)
    return found


def _only(metric: Message, wanted: Message, names: str) -> Message:
    """The columns that were asked for, and by what a metric is known; none: all."""
    enum = wanted.DESCRIPTOR.fields_by_name[names].enum_type
    asked = {enum.values_by_number[number].name for number in getattr(wanted, names)}
    for field, _ in metric.ListFields() if asked else ():
        if field.name not in asked and field.name not in ("name", "port_tx", "port_rx", "tags", "tagged_metrics"):
            metric.ClearField(field.name)
    return metric


def _with_tags(metric: Message, wanted: Message) -> Message:
    """Only the tagged metrics that were asked for; without a filter all that are not 0."""
    given = wanted.tagged_metrics
    each = [] if given.HasField("include") and not given.include else list(metric.tagged_metrics)
    each = [one for one in each if one.frames_rx or given.include_empty_metrics]
    for number, filter_ in enumerate(given.filters):
        named = [{tag.name: tag.value for tag in one.tags} for one in each]
        if any(filter_.name not in tags for tags in named):
            place = f"flow.tagged_metrics.filters[{number}].name"
            raise Rejected(f"{place}: {metric.name} has no tag {filter_.name!r}")
        pairs = zip(each, named, strict=True)
        each = [one for one, tags in pairs if not filter_.values or _has(tags[filter_.name], filter_.values)]
    kept = [_only(one, given, "metric_names") for one in each]
    del metric.tagged_metrics[:]
    metric.tagged_metrics.extend(kept)
    return metric


def _has(value: Message, texts: Sequence[str]) -> bool:
    """Whether a tag's value is one of these: numbers are hexadecimal, with or without leading digits."""
    own = getattr(value, chosen(value))
    return any(text == own or text.lower().removeprefix("0x").lstrip("0") == own.lstrip("0") for text in texts)


def stated(generator: Generator, wanted: Message) -> Message:
    """The neighbours of devices. Raises Rejected: it is not possible."""
    coverage.check(wanted)
    kind = chosen(wanted, "ipv4_neighbors")
    found = messages.StatesResponse(choice=messages.StatesResponse.Choice.Enum.Value(kind))
    version = 4 if kind == "ipv4_neighbors" else 6
    for ethernet, address, mac in generator.neighbours(version, list(getattr(wanted, kind).ethernet_names)):
        one = getattr(found, kind).add(ethernet_name=ethernet)
        setattr(one, f"ipv{version}_address", address)
        if mac:
            one.link_layer_address = mac
    return found


def captured(generator: Generator, wanted: Message) -> bytes:
    coverage.check(wanted)
    return generator.captured(wanted.port_name)


def version(_generator: Generator, _wanted: None) -> Message:
    return messages.Version(api_spec_version=_ANY_VERSION, sdk_version=SPECIFICATION, app_version=__version__)


OPERATIONS = (
    Operation("SetConfig", "POST", "/config", messages.Config, Generator.set_configuration),
    Operation("GetConfig", "GET", "/config", None, lambda generator, _: generator.configuration),
    Operation("UpdateConfig", "PATCH", "/config", messages.ConfigUpdate, Generator.update),
    Operation("AppendConfig", "PATCH", "/config/append", messages.ConfigAppend, Generator.append),
    Operation("DeleteConfig", "PATCH", "/config/delete", messages.ConfigDelete, Generator.delete),
    Operation("SetControlState", "POST", "/control/state", messages.ControlState, controlled),
    Operation("SetControlAction", "POST", "/control/action", messages.ControlAction, acted),
    Operation("GetMetrics", "POST", "/monitor/metrics", messages.MetricsRequest, measured),
    Operation("GetStates", "POST", "/monitor/states", messages.StatesRequest, stated),
    Operation("GetCapture", "POST", "/monitor/capture", messages.CaptureRequest, captured),
    Operation("GetVersion", "GET", "/capabilities/version", None, version),
)
