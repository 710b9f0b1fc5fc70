# SPDX-License-Identifier: Apache-2.0
"""An engine for tests of its client: a program that speaks the protocol, behaves as its first
argument says, and sends no frames.

``replay:NAME`` answers as the golden transcript has it, and ends with status 9 where the client
does not say what stands there. Every other name is a method of :class:`Engine` that answers ``run``
in one way, most of them a bad one. $FAKE_ENGINE_STARTS counts the starts.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).parents[1]))

from fakes import transcript

UNEXPECTED = 9
RINGS = {"transmit_ring": 1, "receive_ring": 1}
PORT = {
    "port": "null",
    "driver": "fake",
    "mac": "02:00:00:00:00:01",
    "numa_node": -1,
    "link_up": True,
    "link_mbps": 0,
    **RINGS,
    "offloads_available": [],
    "flow_control": None,
}
OPENED = {
    "left": PORT,
    "right": PORT,
    "queues": 1,
    "offloads": [],
    "roles": {"forward_send": 0, "forward_receive": 0, "reverse_send": 0, "reverse_receive": 0},
    "memory": {"mode": "no_huge_pages", "page_kb": 4},
    "tsc_hz": 1_000_000_000,
    "tsc_skew_ns": None,
    "warnings": [],
}


def say(request: int | None, event: str, **members: Any) -> None:
    """Write one event."""
    print(json.dumps({"id": request, "event": event, **members}), flush=True)


class Engine:
    """Answers one request after the other."""

    protocol = 1
    clock_s: float | None = None
    """When sending begins; None: at the result."""

    def __init__(self, starts: int) -> None:
        self.starts = starts
        self.running: tuple[int, dict[str, Any]] | None = None

    def hello(self, request: int, _params: Any) -> None:
        say(request, "hello", protocol=self.protocol, engine="fake", dpdk="none", cores=[0])

    def open(self, request: int, _params: Any) -> None:
        say(request, "opened", **OPENED)

    def run(self, request: int, trial: dict[str, Any]) -> None:
        """The trial takes no time and loses nothing."""
        self.result(request, trial)

    def load(self, request: int, params: Any) -> None:
        sizes = [len(one["bytes"]) // 2 for one in params["frames"]]
        say(request, "loaded", frames=len(sizes), bytes=sum(sizes), tagged=0)

    def stop(self, request: int, _params: Any) -> None:
        say(request, "stopped")
        if self.running is not None:
            (run, trial), self.running = self.running, None
            self.result(run, trial, outcome="stopped")

    def result(self, request: int, trial: dict[str, Any], outcome: str = "completed", **changes: Any) -> None:
        directions = {name: counts(trial, name) | changes for name in ("forward", "reverse") if name in trial}
        links = {
            "link_changes": {"left": 0, "right": 0},
            "link_up": {"left": True, "right": True},
            "dut_answered": {"left": True, "right": True},
        }
        links["link_down"] = {"left": False, "right": False}
        began_s = time.monotonic() if self.clock_s is None else self.clock_s
        seen = directions | self.neighbours()
        say(request, "result", trial=trial["trial"], outcome=outcome, began_s=began_s, **links, **seen)

    def neighbours(self) -> dict[str, Any]:
        """What ARP and Neighbour Discovery showed."""
        return {}


def _sending_ns(stream: dict[str, Any], duration_ns: int) -> int:
    """Of flows that begin one after the other, the mean of all."""
    pattern = stream.get("pattern", {})
    if pattern.get("kind") != "joining":
        return duration_ns
    flows = pattern["flows"]
    return -(-sum(max(0, duration_ns - flow * pattern["apart_ns"]) for flow in range(flows)) // flows)


def counts(trial: dict[str, Any], direction: str) -> dict[str, Any]:
    """Everything was sent in time and arrived."""
    stream = trial[direction]
    frames = -(-stream["rate_fps"] * _sending_ns(stream, trial["duration_ns"]) // 1_000_000_000)
    sent = stream["replay"]["frames"] if "replay" in stream else frames
    quantiles = {"p50": 1.0, "p99": 2.0, "p999": 3.0, "max": 4.0}
    stamped = {"none": None, "every": sent, "tagged": trial.get("tagged", {}).get("count")}[
        trial.get("stamping", "none")
    ]
    delays = (
        {}
        if stamped is None
        else {"delay_us": {"min": 0.5, **quantiles}, "stamped_sent": stamped, "stamped_received": stamped, "late": 0}
    )
    return {
        "intended": sent,
        "sent": sent,
        "received": sent,
        "foreground_sent": sent,
        "background_sent": 0,
        "foreground_received": sent,
        "background_received": 0,
        "duplicates": 0,
        "out_of_order": 0,
        "stale": 0,
        "corrupted": 0,
        "send_time_s": trial["duration_ns"] / 1e9,
        "lateness_us": quantiles,
        "stall_us": {"sender": 1.0, "receiver": 1.0},
        "not_accepted": 0,
        "tester_drops": {},
        "dut_input_drops": 0,
        "other_received": {},
        **delays,
    }


class Drops(Engine):
    """The tester itself lost frames."""

    def run(self, request: int, trial: dict[str, Any]) -> None:
        self.result(request, trial, received=1, tester_drops={"nic_missed": 3})


class AsksInVain(Engine):
    """The DUT has two next hops, one of which nobody is."""

    def neighbours(self) -> dict[str, Any]:
        asked = {"target": "198.19.0.3", "asker": "198.19.0.1", "requests": 3}
        return {"neighbours": {"right": {"requests": 3, "unanswered": [asked], "moved": [], "conflicts": []}}}

    def run(self, request: int, trial: dict[str, Any]) -> None:
        self.result(request, trial, received=self.received(counts(trial, "forward")["sent"], trial))

    def received(self, sent: int, _trial: dict[str, Any]) -> int:
        return sent // 2


class Fragments(Engine):
    """The DUT forwards half of the frames in fragments."""

    def run(self, request: int, trial: dict[str, Any]) -> None:
        half = counts(trial, "forward")["sent"] // 2
        self.result(request, trial, received=half, other_received={"fragment": half})


class AsksForItsTimeServer(AsksInVain):
    """The DUT asks for another host, and forwards 500 frames a second."""

    def received(self, sent: int, trial: dict[str, Any]) -> int:
        return sent if trial["forward"]["rate_fps"] <= 500 else sent // 2


class AsksOnce(AsksForItsTimeServer):
    """... and asks only in the first trial."""

    trials = 0

    def neighbours(self) -> dict[str, Any]:
        self.trials += 1
        return super().neighbours() if self.trials == 1 else {}


class HeardLate(Engine):
    """Its events arrive 0.2 s late."""

    def run(self, request: int, trial: dict[str, Any]) -> None:
        self.clock_s = time.monotonic()
        time.sleep(0.2)
        say(request, "progress", elapsed_s=0.0)
        self.result(request, trial)


class OfAnotherMachine(HeardLate):
    """Its clock is another one."""

    def result(self, request: int, trial: dict[str, Any], outcome: str = "completed", **changes: Any) -> None:
        self.clock_s = time.monotonic() - 1_000.0
        super().result(request, trial, outcome, **changes)


class Deaf(Engine):
    """The DUT forwards nothing."""

    def run(self, request: int, trial: dict[str, Any]) -> None:
        self.result(request, trial, received=0, foreground_received=0)


class ShortOfAnother(Engine):
    """Reports a result that belongs to another trial."""

    def run(self, request: int, trial: dict[str, Any]) -> None:
        self.result(request, trial | {"trial": trial["trial"] + 1})


class Dies(Engine):
    """Its first life ends in the middle of the first trial."""

    def run(self, request: int, trial: dict[str, Any]) -> None:
        if self.starts > 1:
            super().run(request, trial)
            return
        say(request, "progress", elapsed_s=1.0, forward={"sent": 5, "received": 4})
        print("a thing that should not have happened", file=sys.stderr, flush=True)
        os._exit(7)


class Killed(Engine):
    """Likewise, by a signal and without a word."""

    def run(self, request: int, trial: dict[str, Any]) -> None:
        if self.starts > 1:
            super().run(request, trial)
            return
        os.kill(os.getpid(), signal.SIGSEGV)


class Hangs(Engine):
    """Its first life says nothing any more once a trial runs, and obeys neither the end of input
    nor SIGTERM."""

    def run(self, request: int, trial: dict[str, Any]) -> None:
        if self.starts > 1:
            super().run(request, trial)
            return
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(1)


class Endless(Engine):
    """Its first life reports progress without end."""

    def run(self, request: int, trial: dict[str, Any]) -> None:
        if self.starts > 1:
            super().run(request, trial)
            return
        while True:
            say(request, "progress", elapsed_s=1.0)
            time.sleep(0.02)


class Waits(Engine):
    """A trial runs until it is stopped."""

    def run(self, request: int, trial: dict[str, Any]) -> None:
        if self.running is not None:
            say(request, "error", code="busy", message="a trial is running")
            return
        self.running = (request, trial)
        say(request, "progress", elapsed_s=0.1, forward={"sent": 5, "received": 4})


class Reporting(Engine):
    """A trial says every tenth of its time how it goes, and ends when it is told to, or by itself."""

    so_far: ClassVar[dict[str, Any]] = {}
    link_down = False
    beside: ClassVar[dict[str, Any]] = {}
    lost_of_10 = 0

    def run(self, request: int, trial: dict[str, Any]) -> None:
        self.running = (request, trial)
        for tenth in range(1, 10):
            sent = 100 * tenth
            calm = {
                "sent": sent,
                "received": sent - sent * self.lost_of_10 // 10,
                "max_lateness_us": 5.0,
                "tester_drops": 0,
            }
            forward = calm | {"nic_clock_us": 0.0} | (self.so_far if tenth > 2 else {})
            link_down = {"left": self.link_down, "right": False}
            say(request, "progress", elapsed_s=tenth / 10, link_down=link_down, forward=forward, **self.beside)
            if select.select([sys.stdin], [], [], 0.05)[0]:
                return
        self.running = None
        self.result(request, trial)

    def stop(self, request: int, params: Any) -> None:
        if self.running is not None and params != {"drain": True}:
            sys.exit(UNEXPECTED)
        super().stop(request, params)

    def result(self, request: int, trial: dict[str, Any], outcome: str = "completed", **changes: Any) -> None:
        whole = outcome == "completed"
        super().result(request, trial, outcome, **({} if whole else {"sent": 500, "received": 500}) | changes)


class Dropping(Reporting):
    so_far: ClassVar[dict[str, Any]] = {"tester_drops": 3}


class Late(Reporting):
    so_far: ClassVar[dict[str, Any]] = {"max_lateness_us": 60_000.0}


class LinkDown(Reporting):
    link_down = True


class PortGone(Reporting):
    beside: ClassVar[dict[str, Any]] = {"port_changes": {"right": "r0 is gone"}}


class ClockSet(Reporting):
    so_far: ClassVar[dict[str, Any]] = {"nic_clock_us": 5_000.0}


class Lossy(Reporting):
    lost_of_10 = 5


class LateAndLossy(Lossy):
    so_far: ClassVar[dict[str, Any]] = {"max_lateness_us": 20_000.0}


class Overdue(Reporting):
    """What is missing may still be under way."""

    so_far: ClassVar[dict[str, Any]] = {"max_lateness_us": 20_000.0}


class Old(Engine):
    """Speaks another protocol."""

    protocol = 0


class Unhelpful(Engine):
    """Its ports offer no hardware offloads."""

    def open(self, request: int, params: Any) -> None:
        missing = params.get("offloads")
        if missing:
            say(
                request,
                "error",
                code="port_unavailable",
                message=f"the left port does not offer {missing[0]}",
                field="offloads",
            )
        else:
            super().open(request, params)


class NoAnswer(Engine):
    """The DUT does not answer ARP."""

    def open(self, request: int, _params: Any) -> None:
        say(request, "error", code="no_answer", message="198.18.0.1 does not answer ARP", field="left.gateway4")


class ShortMtu(Engine):
    """The MTU of a port is 1,000 bytes."""

    def open(self, request: int, params: Any) -> None:
        size = params["max_frame_size"]
        why = f"the MTU of r0 is 1000, frames of {size} bytes need {size - 18}"
        if size > 1018:
            say(request, "error", code="port_unavailable", message=why, field="right.port", max_frame_size=1018)
        else:
            super().open(request, params)


class Refuses(Engine):
    """Refuses every trial."""

    def run(self, request: int, _trial: dict[str, Any]) -> None:
        say(request, "error", code="bad_request", message="is too fast", field="params.forward.rate_fps")


class Mute(Engine):
    """Does not even start."""

    def hello(self, _request: int, _params: Any) -> None:
        print("no huge pages", file=sys.stderr, flush=True)
        sys.exit(1)


class Chatty(Engine):
    """Something prints into its output between the events."""

    def run(self, request: int, trial: dict[str, Any]) -> None:
        print("EAL: a library's message", flush=True)
        super().run(request, trial)


def kinds_of(kind: type[Engine]) -> list[type[Engine]]:
    """All that behave in some way."""
    return [kind, *(one for other in kind.__subclasses__() for one in kinds_of(other))]


def serve(engine: Engine) -> None:
    """Answer until the end of input."""
    for line in sys.stdin:
        request = json.loads(line)
        getattr(engine, request["method"])(request["id"], request.get("params"))


def replay(name: str) -> None:
    """Answer as a transcript has it, whatever ids the client chooses."""
    for exchange in transcript.read(name):
        line = sys.stdin.readline()
        if not line:
            sys.exit(f"the client ended before {exchange.line}")
        request = json.loads(line)
        if exchange.request is None or _without_id(request) != _without_id(exchange.request):
            print(f"the client said {line.strip()} instead of {exchange.line}", file=sys.stderr, flush=True)
            sys.exit(UNEXPECTED)
        for event in exchange.events:
            print(json.dumps(transcript.example(event) | {"id": request["id"]}), flush=True)
    if sys.stdin.readline():
        sys.exit(UNEXPECTED)


def _without_id(request: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name != "id"}


def _count_start() -> int:
    file = os.environ.get("FAKE_ENGINE_STARTS")
    if file is None:
        return 1
    with Path(file).open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    return len(Path(file).read_text().splitlines())


if __name__ == "__main__":
    behaviour = sys.argv[1]
    begun = _count_start()
    if behaviour.startswith("replay:"):
        replay(behaviour.removeprefix("replay:"))
    else:
        serve({kind.__name__: kind for kind in kinds_of(Engine)}[behaviour](begun))
