# SPDX-License-Identifier: Apache-2.0
"""The lines and the file that scripts read: ``dns64perf.csv`` has a line for each query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dutperf.dns64perf.arguments import NS, QueryTest

if TYPE_CHECKING:
    Column = np.ndarray[Any, np.dtype[Any]]

CSV = Path("dns64perf.csv")
AT_ONCE = 65_536
"""Lines that are in memory at a time: there may be over 30 million."""
HEADER = "query;thread id;tsent [ns];treceived [ns];received;answered;rtt [ns]"
RIGHT = 1
"""Of ``answer`` in the engine's file (protocol/README.md)."""


@dataclass(frozen=True)
class Queries:
    """What happened to each query, in the order of the names."""

    sent_ns: Column
    received_ns: Column
    """Not a number: there was no answer."""
    answered: Column
    """A right answer came within the timeout."""

    @property
    def received(self) -> Column:
        """Some answer came."""
        return ~np.isnan(self.received_ns)

    @property
    def rtt_ns(self) -> Column:
        """From the query to its answer."""
        return self.received_ns - self.sent_ns


def read(path: Path, arguments: QueryTest) -> Queries:
    """From the engine's file, which has them in the order of sending."""
    records = np.load(path)[sent_as(arguments)]
    sent_ns, received_ns = records["sent_ns"], records["received_ns"]
    in_time = received_ns - sent_ns <= arguments.timeout_s * NS  # False for what is no number
    return Queries(sent_ns, received_ns, (records["answer"] == RIGHT) & in_time)


def sent_as(arguments: QueryTest) -> Column:
    """The number in the order of sending of each name: the threads send bursts in turn, each of its slice."""
    name = np.arange(arguments.requests)
    thread, within = name // arguments.slice_size, name % arguments.slice_size
    burst = within // arguments.burst * arguments.threads + thread
    return burst * arguments.burst + within % arguments.burst


def lines(queries: Queries) -> Iterator[str]:
    """The figures. Round-trip times are those of the valid answers."""
    sent, valid = int((~np.isnan(queries.sent_ns)).sum()), int(queries.answered.sum())
    rtt_ms = queries.rtt_ns[queries.answered] / 1e6
    yield f"Sent queries: {sent}"
    yield f"Received answers: {int(queries.received.sum())}"
    yield f"Valid answers: {valid} ({100 * valid / sent if sent else 0:.2f}%)"
    if valid:
        yield f"Average round-trip time: {rtt_ms.mean():.6f} ms"
        yield f"Standard deviation of the round-trip time: {rtt_ms.std():.6f} ms"


def write_csv(path: Path, arguments: QueryTest, queries: Queries) -> None:
    """The parameters and a line for each query; what is not known is left out. Raises OSError: it cannot be written."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{name}: {value}\n" for name, value in _parameters(arguments))
        file.write(f"{HEADER}\n")
        file.writelines(_rows(arguments, queries))


def _parameters(arguments: QueryTest) -> Iterator[tuple[str, object]]:
    yield from (("server", arguments.server), ("port", arguments.port), ("subnet", arguments.subnet))
    yield from (("requests", arguments.requests), ("burst", arguments.burst), ("threads", arguments.threads))
    yield from (("delay [ns]", arguments.delay_ns), ("timeout [s]", f"{arguments.timeout_s:g}"))


def _rows(arguments: QueryTest, queries: Queries) -> Iterator[str]:
    columns = (queries.sent_ns, queries.received_ns, queries.received, queries.answered, queries.rtt_ns)
    for first in range(0, len(queries.sent_ns), AT_ONCE):
        part = (one[first : first + AT_ONCE].tolist() for one in columns)
        for name, (sent, came, received, answered, rtt) in enumerate(zip(*part, strict=True), first):
            yield (
                f"{name};{arguments.thread_of(name)};{_whole(sent)};{_whole(came)};{int(received)};{int(answered)};"
                f"{_whole(rtt)}\n"
            )


def _whole(ns: float) -> str:
    return "" if np.isnan(ns) else str(round(ns))
