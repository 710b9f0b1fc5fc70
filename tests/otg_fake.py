# SPDX-License-Identifier: Apache-2.0
"""A server of the Open Traffic Generator API without ports, in real time, which can be made to lie."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DUT_MAC = "02:00:00:00:00:99"


@dataclass
class FakeOtg:
    """What it does; by default all frames arrive at once, at the rate that was asked for."""

    loss: float = 0.0
    """Share of the sent frames that do not arrive."""
    sends: float = 1.0
    """Share of the frames that it sends at all."""
    speed: float = 1.0
    """Its rate, as a share of the one that was asked for."""
    pause_s: tuple[float, float] | None = None
    """Between these times it sends nothing, and then all that is due."""
    receives_after_s: float = 0.0
    """When frames are counted as received."""
    stops: bool = True
    answers: bool = True
    """Whether the gateways do."""
    dies_after_s: float | None = None
    """It closes connections without an answer so long after the start of the flows."""
    replaced_after_s: float | None = None
    """Another client sets its own flows."""
    restarts: bool = False
    """Another client starts the flows again as soon as somebody has seen that they are sent."""
    error: tuple[str, int, str] | None = None
    """The path that is answered with an error, its status and the text."""
    token: str = ""
    without: str = ""
    """A metric that it does not have."""
    port: dict[str, Any] = field(default_factory=dict)
    """Metrics of each port instead of the right ones."""
    others: tuple[str, ...] = ()
    """Flows of another client that are sent all the time."""
    requests: list[tuple[str, Any]] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    began_s: float | None = None
    stopped_s: float | None = None
    has_restarted: bool = False

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        self.requests.append((path, body))
        if self.error is not None and path == self.error[0]:
            return self.error[1], {"code": self.error[1], "kind": "validation", "errors": [self.error[2]]}
        known = {
            "/capabilities/version": lambda: {"api_spec_version": "1.60.0", "app_version": "fake"},
            "/config": lambda: self._set(body),
            "/control/state": lambda: self._control(body),
            "/monitor/states": lambda: self._states(body["choice"]),
            "/monitor/metrics": lambda: self._metrics(body["choice"]),
        }
        if path not in known:
            return 404, {"code": 404, "kind": "validation", "errors": ["not here"]}
        return 200, known[path]()

    @property
    def is_dead(self) -> bool:
        return self._since(self.dies_after_s)

    def _since(self, after_s: float | None) -> bool:
        return after_s is not None and self.began_s is not None and time.monotonic() - self.began_s >= after_s

    def _set(self, config: Any) -> dict[str, Any]:
        self.config, self.began_s, self.stopped_s, self.has_restarted = config, None, None, False
        return {"warnings": []}

    def _control(self, body: Any) -> dict[str, Any]:
        if body["choice"] == "traffic":
            if body["traffic"]["flow_transmit"]["state"] == "start":
                self.began_s = time.monotonic()
            else:
                self.stopped_s = time.monotonic()
        return {"warnings": []}

    def _states(self, kind: str) -> dict[str, Any]:
        names = [one["name"] for device in self.config["devices"] for one in device["ethernets"]]
        mac = {"link_layer_address": DUT_MAC} if self.answers else {}
        return {"choice": kind, kind: [{"ethernet_name": name, **mac} for name in names]}

    def _metrics(self, kind: str) -> dict[str, Any]:
        flows = [self._flow(one) for one in self.config.get("flows", ())]
        if self._since(self.replaced_after_s):
            flows = []
        if kind == "flow":
            self.has_restarted |= self.restarts and any(int(one.get("frames_tx", 0)) for one in flows)
            others = [{"name": name, "transmit": "started", "frames_tx": "1", "frames_rx": "0"} for name in self.others]
            return {"choice": "flow_metrics", "flow_metrics": [*flows, *others]}
        return {
            "choice": "port_metrics",
            "port_metrics": [self._port(one["name"], flows) for one in self.config["ports"]],
        }

    def _port(self, name: str, flows: list[dict[str, Any]]) -> dict[str, Any]:
        ends = [flow["tx_rx"]["port"] for flow in self.config.get("flows", ())]
        each = list(zip(ends, flows, strict=False))  # none where another client has replaced them
        sent = sum(int(one.get("frames_tx", 0)) for end, one in each if end["tx_name"] == name)
        received = sum(int(one.get("frames_rx", 0)) for end, one in each if end["rx_names"] == [name])
        return {"name": name, "link": "up", "frames_tx": str(sent), "frames_rx": str(received)} | self.port

    def _flow(self, flow: Any) -> dict[str, Any]:
        packets, pps = flow["duration"]["fixed_packets"]["packets"], flow["rate"]["pps"] * self.speed
        now_s = self.stopped_s or time.monotonic()
        elapsed_s = now_s - self.began_s if self.began_s is not None else 0.0
        if self.pause_s is not None and self.pause_s[0] < elapsed_s < self.pause_s[1]:
            elapsed_s = self.pause_s[0]
        total = int(packets * self.sends)
        sent = 0 if self.has_restarted else min(total - self.restarts, int(elapsed_s * pps))
        is_over = sent == total and self.stops
        arrived_s = max(0.0, elapsed_s - self.receives_after_s)
        received = int(min(total, arrived_s * pps) * (1 - self.loss))
        state = "stopped" if self.began_s is None or is_over or self.stopped_s else "started"
        counts = {"name": flow["name"], "transmit": state, "frames_tx": str(sent), "frames_rx": str(received)}
        return {name: value for name, value in counts.items() if name != self.without}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one segment for an answer: the client acknowledges a second one 40 ms later
    fake: FakeOtg

    def log_message(self, *_: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body: Any) -> None:
        path, token = self.path, self.fake.token
        if self.fake.is_dead:
            self.close_connection = True
        elif not token:
            self._send(*self.fake.answer(path, body))
        elif self.headers.get("Authorization") == f"Bearer {token}" or path.startswith(f"/{token}/"):
            self._send(*self.fake.answer(path.removeprefix(f"/{token}"), body))
        else:
            self._send(401, {"code": 401, "kind": "validation", "errors": ["token"]})

    def _send(self, status: int, members: Any) -> None:
        data = json.dumps(members).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serving(fake: FakeOtg) -> Iterator[str]:
    """Its address."""
    handler = type("Handler", (_Handler,), {"fake": fake})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
