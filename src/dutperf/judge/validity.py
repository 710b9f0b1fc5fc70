# SPDX-License-Identifier: Apache-2.0
"""Judges a trial by the engine's counts: tells the tester's faults from the DUT's.

A loss counts as the DUT's only if the tester can show that it sent every frame in time and dropped
none itself. docs/decisions/0003-validity.md explains the rules and their limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from math import ceil, floor

from dutperf.judge import own_server, setup_faults
from dutperf.judge.own_loss import (
    loses_steadily,
    loss_matters,
    measured,
    own_loss,
    steady_loss,
)
from dutperf.judge.rules import (
    BURSTS,
    BURSTS_WORK_SHARE,
    DROPS,
    LATE,
    LATENESS_LIMIT_US,
    NIC_CLOCK,
    NIC_CLOCK_LIMIT_US,
    LateOfStreams,
    causes_by_rules,
    causes_of_other_streams,
    latest_us,
    too_late,
)
from dutperf.judge.setup_faults import OTHER_RUN
from dutperf.model import (
    ANY_LOSS,
    Cause,
    Direction,
    DirectionCounts,
    LinkState,
    NeighbourEvidence,
    PhaseResult,
    Question,
    ServerCounts,
    SoFar,
    Trial,
    TrialResult,
    Verdict,
)
from dutperf.watch.dut_core import Starvation
from dutperf.watch.dut_waits import SHORT_SOFTIRQ_WAIT_NS, Disturbance

MAX_TOLERANCE_SHARE = 200e-6
"""Largest lateness that a card's clock excuses, as a share of the sending time."""
DUT_CORE_TAKEN_LIMIT = 0.05
"""Share of the core of a DUT on this machine that others may take while frames are lost."""
KNOWN_CORE_TAKEN_LIMIT = 0.2
"""The same for a proof from the times between, where it is known when others took it."""
FOREIGN_SHARE = 0.001
"""Test frames of other runs may be this share of the sent ones in a trial without loss: beyond it the DUT
had another load than the trial's."""
NO_LINK_DOWN = LinkState(left=False, right=False)
HAD_ITS_CORES = Starvation()


def judge(
    trial: Trial,
    counts: dict[Direction, DirectionCounts],
    missed: Starvation = HAD_ITS_CORES,
    link_down: LinkState = NO_LINK_DOWN,
    neighbours: Mapping[str, NeighbourEvidence] | None = None,
    port_changes: Mapping[str, str] | None = None,
    server: ServerCounts | None = None,
) -> tuple[Verdict, tuple[Cause, ...]]:
    """The verdict on a completed trial, with every cause against its validity.

    ``missed``: what a DUT on this machine did not get of its cores. ``link_down``: the tester's own links that
    were down at any time of the trial. ``neighbours``: by port, what ARP and Neighbour Discovery say, without
    addresses of which it is known that they have nothing to do with the traffic (:mod:`dutperf.judge.unanswered`).
    ``port_changes``: by port, why it was no longer the one that was opened. ``server``: of the tester's own name
    server, if it has one.
    """
    causes = tuple(_ports(trial, link_down, port_changes or {}))
    causes += tuple(_other_runs(trial, counts))
    own = measured(counts)
    beside = {direction: one for direction, one in counts.items() if direction not in own}
    of_streams = reduce(
        LateOfStreams.with_those_of, (one for name, one in counts.items() if name.stream), LateOfStreams()
    )
    lossy = _is_lossy(trial, counts)
    for direction, one in own.items():
        late = of_streams if direction.stream else of_streams.with_those_of(one)
        causes += tuple(causes_by_rules(trial, direction, one, late, lossy=lossy))
    known = {cause.text.partition(": ")[2] for cause in causes}
    causes += tuple(causes_of_other_streams(trial, beside, known, lossy=lossy))
    causes += tuple(setup_faults.of_neighbours(trial, measured(counts), neighbours or {}))
    causes += tuple(own_server.of_server(trial, measured(counts), server))
    if causes and {cause.code for cause in causes} == {BURSTS} and _is_mostly_its_own(trial, counts):
        causes = ()
    if _taken(trial, missed) > DUT_CORE_TAKEN_LIMIT and lossy:
        causes += (_core_taken(trial, missed, trial.counted.were_lost),)
    elif _may_be_starvation_loss(trial, counts, paused_s := _paused_s(trial, counts, missed), missed.disturbances):
        text = f"{_waited(paused_s)}, and lost no more {trial.counted.many} than were sent meanwhile"
        causes += (Cause(code=DUT_DISTURBED, text=text),)
    return (Verdict.INVALID if causes else Verdict.VALID), causes


def _taken(trial: Trial, missed: Starvation) -> float:
    """Share of its core that a DUT did not get."""
    return max(missed.share or 0.0, min(1.0, missed.waited_s / trial.duration_s))


def _core_taken(trial: Trial, missed: Starvation, meanwhile: str) -> Cause:
    text = f"{_who_took(missed)} {_taken(trial, missed):.0%} of the core of the DUT while {meanwhile}"
    return Cause(code=DUT_DISTURBED, text=text)


def _waited(paused_s: float) -> str:
    return f"the DUT had to wait {paused_s * 1000:.1f} ms for its core"


def _who_took(missed: Starvation) -> str:
    if not missed.by_tester:
        return "others took"
    return "the tester's own loops (engine.cores), which have a core of the DUT, and others took"


def doubts(
    phase: Trial, counts: dict[Direction, DirectionCounts], missed: Starvation = HAD_ITS_CORES
) -> tuple[Cause, ...]:
    """Causes against a phase that hold if the trial shows that it matters what they cost. Of a phase that tolerates
    any loss: those that it would have if it tolerated none. Of one that opens connections: that the DUT lacked its
    core, and may have forwarded frames without making entries. The arguments are those of :func:`judge`."""
    if phase.question.tolerated_loss >= ANY_LOSS:
        strict = phase.model_copy(update={"question": Question()})
        return judge(strict, counts, missed)[1]
    if not phase.opens_connections:
        return ()
    if _taken(phase, missed) > DUT_CORE_TAKEN_LIMIT:
        return (_core_taken(phase, missed, "connections were opened"),)
    paused_s = _paused_s(phase, counts, missed)
    meanwhile = sum(one.sent for one in counts.values()) * paused_s / phase.duration_s
    frames = floor(meanwhile + 1e-6)  # in less than the time between two frames none had to wait behind another
    return (Cause(code=DUT_DISTURBED, text=_waited(paused_s), frames=frames),) if frames else ()


def held_against(phase: Trial, result: PhaseResult, measured: TrialResult) -> tuple[Cause, ...]:
    """Causes against a preliminary phase by what followed it: it tolerates loss, or opened connections.

    A trial that passes in spite of them is a pass. If it lost or flooded frames, or measured delays, the phase
    must not have lost frames because of the tester. Of addresses that the DUT should have learned in it, and of
    connections, a disturbance may also cost some of which no frame was lost: as many as were sent in bursts, or while
    the DUT lacked its core.
    """
    counts = measured.directions().values()
    if phase.opens_connections:
        missing, were = _connections_missing(measured), "connections were missing"
        follows = bool(missing)
    else:
        missing, were = sum(max((one.misdelivered or {}).values(), default=0) for one in counts), "frames were flooded"
        follows = bool(missing) or any(one.lost or one.delay_us is not None for one in counts)
        follows = follows and phase.question.tolerated_loss >= ANY_LOSS
    if not follows:
        return ()
    return tuple(cause for cause in result.doubts if cause.frames is None or missing <= cause.frames) + tuple(
        Cause(code=BURSTS, text=f"{direction}: {text}; they may be why {missing:,} {were} later", direction=direction)
        for direction, one in result.directions().items()
        if (text := _bursts_before(phase, one, missing)) is not None
    )


def _connections_missing(measured: TrialResult) -> int:
    """Connections that lost frames, without those that turned out to be left."""
    lost = 0 if measured.connections is None else measured.connections.lost
    return lost - (measured.connections_probed or 0) + (measured.connections_gone or 0)


def _bursts_before(phase: Trial, counts: DirectionCounts, missing: int) -> str | None:
    """Whether bursts longer than those in which the tester sends by itself may be why a DUT did not learn as
    many addresses, or open as many connections, as were ``missing`` later."""
    bursts = counts.late_bursts
    if bursts is None or not missing or bursts.at_once <= phase.burst or missing > bursts.frames:
        return None
    return f"{bursts.frames:,} frames left in bursts, the latest {counts.lateness_us.max / 1000:.3f} ms late"


def _may_be_starvation_loss(
    trial: Trial,
    counts: Mapping[Direction, DirectionCounts],
    paused_s: float,
    disturbances: Sequence[Disturbance],
) -> bool:
    """Whether at most the frames sent while the DUT paused for want of a core were lost, and not at a steady rate."""
    if not paused_s or not _is_lossy(trial, counts):
        return False
    meanwhile = sum(one.sent for one in counts.values()) * paused_s / trial.duration_s
    tolerated = _tolerated(trial, counts)
    lost = sum(one.lost for one in measured(counts).values())
    return lost - tolerated <= meanwhile and steady_loss(trial, counts, disturbances) <= tolerated


def _paused_s(trial: Trial, counts: Mapping[Direction, DirectionCounts], missed: Starvation) -> float:
    """How long the DUT did nothing while it waited for its core, at most."""
    if not missed.arrivals_show_pauses:
        return missed.waited_s
    return min(
        missed.waited_s, max((_without_arrivals_s(trial, one) for one in measured(counts).values()), default=0.0)
    )


def _without_arrivals_s(trial: Trial, counts: DirectionCounts) -> float:
    """Time in all gaps between arrivals that are long enough to matter, and before the first and after the last."""
    times = counts.arrivals
    if times is None or times.in_long_gaps_s is None:
        return trial.duration_s
    ends_s = (times.first_s, trial.duration_s - times.last_s)
    return times.in_long_gaps_s + sum(one for one in ends_s if one > SHORT_SOFTIRQ_WAIT_NS / 1e9)


def _is_mostly_its_own(trial: Trial, counts: Mapping[Direction, DirectionCounts]) -> bool:
    """Whether the DUT would have lost more than is tolerated, and more than half of what it lost,
    if no frame had left in a burst."""
    lost = sum(one.lost for one in measured(counts).values())
    return own_loss(trial, counts) > max(_tolerated(trial, counts), (1 - BURSTS_WORK_SHARE) * lost)


def _tolerated(trial: Trial, counts: Mapping[Direction, DirectionCounts]) -> float:
    """Tolerated loss of all directions together, in frames. If they lost more, one of them lost more
    than it may."""
    return trial.question.tolerated_loss * sum(one.sent for one in measured(counts).values())


def _certainly_wrong(counts: DirectionCounts) -> int:
    """Lost frames that no lateness and no waiting explain: corrupted ones, and wrong answers."""
    return min(max(0, counts.lost), counts.corrupted + (0 if counts.answers is None else counts.answers.by_content))


def proven_failed(
    trial: Trial,
    counts: Mapping[Direction, DirectionCounts],
    causes: tuple[Cause, ...],
    missed: Starvation = HAD_ITS_CORES,
) -> str | None:
    """The proof, as a clause, that the DUT fails the trial in spite of ``causes``; None: not proven.

    Only for a search, which needs pass or fail alone: it is unknown how many frames an undisturbed
    DUT would have lost.
    """
    if not causes or not trial.question.resolution or {cause.code for cause in causes} - OVERCOME:
        return None
    lost, tolerated = sum(one.lost for one in measured(counts).values()), _tolerated(trial, counts)
    if (wrong := sum(map(_certainly_wrong, measured(counts).values()))) > tolerated:
        return _proof(trial, counts, wrong, lost)
    if any(latest_us(one) > LATENESS_LIMIT_US + one.tolerance_us for one in counts.values()):
        return None
    disturbances, missed_share = missed.disturbances, missed.at_most_s / trial.duration_s
    unseen_share = missed.unseen_s / trial.duration_s
    meanwhile = ceil(sum(one.sent for one in counts.values()) * min(1.0, missed_share + unseen_share))
    own = own_loss(trial, counts) - meanwhile
    known_share = sum(one.waited_s for one in disturbances) / trial.duration_s
    had_its_core = missed_share - known_share <= DUT_CORE_TAKEN_LIMIT and known_share <= KNOWN_CORE_TAKEN_LIMIT
    if had_its_core:
        own = max(own, steady_loss(trial, counts, disturbances))
    if own > tolerated:
        return _proof(trial, counts, own, lost)
    if had_its_core and disturbances and not tolerated and loses_steadily(trial, counts, disturbances):
        return (
            f"the DUT lost {trial.counted.many} at a steady rate also between the disturbances ({lost:,} lost in all)"
        )
    return None


def _proof(trial: Trial, counts: Mapping[Direction, DirectionCounts], own: int, lost: int) -> str:
    asks_other = trial.server is None and any(one.questions is not None for one in trial.streams().values())
    whose = "are the DUT's own loss" if not asks_other else "are no loss of the tester's"
    kinds = [one.answers.in_words() for one in counts.values() if one.answers is not None]
    told = f" ({'; '.join(filter(None, kinds))})" if any(kinds) else ""
    return (
        f"at least {own:,} of the {lost:,} {trial.counted.lost_ones}{told} {whose}, whatever else disturbed the trial"
    )


def hopeless(
    trial: Trial,
    so_far: Mapping[Direction, SoFar],
    down: LinkState,
    lost: Mapping[Direction, int],
    port_changes: Mapping[str, str] | None = None,
) -> tuple[Cause, ...]:
    """Causes for which a running trial can no longer become valid nor prove anything.

    ``lost``: frames of each direction that were sent longer ago than the drain lasts and have not
    arrived.
    """
    causes = tuple(_ports(trial, down, port_changes or {}))
    return causes + tuple(
        Cause(code=code, text=f"{trial.counted.path(direction)}: {text}", direction=direction)
        for direction, one in so_far.items()
        for code, text in _hopeless(trial, direction, one, lost.get(direction, 0))
    )


def _hopeless(trial: Trial, direction: Direction, so_far: SoFar, lost: int) -> Iterator[tuple[str, str]]:
    """Codes and texts of one direction."""
    if so_far.tester_drops:
        yield DROPS, f"the tester itself dropped {so_far.tester_drops:,} frames"
    is_measured = not direction.stream and not trial.question.resolution
    matters = is_measured and lost > trial.question.tolerated_loss * trial.intended(direction)
    counted = trial.all_streams()[direction].counted
    allowed = too_late(counted, so_far.max_lateness_us, MAX_TOLERANCE_SHARE * trial.duration_s * 1e6, matters=matters)
    if allowed is not None:
        yield LATE, f"a {counted.one} left {so_far.max_lateness_us / 1000:.3f} ms late, {allowed}"
    if so_far.nic_clock_us > NIC_CLOCK_LIMIT_US:
        uncertain = f"a NIC's clock was uncertain by {so_far.nic_clock_us:,.1f} us"
        yield NIC_CLOCK, f"{uncertain}, more than the {NIC_CLOCK_LIMIT_US:g} us allowed"


def _ports(trial: Trial, down: LinkState, changes: Mapping[str, str]) -> Iterator[Cause]:
    """Each port was the one that was opened: its interface was there, under its name, and took the frames. And it had
    a link throughout: the tester cannot tell an unplugged cable from a DUT that restarts."""
    for port, change in changes.items():
        yield Cause(code=PORT_CHANGED, text=f"{port}: {change}")
    for side, is_down in down.ports().items():
        if is_down and not trial.question.links_may_fall:
            yield Cause(code=LINK_DOWN, text=f"the link of the {side} port was down during the trial")


def _other_runs(trial: Trial, counts: Mapping[Direction, DirectionCounts]) -> Iterator[Cause]:
    """The DUT had no other tester's load. Frames of another run that arrived here took its capacity, whichever
    direction they came in; how many it lost of them, nobody here knows."""
    came = sum(
        one.other_received.get(OTHER_RUN, 0)
        for direction, one in counts.items()
        if not _replays_test_frames(trial, direction)  # of those it is not known whose they are
    )
    lossy = _is_lossy(trial, counts)
    if came and (lossy or came > FOREIGN_SHARE * sum(one.sent for one in counts.values())):
        meanwhile = f" while {trial.counted.were_lost}" if lossy else ""
        text = f"{came:,} test frames of another run of dutperf arrived{meanwhile}"
        yield Cause(code=OTHER_RUN, text=text)


def _replays_test_frames(trial: Trial, direction: Direction) -> bool:
    replay = trial.all_streams()[direction].replay
    return replay is not None and replay.of_test_frames


def _is_lossy(trial: Trial, counts: Mapping[Direction, DirectionCounts]) -> bool:
    """Whether any direction lost more than is tolerated."""
    return any(loss_matters(trial, one) for one in measured(counts).values())


DUT_DISTURBED = "dut_disturbed"
"""Code of a cause without a direction: other processes slowed the DUT down."""
LINK_DOWN, PORT_CHANGED, EXPIRED = "link_down", "port_changed", "connections_expired"
"""Other codes without a direction."""
OVERCOME = frozenset({BURSTS, LATE, "sending_time", DUT_DISTURBED})
"""Codes of causes in spite of which a DUT can be proven to fail: their effect on it is bounded."""
BY_LOSS = (setup_faults.OF_SETUP - setup_faults.CHANGED.keys()) | {
    *(BURSTS, LATE, DUT_DISTURBED, EXPIRED, OTHER_RUN, *setup_faults.OF_NEIGHBOURS),
    *("receiver_stall", "receive_queue", "late_in_tester", setup_faults.MATCHED, "stale", own_server.LATE),
}
"""Codes of causes that hold only, or earlier, where frames were lost: the same trial without loss would be
valid, or nearly. To leave trials out by them would flatter the DUT."""
OF_A_WHOLE_TRIAL = frozenset({"unsent", "unsent_additional", "sending_time"})
"""Codes of causes that do not apply to a trial which was ended early."""
