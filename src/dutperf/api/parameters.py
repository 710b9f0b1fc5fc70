# SPDX-License-Identifier: Apache-2.0
"""The parameters of :func:`dutperf.measure` and :func:`dutperf.trial` with their types, for editors
and type checkers. Made by scripts/typed_parameters from the conditions' fields: do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypedDict

from dutperf.setup.conditions import Foreground, Rate
from dutperf.setup.configuration import Setup
from dutperf.statistics.stopping import Auto

Path = str | PathLike[str]
AnyRate = Rate | str | float


class OfSetup(TypedDict, total=False):
    """Where the set-up comes from: a lab, or a configuration."""

    lab: str
    lab_options: Mapping[str, object]
    config: Path | Mapping[str, Any] | Setup


class OfTrial(OfSetup, total=False):
    """Conditions of a single trial."""

    frame_sizes: int | str | Sequence[int]
    """Frame size with FCS. With any IPv6 traffic it is the size of IPv6 frames; IPv4 frames are
    20 bytes shorter. Repeatable, or a list (84,128), or a series: rfc2544, rfc5180 and
    rfc8219 end at 1518 bytes, rfc5180-jumbo and rfc8219-jumbo have longer frames too.
    Default: the smallest size."""
    duration_s: float
    """Sending time of a trial (RFC 2544 section 24: 60)."""
    drain_s: float
    """Time to receive residual frames after sending (RFC 2544 section 23: 2)."""
    learning_rest_s: float
    """Wait between ARP or NDP and the first frame of each trial (RFC 2544 section 23: 2)."""
    directions: Literal["both", "forward", "reverse"]
    """Directions that send (RFC 2544 section 14: both)."""
    foreground: Foreground | str
    """Frame k is foreground when k mod N < M, else native IPv6; 2:2 is all foreground."""
    ports: Literal["fixed", "increasing", "decreasing", "random"]
    """How UDP ports vary over the ranges of RFC 4814; fixed: the ports of RFC 2544 C.2.6.4."""
    networks: int
    """Destination networks in each direction, 1-256."""
    seed: int
    """Random seed; the same seed sends the same frames."""
    tx_burst: int
    """Maximum number of due frames handed to the driver at once, 1-512."""
    pattern: str
    """Traffic pattern at the mean rate: constant gaps, as in the RFCs; poisson: exponential
    gaps; or bursts (RFC 2544 section 21)."""
    burst_rate: AnyRate | None
    """With bursts: the rate within a burst (100%). Default: as fast as the tester can send."""
    loss_tolerance: float
    """Loss ratio goal: share of a direction's frames that may be lost (RFC 2544: 0)."""
    frame_timeout_ms: float | None
    """Frames with a longer delay count as lost; not part of any RFC. Every frame is then
    time-stamped."""


class OfMeasurement(OfSetup, total=False):
    """Conditions that every procedure has."""

    frame_sizes: int | str | Sequence[int]
    """Frame size with FCS. With any IPv6 traffic it is the size of IPv6 frames; IPv4 frames are
    20 bytes shorter. Repeatable, or a list (84,128), or a series: rfc2544, rfc5180 and
    rfc8219 end at 1518 bytes, rfc5180-jumbo and rfc8219-jumbo have longer frames too.
    Default: the smallest size."""
    drain_s: float
    """Time to receive residual frames after sending (RFC 2544 section 23: 2)."""
    learning_rest_s: float
    """Wait between ARP or NDP and the first frame of each trial (RFC 2544 section 23: 2)."""
    settle_s: float
    """Wait between trials, for the DUT to settle (RFC 2544 section 23: 5)."""
    dut_patience_s: float
    """Longest wait for a DUT that does not answer, not even ARP or NDP; then it counts as not
    forwarding."""
    directions: Literal["both", "forward", "reverse"]
    """Directions that send (RFC 2544 section 14: both)."""
    foreground: Foreground | str
    """Frame k is foreground when k mod N < M, else native IPv6; 2:2 is all foreground. Each
    value of a list is measured; rfc8219 is 2:2,10:9,2:1,10:1."""
    ports: Literal["fixed", "increasing", "decreasing", "random"]
    """How UDP ports vary over the ranges of RFC 4814; fixed: the ports of RFC 2544 C.2.6.4."""
    networks: int
    """Destination networks in each direction, 1-256 (RFC 2544 section 12: 1,256); each value of
    a list is measured."""
    seed: int
    """Random seed; the same seed sends the same frames."""
    tx_burst: int
    """Maximum number of due frames handed to the driver at once, 1-512."""
    loss_tolerance: float
    """Loss ratio goal: share of a direction's frames that may be lost (RFC 2544: 0)."""
    repetitions: int | str | Auto
    """Repetitions of each frame size (throughput, RFC 8219: 20). auto: repeat until the
    confidence interval of the median is narrower than a share of it; not for frame loss,
    recovery and reset. Its settings with their defaults are
    auto:width=1%,min=10,max=100,confidence=95%."""


class OfThroughput(OfMeasurement, total=False):
    """Conditions of ``throughput``."""

    duration_s: float
    """Sending time of a trial (RFC 2544 section 24: 60)."""
    pattern: str
    """Traffic pattern at the mean rate: constant gaps, as in the RFCs; poisson: exponential
    gaps; or bursts (RFC 2544 section 21)."""
    burst_rate: AnyRate | None
    """With bursts: the rate within a burst (100%). Default: as fast as the tester can send."""
    frame_timeout_ms: float | None
    """Frames with a longer delay count as lost; not part of any RFC. Every frame is then
    time-stamped."""
    goals: Sequence[float]
    """With `search` mlr: share of a direction's frames that may be lost; repeatable: 0 and
    0.005 in one search."""
    max_rate: AnyRate | None
    """Highest rate. Default: the media's maximum frame rate; if that is unknown, a search
    doubles its rate, and series and bursts need this option."""
    search: Literal["binary", "mlr"]
    """How the rate is found: binary, or mlr (MLRsearch, RFC 9971)."""
    min_rate: AnyRate | None
    """Lowest rate of the search."""
    initial_rate: AnyRate | None
    """Rate to try first."""
    resolution: AnyRate
    """The search ends when it knows the rate so exactly: frames/s, or a share of the maximum
    rate."""


class OfFrameLoss(OfMeasurement, total=False):
    """Conditions of ``frame-loss``."""

    duration_s: float
    """Sending time of a trial (RFC 2544 section 24: 60)."""
    pattern: str
    """Traffic pattern at the mean rate: constant gaps, as in the RFCs; poisson: exponential
    gaps; or bursts (RFC 2544 section 21)."""
    burst_rate: AnyRate | None
    """With bursts: the rate within a burst (100%). Default: as fast as the tester can send."""
    frame_timeout_ms: float | None
    """Frames with a longer delay count as lost; not part of any RFC. Every frame is then
    time-stamped."""
    max_rate: AnyRate | None
    """Highest rate. Default: the media's maximum frame rate; if that is unknown, a search
    doubles its rate, and series and bursts need this option."""
    step: AnyRate | None
    """From rate to rate of the series, in % of its highest, or frames/s. At most and without it
    10%."""
    rates: Sequence[AnyRate] | str | None
    """Measure these rates instead of a series: 10k,20k,50%."""


class OfBackToBack(OfMeasurement, total=False):
    """Conditions of ``back-to-back``."""

    rate: AnyRate | None
    """The throughput per direction, or another rate to measure at: frames/s or % of the media's
    maximum. Without it and `throughput_from` the throughput is measured first."""
    throughput_from: Path | Mapping[int, int] | Any
    """Use the median throughput of each frame size from this earlier run."""
    max_rate: AnyRate | None
    """Highest rate. Default: the media's maximum frame rate; if that is unknown, a search
    doubles its rate, and series and bursts need this option."""
    max_burst_s: float
    """Longest burst to try, as the time that its sending takes (RFC 9004: up to 30)."""
    burst_resolution: float
    """The search ends when it knows the longest burst to this share of it; never finer than a
    frame."""
    verifications: int
    """How often a burst that failed is offered again before it counts as failed (loss
    verification, ETSI GS NFV-TST 009 12.3)."""


class OfLatency(OfMeasurement, total=False):
    """Conditions of ``latency``."""

    duration_s: float
    """Sending time of a trial (RFC 2544 section 24: 60)."""
    pattern: str
    """Traffic pattern at the mean rate: constant gaps, as in the RFCs; poisson: exponential
    gaps; or bursts (RFC 2544 section 21)."""
    burst_rate: AnyRate | None
    """With bursts: the rate within a burst (100%). Default: as fast as the tester can send."""
    subtract_calibration: bool
    """Subtract the tester's own typical delay (dutperf selftest) from latencies; the results
    say so. Differences of delays do not change."""
    delays_to: Path | None
    """Write every delay of each trial to .npy files in this directory (numpy.load;
    protocol/README.md). It is on the engine's machine, also if engine.command starts the
    engine on another one."""
    rate: AnyRate | None
    """The throughput per direction, or another rate to measure at: frames/s or % of the media's
    maximum. Without it and `throughput_from` the throughput is measured first."""
    throughput_from: Path | Mapping[int, int] | Any
    """Use the median throughput of each frame size from this earlier run."""
    definition: Literal["rfc8219", "rfc2544"]
    """rfc8219: typical and worst case of many frames; rfc2544: the mean of one frame a trial."""
    tags: int
    """Tagged frames in each direction of a trial: at least 500 (RFC 8219 7.2), without it
    50,000; or 1 (RFC 2544)."""
    tag_after_s: float
    """When the first frame is tagged (RFC 8219 7.2, RFC 2544 26.2: 60). Without it 60, or half
    of a trial shorter than 120."""


class OfPdv(OfMeasurement, total=False):
    """Conditions of ``pdv``."""

    duration_s: float
    """Sending time of a trial (RFC 2544 section 24: 60)."""
    pattern: str
    """Traffic pattern at the mean rate: constant gaps, as in the RFCs; poisson: exponential
    gaps; or bursts (RFC 2544 section 21)."""
    burst_rate: AnyRate | None
    """With bursts: the rate within a burst (100%). Default: as fast as the tester can send."""
    subtract_calibration: bool
    """Subtract the tester's own typical delay (dutperf selftest) from latencies; the results
    say so. Differences of delays do not change."""
    delays_to: Path | None
    """Write every delay of each trial to .npy files in this directory (numpy.load;
    protocol/README.md). It is on the engine's machine, also if engine.command starts the
    engine on another one."""
    rate: AnyRate | None
    """The throughput per direction, or another rate to measure at: frames/s or % of the media's
    maximum. Without it and `throughput_from` the throughput is measured first."""
    throughput_from: Path | Mapping[int, int] | Any
    """Use the median throughput of each frame size from this earlier run."""


class OfIpdv(OfMeasurement, total=False):
    """Conditions of ``ipdv``."""

    duration_s: float
    """Sending time of a trial (RFC 2544 section 24: 60)."""
    pattern: str
    """Traffic pattern at the mean rate: constant gaps, as in the RFCs; poisson: exponential
    gaps; or bursts (RFC 2544 section 21)."""
    burst_rate: AnyRate | None
    """With bursts: the rate within a burst (100%). Default: as fast as the tester can send."""
    delays_to: Path | None
    """Write every delay of each trial to .npy files in this directory (numpy.load;
    protocol/README.md). It is on the engine's machine, also if engine.command starts the
    engine on another one."""
    rate: AnyRate | None
    """The throughput per direction, or another rate to measure at: frames/s or % of the media's
    maximum. Without it and `throughput_from` the throughput is measured first."""
    throughput_from: Path | Mapping[int, int] | Any
    """Use the median throughput of each frame size from this earlier run."""


class OfRecovery(OfMeasurement, total=False):
    """Conditions of ``recovery``."""

    duration_s: float
    """Sending time of a trial (RFC 2544 section 24: 60)."""
    rate: AnyRate | None
    """The throughput per direction, or another rate to measure at: frames/s or % of the media's
    maximum. Without it and `throughput_from` the throughput is measured first."""
    throughput_from: Path | Mapping[int, int] | Any
    """Use the median throughput of each frame size from this earlier run."""
    overload_s: float
    """How long the DUT is overloaded (RFC 2544 26.5: 60); then `duration_s` goes on at half
    that rate. Without it 60, or half of a trial shorter than 120."""


class OfReset(OfMeasurement, total=False):
    """Conditions of ``reset``."""

    duration_s: float
    """Sending time of a trial (RFC 2544 section 24: 60)."""
    rate: AnyRate | None
    """The throughput per direction, or another rate to measure at: frames/s or % of the media's
    maximum. Without it and `throughput_from` the throughput is measured first."""
    throughput_from: Path | Mapping[int, int] | Any
    """Use the median throughput of each frame size from this earlier run."""
    reset_after_s: float
    """When dut.commands.reset is started, to about a second, from the start of the trial.
    Without it 10, or half of a trial shorter than 20."""
