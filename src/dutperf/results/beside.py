# SPDX-License-Identifier: Apache-2.0
"""What arrived beside the test frames that were expected, or instead of them, in words: duplicates and reordered
frames, frames of an earlier trial or at another port, fragments, and the errors by which a DUT says why it did not
forward frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from dutperf.model import Direction, DirectionCounts, IcmpError, TrialResult, Verdict

BEGAN_LATE_S = 0.2
"""A first frame that arrives later, after a gap of lost ones, shows that the DUT began to forward then."""
NEARLY_ALL = 0.9
"""Share of the frames before it that were lost in one run."""


def began_s(counts: DirectionCounts) -> float | None:
    """When the DUT began to forward, in seconds after the start; None: at once, or never."""
    if counts.arrivals is None or counts.losses is None or not counts.send_time_s:
        return None
    first_s = min(counts.arrivals.first_s, counts.send_time_s)
    due_before = counts.sent * first_s / counts.send_time_s
    is_gap = counts.losses.first_s == 0 and counts.losses.longest_run >= NEARLY_ALL * due_before
    return first_s if is_gap and first_s > BEGAN_LATE_S else None


def of_counts(counts: Iterable[DirectionCounts]) -> str:
    """``1,200 duplicates, 33 reordered, 6 ICMPv6 no route from the DUT``, of the counts together; empty where nothing
    arrived but the frames in their order."""
    each = list(counts)
    frames = {
        "duplicates": sum(one.duplicates for one in each),
        "reordered": sum(one.out_of_order for one in each if one.answers is None),  # answers come when they are known
        "of an earlier trial": sum(one.stale for one in each),
        "in fragments": sum(one.other_received.get("fragment", 0) for one in each),
        "not as long as they were sent": sum((one.corrupted_by or {}).get("length", 0) for one in each),
        "without a UDP checksum over IPv6, which hosts discard": sum(
            (one.corrupted_by or {}).get("no_udp_checksum", 0) for one in each
        ),
        "with the UDP checksum 0 over IPv6, which hosts discard": sum(one.zero_checksums for one in each),
        "for other addresses": sum(one.destinations.other for one in each if one.destinations is not None),
        "still in the tunnel": sum(one.not_decapsulated for one in each),
        "outside of the tunnel": sum(one.not_encapsulated for one in each),
        "with other VLAN tags": sum(one.vlan_tags.other for one in each if one.vlan_tags is not None),
    }
    elsewhere, answers = Counter[str](), Counter[str]()
    for one in each:
        elsewhere.update(one.misdelivered or {})
        answers.update({} if one.answers is None else one.answers.wrong)
    frames |= {f"answers {kind.replace('_', ' ')}": count for kind, count in answers.items()}
    frames |= {f"at the {port} port": count for port, count in elsewhere.items()}
    texts = [f"{count:,} {name}" for name, count in frames.items() if count]
    return ", ".join(texts + [f"{error.words()} from the DUT" for error in _errors(each)])


def of_trial(result: TrialResult) -> Iterator[str]:
    """The same of each direction of a trial, with its name."""
    for direction, counts in result.directions().items():
        if text := of_counts([counts]):
            yield f"{direction}: {text}"
        if (began := began_s(counts)) is not None:
            yield f"{direction}: nothing arrived before {began:.2f} s; {_BEGAN}"
        for text in (_unasked(direction, [counts]), _hidden(direction, [counts])):
            if text:
                yield text


def of_run(results: Iterable[TrialResult], *, is_patient: bool = False) -> tuple[str, ...]:
    """The same of all trials of a run that reached their end, and whether the DUT began to forward in the
    middle of it. ``is_patient``: the run waited for it."""
    ended = [result for result in results if result.verdict is not Verdict.ABORTED]
    directions = dict.fromkeys(direction for result in ended for direction in result.directions())
    texts = (
        text
        for direction in directions
        for text in (
            _over_trials(direction, ended),
            _began(direction, ended),
            _unasked(direction, _counts_of(direction, ended)),
            _hidden(direction, _counts_of(direction, ended)),
        )
    )
    hint = "" if is_patient else " (--dut-patience waits for it, and repeats such trials)"
    return tuple(f"{text}{hint if text.endswith(_BEGAN) else ''}" for text in texts if text)


def _began(direction: Direction, results: list[TrialResult]) -> str:
    """Whether nothing was forwarded in the first trials from which the run concluded, and frames were later."""
    counted = [
        counts
        for result in results
        if (result.verdict is Verdict.VALID or result.proven_failed)
        and (counts := result.directions().get(direction)) is not None
    ]
    dead = next((number for number, one in enumerate(counted) if one.received), len(counted))
    late = sum(began_s(one) is not None for one in counted)
    if dead == len(counted) or not dead + late:
        return ""
    first = "the first" if dead == 1 else f"the first {dead:,}"
    trials = f"{first} of {len(counted):,} trials that count, " if dead else ""
    parts = f"the first part of {late:,} trial{'' if late == 1 else 's'}, " if late else ""
    return f"{direction}: nothing arrived in {trials}{parts}but later frames did; {_BEGAN}"


def _hidden(direction: Direction, counts: list[DirectionCounts]) -> str:
    """That a DUT's changes of VLAN tags are not seen, where frames are to arrive with some."""
    if not any(one.vlan_tags is not None and one.vlan_tags.hidden for one in counts):
        return ""
    return (
        f"{direction}: the VLAN tags of arriving frames were not compared: AF_XDP does not see the outer one at the"
        f" {direction.receiving_port} port (af_packet: does)"
    )


def _unasked(direction: Direction, counts: list[DirectionCounts]) -> str:
    """That nothing arrived, and that the DUT may not have the VLAN of the frames."""
    tags = [None if one.vlan_tags is None else one.vlan_tags.unasked for one in counts if one.sent]
    texts = dict.fromkeys(one.words(direction.sending_port) for one in tags if one is not None)
    return f"{direction}: nothing arrived: {'; '.join(texts)}" if tags and None not in tags else ""


def _counts_of(direction: Direction, results: Iterable[TrialResult]) -> list[DirectionCounts]:
    """Those of a direction in the trials in which it was counted."""
    return [counts for result in results if (counts := result.directions().get(direction)) is not None]


_BEGAN = "the DUT may have begun to forward only then"


def _over_trials(direction: Direction, results: list[TrialResult]) -> str:
    counted = _counts_of(direction, results)
    concerned = [one for one in counted if of_counts([one])]
    return f"{direction}, in {len(concerned):,} of {len(counted):,} trials: {of_counts(concerned)}" if concerned else ""


def _errors(counts: list[DirectionCounts]) -> Iterator[IcmpError]:
    frames: Counter[IcmpError] = Counter()
    for one in counts:
        for error in one.icmp_errors or ():
            frames[error.model_copy(update={"frames": 0})] += error.frames
    for error, sent in frames.items():
        yield error.model_copy(update={"frames": sent})
