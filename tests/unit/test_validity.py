# SPDX-License-Identifier: Apache-2.0
"""The rules that tell the tester's faults from the DUT's, as a table: what was counted, and every cause that must come out."""

from __future__ import annotations

from typing import Any

import pytest

from dutperf import validity
from dutperf.model import Away, Direction, Quantiles, Verdict
from plans import counts, trial

LATE_US = validity.LATENESS_LIMIT_US
LATE_WITH_LOSS_US = validity.LATENESS_LIMIT_WITH_LOSS_US
LIMIT_S = validity.sending_time_limit_s(1.0)


def late(us: float) -> Quantiles:
    return Quantiles(p50=0, p99=0, p999=0, max=us)


TABLE: list[tuple[str, dict[str, Any], set[str]]] = [
    ("nothing wrong", {}, set()),
    ("the DUT lost frames", {"received": 1}, set()),
    ("the DUT lost all frames", {"received": 0}, set()),
    ("the engine meant another trial", {"sent": 999, "received": 999, "intended": 999}, {"miscounted"}),
    ("one frame was not sent", {"sent": 999, "intended": 1000}, {"unsent"}),
    ("sending took as long as it may", {"send_time_s": LIMIT_S}, set()),
    ("sending took too long", {"send_time_s": LIMIT_S + 1e-6}, {"sending_time"}),
    ("more arrived than was sent", {"received": 1001}, {"received_too_many"}),
    ("the tester dropped frames", {"received": 990, "tester_drops": {"nic_missed": 10}}, {"tester_drops"}),
    ("the tester dropped frames of others only, still its fault", {"tester_drops": {"kernel_socket": 1}}, {"tester_drops"}),
    ("a cause of drops that did not occur", {"received": 990, "tester_drops": {"nic_missed": 0}}, set()),
    ("late without loss", {"lateness_us": late(LATE_US)}, set()),
    ("too late without loss", {"lateness_us": late(LATE_US + 1)}, {"sender_late"}),
    ("late with loss", {"received": 990, "lateness_us": late(LATE_WITH_LOSS_US)}, set()),
    ("too late with loss", {"received": 990, "lateness_us": late(LATE_WITH_LOSS_US + 1)}, {"sender_late"}),
    ("few lost, none late", {"received": 999, "lateness_us": Quantiles(p50=1, p99=1, p999=1, max=validity.PUNCTUAL_US)}, set()),
    ("few lost, and some late enough to be the cause", {"received": 999, "lateness_us": late(validity.PUNCTUAL_US + 1)}, {"sender_bursts"}),
    ("more lost than were late", {"received": 998, "lateness_us": late(validity.PUNCTUAL_US + 1)}, set()),
    ("one in a hundred late", {"received": 990, "lateness_us": Quantiles(p50=0, p99=0, p999=2000, max=2000)}, {"sender_bursts"}),
    ("more than that lost", {"received": 989, "lateness_us": Quantiles(p50=0, p99=0, p999=2000, max=2000)}, set()),
    ("half of them late", {"received": 500, "lateness_us": Quantiles(p50=0, p99=2000, p999=2000, max=2000)}, {"sender_bursts"}),
    ("all late", {"received": 0, "lateness_us": Quantiles(p50=2000, p99=2000, p999=2000, max=2000)}, {"sender_bursts"}),
    ("late without loss is no burst that matters", {"lateness_us": late(5000)}, set()),
    ("receiver away without loss", {"away_us": Away(sender=0, receiver=1e6)}, set()),
    ("receiver away with loss", {"received": 990, "away_us": Away(sender=0, receiver=LATE_WITH_LOSS_US + 1)}, {"receiver_away"}),
    ("the DUT's own input drops are the DUT's", {"received": 990, "dut_input_drops": 10}, set()),
    (
        "several at once",
        {"sent": 900, "intended": 1000, "received": 800, "tester_drops": {"no_buffer": 1}, "lateness_us": late(1e6), "away_us": Away(sender=0, receiver=1e6)},
        {"unsent", "tester_drops", "sender_late", "receiver_away"},
    ),
]


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize(("members", "codes"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_judge(direction: Direction, members: dict[str, Any], codes: set[str]) -> None:
    both = dict.fromkeys(Direction, counts()) | {direction: counts(**members)}
    verdict, causes = validity.judge(trial(), both)
    assert {cause.code for cause in causes} == codes
    assert verdict is (Verdict.INVALID if codes else Verdict.VALID)
    assert codes <= {code for code, _ in validity.RULES}
    assert all(cause.direction is direction and direction in cause.text for cause in causes)


@pytest.mark.parametrize(("duration_s", "limit_s"), [(1.0, 1.0006), (60.0, 60.0006), (120.0, 120.0012)])
def test_sending_time_limit(duration_s: float, limit_s: float) -> None:
    assert validity.sending_time_limit_s(duration_s) == pytest.approx(limit_s, abs=1e-9)


@pytest.mark.parametrize(
    ("timeout_ms", "late_frames", "away", "codes"),
    [
        (10, 5, Away(sender=1000, receiver=1000), set()),
        (10, 5, Away(sender=0, receiver=1001), {"late_in_tester"}),
        (10, 5, Away(sender=1001, receiver=0), {"late_in_tester"}),
        (10, 0, Away(sender=5000, receiver=5000), set()),
        (100, 5, Away(sender=5000, receiver=5000), set()),
    ],
)
def test_a_frame_that_waited_in_the_tester_is_not_the_duts(timeout_ms: int, late_frames: int, away: Away, codes: set[str]) -> None:
    timed = trial(stamping="every", frame_timeout_ns=timeout_ms * 1_000_000)
    counted = counts(received=1000 - late_frames, late=late_frames, away_us=away)
    assert {cause.code for cause in validity.judge(timed, {Direction.FORWARD: counted})[1]} == codes
