# SPDX-License-Identifier: Apache-2.0
"""What clients control and ask: the configuration that is set, and the counts of its flows and ports."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from dutperf.engine.client import PROGRAM
from dutperf.errors import DutperfError
from dutperf.model import PREAMBLE_AND_GAP
from dutperf.otg import coverage, echo, flows, links, recorded
from dutperf.otg.flows import Flow
from dutperf.otg.links import Links
from dutperf.otg.model import Message, Rejected, messages, name_of
from dutperf.otg.port_links import PortLinks
from dutperf.otg.tags import split
from dutperf.otg.traffic import PAUSED, STARTED, STOPPED, Open, RunningFlow, Totals, Transmission, hosts_of, joined
from dutperf.otg.trial_log import TrialLog
from dutperf.setup.configuration import EngineSettings
from dutperf.tester import TesterError
from dutperf.watch.core_choice import is_here

POLL_S = 0.05
DRAIN_S = 0.5


class Generator:
    """What a client controls. Each method may be called from any thread.

    ``located``: the ports that there are, by the locations of clients. ``engine``: how the engine runs. ``log``: gets
    configurations and trials.
    """

    def __init__(
        self,
        located: Mapping[str, str],
        engine: EngineSettings,
        open_tester: Open,
        drain_s: float = DRAIN_S,
        log: TrialLog | None = None,
    ) -> None:
        self._located, self._engine, self._open_tester = located, engine, open_tester
        self._sent = Transmission(engine, open_tester, drain_s, log or TrialLog())
        self._port_links = PortLinks(engine)
        self._lock = threading.RLock()
        self._configuration: Message = messages.Config()
        self._ended = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="dutperf-otg", daemon=True)
        self._keeper.start()

    def close(self) -> None:
        """Stop the traffic, and give the ports back."""
        self._ended.set()
        self._keeper.join()
        with self._lock:
            self._sent.close()
            self._port_links.restore()

    def _keep(self) -> None:
        """Notice trials that end by themselves."""
        while not self._ended.wait(POLL_S):
            with self._lock, suppress(DutperfError):
                self._sent.settle()
                self._sent.show()

    # --- configuration --------------------------------------------------------------------------------

    @property
    def configuration(self) -> Message:
        return self._configuration

    def set_configuration(self, wanted: Message) -> list[str]:
        """Set it, and open its ports; traffic that runs is stopped. Returns warnings. Raises Rejected: it is not
        possible; the former one remains, and its traffic goes on. It pauses where the ports can never be opened, which
        is found out without those of the former one."""
        with self._lock:
            warnings, planned_links, planned_flows = self._planned(wanted)
            with self._port_links.restored():
                self._sent.set(planned_links, planned_flows, wanted, self._configuration)
            self._configuration = messages.Config()
            self._configuration.CopyFrom(wanted)
            return warnings + self._of_flows(planned_flows)

    def _planned(self, wanted: Message) -> tuple[list[str], Links, tuple[Flow, ...]]:
        """Warnings, ports and flows of a configuration. Raises Rejected: it is not possible."""
        warnings = coverage.check(wanted)
        planned_links = links.planned(wanted, self._located)
        planned_flows = flows.planned(wanted, planned_links)
        _check_captures(wanted, planned_links)
        return warnings, planned_links, planned_flows

    def _of_flows(self, planned: Sequence[Flow]) -> list[str]:
        """Warnings about these flows, and ports that could not be opened."""
        warnings = [text for one in planned for text in one.warnings]
        warnings += [self._sent.unanswered] if self._sent.unanswered else []
        if any(one.with_latency for one in planned):
            warnings.append("latency: from the sender's handover to the receiver's poll, whatever the mode")
        return warnings

    def _change_flows(self, made: Message) -> list[str]:
        """Set a configuration that differs in its flows alone. Returns warnings. Raises Rejected: it is not possible;
        nothing has changed."""
        warnings, planned_links, planned_flows = self._planned(made)
        warnings += self._sent.change(planned_links, planned_flows, made, self._configuration)
        self._configuration = made
        return warnings + self._of_flows(planned_flows)

    def _own_configuration(self) -> Message:
        """A copy, to be changed."""
        made = messages.Config()
        made.CopyFrom(self._configuration)
        return made

    def append(self, wanted: Message) -> list[str]:
        """Add flows to the configuration. Raises Rejected: see :meth:`set_configuration`."""
        coverage.check(wanted)
        with self._lock:
            made = self._own_configuration()
            for resources in wanted.config_append_list:
                made.flows.extend(resources.flows)
            return self._change_flows(made)

    def delete(self, wanted: Message) -> list[str]:
        """Delete flows by their names. Raises Rejected: see :meth:`set_configuration`."""
        coverage.check(wanted)
        unwanted = {name for resources in wanted.config_delete_list for name in resources.flows}
        with self._lock:
            made = self._own_configuration()
            if unknown := unwanted - {one.name for one in made.flows}:
                raise Rejected(f"flows: there is no {sorted(unknown)[0]!r}")
            for number in reversed(range(len(made.flows))):
                if made.flows[number].name in unwanted:
                    del made.flows[number]
            return self._change_flows(made)

    def update(self, wanted: Message) -> list[str]:
        """Change rate or size of flows. Raises Rejected: see :meth:`set_configuration`."""
        coverage.check(wanted)
        properties = [_property(wanted.flows, number) for number in wanted.flows.property_names]
        with self._lock:
            made = self._own_configuration()
            by_name = {one.name: one for one in made.flows}
            for one in wanted.flows.flows:
                if one.name not in by_name:
                    raise Rejected(f"flows: there is no {one.name!r}")
                for name in properties:
                    getattr(by_name[one.name], name).CopyFrom(getattr(one, name))
            return self._change_flows(made)

    # --- traffic --------------------------------------------------------------------------------------

    def transmit(self, state: str, names: Sequence[str]) -> list[str]:
        """``start``, ``stop``, ``pause`` or ``resume`` flows; no names: all. Returns warnings. Raises Rejected: an
        unknown flow, or the ports cannot be opened."""
        with self._lock:
            wanted = [name for parts in self._chosen(names, "traffic.flow_transmit").values() for name in parts]
            if not wanted:
                raise Rejected("traffic.flow_transmit: no flow is configured")
            senders = [self._sent.flows[name].flow.tx for name in wanted]
            if state in ("start", "resume") and (off := [port for port in senders if port in self._port_links.down]):
                raise Rejected(f"traffic.flow_transmit: the link of {off[0]} is down")
            return self._sent.transmit(state, wanted)

    def _chosen(self, names: Sequence[str], where: str) -> Mapping[str, list[str]]:
        """The parts of these flows; no names: of all. Raises Rejected: an unknown one."""
        parts: dict[str, list[str]] = {}
        for name, one in self._sent.flows.items():
            parts.setdefault(one.flow.of, []).append(name)
        if unknown := [one for one in names if one not in parts]:
            raise Rejected(f"{where}.flow_names: there is no flow {unknown[0]!r}")
        return {name: parts[name] for name in parts if not names or name in names}

    def verdicts(self) -> list[dict[str, Any]]:
        """Of each trial since the configuration was set, oldest first: flows, verdict, causes and all counts."""
        with self._lock:
            self._sent.settle()
            return self._sent.log.verdicts()

    # --- what clients ask -----------------------------------------------------------------------------

    def flow_metrics(self, names: Sequence[str]) -> list[Message]:
        """Of the flows that report any, and no names: of all these."""
        with self._lock:
            self._sent.settle()
            each = [[self._sent.flows[name] for name in parts] for parts in self._chosen(names, "flow").values()]
            return [self._flow_metric(parts) for parts in each if parts[0].flow.is_reported]

    def _flow_metric(self, parts: Sequence[RunningFlow]) -> Message:
        flow = parts[0].flow
        sent, received, sent_bytes, received_bytes = map(sum, zip(*map(self._sent.so_far, parts), strict=True))
        sent_fps, received_fps = map(sum, zip(*map(self._sent.rates, parts), strict=True))
        mean = flow.stream.mean_size
        metric = messages.FlowMetric(
            name=flow.of,
            port_tx=", ".join(dict.fromkeys(one.flow.tx for one in parts)),
            port_rx=", ".join(dict.fromkeys(port for one in parts for port in (one.flow.rx, *one.flow.also_rx))),
            transmit=messages.FlowMetric.Transmit.Enum.Value(_state(parts)),
            frames_tx=sent,
            frames_rx=received,
            bytes_tx=round(sent_bytes),
            bytes_rx=round(received_bytes),
            frames_tx_rate=sent_fps,
            frames_rx_rate=received_fps,
        )
        for way, fps in (("tx", sent_fps), ("rx", received_fps)):
            setattr(metric, f"{way}_l1_rate_bps", fps * (mean + PREAMBLE_AND_GAP) * 8)
            setattr(metric, f"{way}_rate_bytes", fps * mean)
            for unit, factor in (("bps", 1), ("kbps", 1e3), ("mbps", 1e6)):
                setattr(metric, f"{way}_rate_{unit}", fps * mean * 8 / factor)
        if flow.with_loss:
            metric.loss = max(0.0, 100 * sum(map(self._sent.lost, parts)) / sent) if sent else 0.0
        totals = joined([one.totals for one in parts])
        if flow.with_times and totals.first_ns is not None and totals.last_ns is not None:
            metric.timestamps.first_timestamp_ns, metric.timestamps.last_timestamp_ns = totals.first_ns, totals.last_ns
        if flow.by_port:
            metric.tagged_metrics.extend(self._at_ports(parts))
        metric.tagged_metrics.extend(_by_tags(flow, totals))
        if flow.with_latency and totals.latency_ns is not None:
            least, most, total, number = totals.latency_ns
            metric.latency.minimum_ns, metric.latency.maximum_ns = least, most
            metric.latency.average_ns = min(most, max(least, total / number))
        return metric

    def _at_ports(self, parts: Sequence[RunningFlow]) -> Iterator[Message]:
        """What arrived at each of its ports, by the model's predefined tag."""
        for port in dict.fromkeys(port for one in parts for port in (one.flow.rx, *one.flow.also_rx) if port):
            frames = sum(self._sent.received_at(one, port) for one in parts)
            yield _tagged({"rx_name": {"str": port}}, frames, parts[0].flow.stream.mean_size)

    def port_metrics(self, names: Sequence[str]) -> list[Message]:
        """Of the ports; no names: of all."""
        with self._lock:
            self._sent.settle()
            for one in names:
                self._sent.links.port(one, "port.port_names")
            return [self._port_metric(name) for name in self._sent.links.locations if not names or name in names]

    def _port_metric(self, name: str) -> Message:
        each = list(self._sent.flows.values())
        leaving = [self._sent.so_far(one) for one in each if one.flow.tx == name]
        left_fps = sum(self._sent.rates(one)[0] for one in each if one.flow.tx == name)
        received, received_bytes, arrived_fps = self._arriving(name)
        is_sending = any(one.state == STARTED for one in each if one.flow.tx == name)
        known = self._sent.opened().get(self._sent.links.ours[name], {})
        is_up = known.get("link_up") and name not in self._port_links.down
        sent, sent_bytes = sum(one[0] for one in leaving), sum(one[2] for one in leaving)
        metric = messages.PortMetric(
            name=name,
            location=self._sent.links.locations[name],
            link=messages.PortMetric.Link.Enum.Value("up" if is_up else "down"),
            capture=messages.PortMetric.Capture.Enum.Value(STARTED if name in self._sent.capturing else STOPPED),
            transmit=messages.PortMetric.Transmit.Enum.Value(STARTED if is_sending else STOPPED),
            frames_tx=sent,
            frames_rx=received,
            bytes_tx=round(sent_bytes),
            bytes_rx=round(received_bytes),
            frames_tx_rate=left_fps,
            frames_rx_rate=arrived_fps,
            bytes_tx_rate=left_fps * sent_bytes / sent if sent else 0.0,
            bytes_rx_rate=arrived_fps * received_bytes / received if received else 0.0,
        )
        if speed := known.get("link_mbps") or self._sent.links.speeds.get(name):
            metric.speed = speed
        return metric

    def _arriving(self, port: str) -> tuple[int, float, float]:
        """Frames, bytes and frames/s of all flows there; of a flow to several ports by its shares of frames."""
        frames, octets, fps = 0, 0.0, 0.0
        for one in self._sent.flows.values():
            here, (_, received, _, received_bytes) = self._sent.received_at(one, port), self._sent.so_far(one)
            share = here / received if received else 0.0
            frames += here
            octets += received_bytes * share
            fps += self._sent.rates(one)[1] * share
        return frames, octets, fps

    def neighbours(self, version: int, ethernets: Sequence[str]) -> list[tuple[str, str, str]]:
        """Of each gateway: the interface's name, its address and its MAC address; empty: it has not answered. Raises
        Rejected: an unknown interface."""
        with self._lock:
            if unknown := [one for one in ethernets if one not in self._sent.links.interfaces]:
                raise Rejected(f"ipv{version}_neighbors.ethernet_names: there is no interface {unknown[0]!r}")
            self._sent.retry()
            opened, found = self._sent.opened(), list[tuple[str, str, str]]()
            for one in self._sent.links.neighbours:
                if one.version == version and (not ethernets or one.ethernet in ethernets):
                    known = hosts_of(opened.get(one.port, {}))
                    mac = known[one.host].get(f"dut_mac{version}", "") if one.host < len(known) else ""
                    found.append((one.ethernet, one.address, mac))
            return found

    def ping(self, version: int, requests: Sequence[Message]) -> list[tuple[str, str, bool]]:
        """Of each request: the device's name, the address, and whether this answers. Raises Rejected: it is not
        possible, or frames are sent or captured now."""
        where = f"protocol.ipv{version}.ping.requests"
        with self._lock:
            each = [echo.planned(one, version, f"{where}[{n}]", self._sent.links) for n, one in enumerate(requests)]
            if not each:
                raise Rejected(f"{where}: there is none")
            self._check_here(where, "pings")
            with self._sent.ports_free():
                return [(one.source_name, one.destination, self._is_answered(one)) for one in each]

    def _check_here(self, where: str, what: str) -> None:
        """Raises Rejected: the engine runs on another machine, and its files of captured frames are there."""
        if not is_here([*self._engine.command, PROGRAM]):
            first = self._engine.command[0]
            raise Rejected(f"{where}: {what} need the engine on this machine: engine.command has {first}", code=501)

    def _is_answered(self, one: echo.Ping) -> bool:
        try:
            return echo.is_answered(one, self._engine, self._open_tester)
        except TesterError as error:
            raise self._sent.in_their_words(error) from None

    # --- links ----------------------------------------------------------------------------------------

    def link(self, state: str, names: Sequence[str]) -> list[str]:
        """Take the links of ports ``up`` or ``down``; no names: of all. Until the next configuration. Returns warnings.
        Raises Rejected: an unknown port, one that is no interface of the kernel, or one that sends now: its frames
        would wait in the kernel until the link is up."""
        with self._lock:
            self._sent.settle()
            planned = self._sent.links
            wanted = [planned.port(one, "port.link.port_names") for one in names] or list(planned.locations)
            if not wanted:
                raise Rejected("port.link: no port is configured")
            sending = [one for one in self._sent.sending() if self._sent.flows[one].flow.tx in wanted]
            if state == "down" and sending:
                raise Rejected(f"port.link.port_names: {sending[0]} is sent from such a port: stop it first")
            self._port_links.switch(state, {name: planned.sides[planned.ours[name]].port for name in wanted})
            return []

    # --- captures -------------------------------------------------------------------------------------

    def capture(self, state: str, names: Sequence[str]) -> list[str]:
        """``start`` or ``stop`` to capture what arrives at ports; no names: at all that are configured to."""
        with self._lock:
            configured = {name for one in self._configuration.captures for name in one.port_names}
            for one in names:
                self._sent.links.port(one, "port.capture.port_names")
            if unconfigured := [one for one in names if one not in configured]:
                raise Rejected(f"port.capture.port_names: no capture is configured for {unconfigured[0]}")
            wanted = frozenset(names or configured)
            if not wanted:
                raise Rejected("port.capture: no capture is configured")
            if state == "stop":
                return self._sent.end_capture(wanted)
            self._check_here("port.capture", "captures")
            return self._sent.begin_capture(wanted)

    def captured(self, name: str) -> bytes:
        """A capture file of what arrived at a port since its capture was started. Raises Rejected: nothing was captured
        there, or frames are still being captured."""
        with self._lock:
            self._sent.links.port(name, "port_name")
            settings = next((one for one in self._configuration.captures if name in one.port_names), None)
            if settings is None:
                raise Rejected(f"port_name: no capture is configured for {name}")
            files = self._sent.captured(name)
            snap = settings.packet_size or None
            is_new = settings.HasField("format") and name_of(settings, "format") == "pcapng"
            port = self._sent.links.ours[name]
        return recorded.file_of(files, port, snap=snap, is_new=is_new)  # it takes long: others are answered meanwhile


def _by_tags(flow: Flow, totals: Totals) -> Iterator[Message]:
    """What arrived by the values of the flow's tags; those beyond the number that is counted last."""
    for value, frames in sorted(totals.tracked.items(), key=lambda one: (one[0] is None, one[0])):
        if value is None:
            tags = {one.name: {"str": "other"} for one in flow.tags}
        else:
            tags = {name: {"hex": text} for name, text in split(flow.tags, value).items()}
        yield _tagged(tags, frames, flow.stream.mean_size)


def _tagged(tags: Mapping[str, Mapping[str, str]], frames: int, mean_size: float) -> Message:
    """Received frames by tags: of each name the kind of its value and that."""
    metric = messages.FlowTaggedMetric(frames_rx=frames, bytes_rx=round(frames * mean_size))
    for name, value in tags.items():
        [(kind, text)] = value.items()
        given = metric.tags.add(name=name).value
        given.choice = given.Choice.Enum.Value(kind)
        setattr(given, kind, text)
    return metric


def _state(parts: Sequence[RunningFlow]) -> str:
    """Of a flow by those of its parts, which may end one after the other."""
    states = {one.state for one in parts}
    return next((one for one in (STARTED, PAUSED) if one in states), STOPPED)


def _property(update: Message, number: int) -> str:
    enum = update.DESCRIPTOR.fields_by_name["property_names"].enum_type
    name: str = enum.values_by_number[number].name
    if name not in ("rate", "size"):
        raise Rejected(f"flows.property_names: {name} is not covered")
    return name


def _check_captures(configuration: Message, planned: Links) -> None:
    seen: set[str] = set()
    for number, one in enumerate(configuration.captures):
        for name in one.port_names:
            planned.port(name, f"captures[{number}].port_names")
            if name in seen:
                raise Rejected(f"captures[{number}].port_names: {name} has another capture already")
            seen.add(name)
