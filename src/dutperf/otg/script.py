# SPDX-License-Identifier: Apache-2.0
"""A configuration of the Open Traffic Generator API as a script for snappi, to be read, changed and run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from dutperf.otg.model import Message, chosen, name_of

_HEAD = '''"""Flows of the Open Traffic Generator API, made by dutperf convert from the streams of {origin}.

python THIS.py https://127.0.0.1:8443 {locations}
"""

import argparse
import time

import snappi

PORTS = ({ports})


def configured(api: snappi.Api, locations: list[str]) -> snappi.Config:
    configuration = api.config()
    for name, location in zip(PORTS, locations, strict=True):
        configuration.ports.add(name=name, location=location)
'''
_TAIL = """    return configuration


def transmit(api: snappi.Api, wanted: str) -> None:
    state = api.control_state()
    state.traffic.flow_transmit.state = wanted
    for text in api.set_control_state(state).warnings:
        print("warning:", text)


def metrics(api: snappi.Api) -> list[snappi.FlowMetric]:
    request = api.metrics_request()
    request.flow.flow_names = []
    return list(api.get_metrics(request).flow_metrics)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    parser.add_argument("locations", nargs=len(PORTS))
{options}    given = parser.parse_args()
    api = snappi.api(location=given.server)
    for text in api.set_config(configured(api, given.locations)).warnings:
        print("warning:", text)
    transmit(api, "start")
{wait}    for one in metrics(api):
        print(f"{{one.name}}: {{one.frames_tx}} sent, {{one.frames_rx}} received, loss {{one.loss:g}} %")


if __name__ == "__main__":
    main()
"""
_UNTIL_STOPPED = """    while any(one.transmit != "stopped" for one in metrics(api)):
        time.sleep(0.1)
"""
_FOR_A_WHILE = """    time.sleep(given.seconds)  # some flows have no end
    transmit(api, "stop")
"""
_SECONDS = """    parser.add_argument("--seconds", type=float, default=60, help="until the flows are stopped (60)")
"""


def script_of(configuration: Message, origin: str) -> str:
    """The text; ``origin`` is the name of the file that the configuration was made of. Locations of its ports are
    arguments of the script."""
    names = [one.name for one in configuration.ports]
    lines = [line for one in configuration.devices for line in _added("configuration", "devices", one)]
    lines += [line for one in configuration.flows for line in _flow(one)]
    body = "".join(f"    {line}\n" if line else "\n" for line in lines)
    is_endless = any(_is_endless(one) for one in configuration.flows)
    head = _HEAD.format(
        origin=ascii(origin)[1:-1],
        locations=" ".join(f"LOCATION-{name}" for name in names),
        ports=", ".join(map(_text, names)),
    )
    tail = _TAIL.format(options=_SECONDS if is_endless else "", wait=_FOR_A_WHILE if is_endless else _UNTIL_STOPPED)
    return head + body + tail


def _is_endless(flow: Message) -> bool:
    kind = chosen(flow.duration, "continuous")
    return kind == "continuous" or (kind == "burst" and not flow.duration.burst.bursts)


def _flow(flow: Message) -> Iterator[str]:
    yield ""
    yield f"flow = configuration.flows.add(name={_text(flow.name)})"
    yield from _members("flow.tx_rx", flow.tx_rx)
    kinds = [chosen(one) for one in flow.packet]
    seen, names = Counter[str](), []
    for kind in kinds:
        seen[kind] += 1
        names.append(kind if seen[kind] == 1 else f"{kind}_{seen[kind]}")
    chain = "".join(f".{kind}()" for kind in kinds)
    yield f"{', '.join(names)}{',' if len(names) == 1 else ''} = flow.packet{chain}"
    for name, kind, one in zip(names, kinds, flow.packet, strict=True):
        yield from _members(name, getattr(one, kind))
    for part in ("size", "rate", "duration", "metrics"):
        yield from _members(f"flow.{part}", getattr(flow, part))


def _members(path: str, message: Message) -> Iterator[str]:
    """Assignments of all that a message has."""
    for field, value in message.ListFields():
        place = f"{path}.{field.name}"
        if field.name == "choice":
            continue
        if field.message_type is None:
            yield f"{place} = {_shown(message, field, value)}"
        elif field.is_repeated:
            for one in value:
                yield from _added(path, field.name, one)
        elif value.ListFields():
            yield from _members(place, value)
        else:
            yield f"{path}.choice = {_text(field.name)}"


def _added(path: str, name: str, message: Message) -> Iterator[str]:
    """One more of a list, under the name of its kind where it has more than scalars."""
    scalars = [(field, value) for field, value in message.ListFields() if field.message_type is None]
    given = ", ".join(f"{field.name}={_shown(message, field, value)}" for field, value in scalars)
    call = f"{path}.{name}.add({given})"
    if len(scalars) == len(message.ListFields()):
        yield call
        return
    own = {"ipv4_addresses": "ipv4", "ipv6_addresses": "ipv6"}.get(name, name.removesuffix("s"))
    yield f"{own} = {call}"
    for field, value in message.ListFields():
        if field.message_type is not None and field.is_repeated:
            for one in value:
                yield from _added(own, field.name, one)
        elif field.message_type is not None:
            yield from _members(f"{own}.{field.name}", value)


def _shown(message: Message, field: Any, value: Any) -> str:
    if field.is_repeated:
        return f"[{', '.join(map(_text, value))}]"
    return _text(name_of(message, field.name) if field.enum_type is not None else value)


def _text(value: Any) -> str:
    """As Python has it. Numbers of 32 bits have seven digits, and those of 64 bits here no more than fit."""
    if isinstance(value, float):
        value = float(f"{value:.7g}")
        return str(int(value) if value.is_integer() else value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
