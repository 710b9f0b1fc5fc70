# SPDX-License-Identifier: Apache-2.0
"""The options that commands share, each declared once, and how they become
:class:`~dutperf.setup.conditions.Conditions`.

What is not given keeps the default of the conditions, which are those that conform to the RFCs; but
for the rests around a trial, which are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import typer
from pydantic import ValidationError

from dutperf.api import results
from dutperf.cli import completion
from dutperf.cli.output import log
from dutperf.model import FieldMode
from dutperf.run.campaign import PlanError
from dutperf.setup import configuration
from dutperf.setup.conditions import (
    FRAME_SIZE_SERIES,
    LATEST_S,
    NATIVE_SHARES,
    Algorithm,
    Conditions,
    Directions,
    LatencyDefinition,
    Rate,
    refusal,
)
from dutperf.setup.configuration import MOST_QUEUES, ConfigError
from dutperf.statistics import stopping

DEFAULT = Conditions()
Parsed = TypeVar("Parsed")

LabName = Annotated[
    str | None,
    typer.Option(
        "--lab",
        metavar="NAME",
        autocompletion=completion.labs,
        help="Bring this lab up, measure it, take it down (see dutperf lab list).",
    ),
]
LabOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--lab-option",
        metavar="KEY=VALUE",
        autocompletion=completion.lab_options,
        help="An option for the lab; repeatable.",
    ),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Measure the set-up that this file describes.")
]
Queues = Annotated[
    int | None,
    typer.Option(
        "--queues",
        metavar="COUNT",
        min=1,
        max=MOST_QUEUES,
        help=(
            "Queues of each port, each way: a direction has so many senders and receivers, on several cores (1, or"
            " engine.queues of the configuration)."
        ),
    ),
]
HardwareText = Annotated[
    str | None,
    typer.Option(
        "--hardware",
        metavar="HELP,...",
        help=(
            f"Help of the ports' hardware to use, of {', '.join(get_args(configuration.Help))}; a port that does not"
            " offer it is refused. Nothing of it has been run on a NIC (docs/performance.md). Without it none, or"
            " engine.hardware of the configuration."
        ),
    ),
]
FrameSizes = Annotated[
    list[str] | None,
    typer.Option(
        "--frame-size",
        "--frame-sizes",
        metavar="BYTES|SERIES",
        autocompletion=completion.frame_sizes,
        help=(
            "With FCS; with any IPv6 traffic the IPv6 frame's, IPv4 frames are 20 bytes shorter. Repeatable, or a list"
            " (84,128), or the series of rfc2544, rfc5180 or rfc8219 up to 1518 bytes; rfc5180-jumbo and rfc8219-jumbo"
            " have the longer ones too. Without it the smallest."
        ),
    ),
]
RateText = Annotated[
    str,
    typer.Option(
        "--rate", metavar="RATE", help="Per direction: frames/s (60000, 60k, 1.5M) or % of the media's maximum."
    ),
]
Duration = Annotated[
    float, typer.Option("--duration", metavar="S", help="Sending time of a trial (RFC 2544 section 24: 60).")
]
Drain = Annotated[float, typer.Option("--drain", metavar="S", help="Receiving time after it (RFC 2544 section 23: 2).")]
LearningRest = Annotated[
    float,
    typer.Option(
        "--learning-rest",
        metavar="S",
        help="Rest between ARP or NDP before each trial and its first frame (RFC 2544 section 23: 2).",
    ),
]
Settle = Annotated[
    float, typer.Option("--settle", metavar="S", help="Rest of the DUT between two trials (RFC 2544 section 23: 5).")
]
DutPatience = Annotated[
    float,
    typer.Option(
        "--dut-patience",
        metavar="S",
        help="Wait so long for a DUT that answers nothing, not even ARP or NDP, before it counts as silent.",
    ),
]
DirectionsChoice = Annotated[Directions, typer.Option("--directions", help="Which directions send.")]
Foreground = Annotated[
    str,
    typer.Option(
        "--foreground",
        metavar="N:M",
        help="Frame k is foreground when k mod N < M, else native IPv6; 2:2 is all foreground.",
    ),
]
Foregrounds = Annotated[
    str,
    typer.Option(
        "--foreground",
        metavar="N:M,…",
        help=(
            "Frame k is foreground when k mod N < M, else native IPv6; 2:2 is all foreground. Each of a list is"
            " measured; rfc8219 is 2:2,10:9,2:1,10:1."
        ),
    ),
]
Ports = Annotated[
    FieldMode, typer.Option("--ports", help="UDP ports over the ranges of RFC 4814; fixed: those of RFC 2544 C.2.6.4.")
]
Networks = Annotated[
    int, typer.Option("--networks", metavar="COUNT", help="Destination networks in each direction, 1-256.")
]
NetworkCounts = Annotated[
    str,
    typer.Option(
        "--networks",
        metavar="COUNT,…",
        help="Destination networks in each direction, 1-256 (RFC 2544 section 12: 1,256); each is measured.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Of what is random; the same seed sends the same frames.")]
Burst = Annotated[
    int,
    typer.Option("--tx-burst", metavar="FRAMES", help="Most frames that are due handed to the driver at once, 1-512."),
]
Pattern = Annotated[
    str,
    typer.Option(
        "--pattern",
        metavar="constant|poisson|bursts:FRAMES",
        help=(
            "How frames come at the mean rate: at a constant rate, as the RFCs have it; with exponential gaps; or in"
            " bursts (RFC 2544 section 21)."
        ),
    ),
]
BurstRate = Annotated[
    str | None,
    typer.Option(
        "--burst-rate",
        metavar="RATE",
        help="With bursts: the rate of a burst's frames (100%). Without it they leave as fast as the tester can.",
    ),
]
LossTolerance = Annotated[
    float,
    typer.Option(
        "--loss-tolerance", metavar="RATIO", help="Share of a direction's frames that may be lost (RFC 2544: 0)."
    ),
]
FrameTimeout = Annotated[
    float | None,
    typer.Option(
        "--frame-timeout-ms",
        metavar="MS",
        help="A frame that takes longer counts as lost; no RFC has it. Every frame is stamped then.",
    ),
]
Repetitions = Annotated[
    str,
    typer.Option(
        "--repetitions",
        metavar="COUNT|auto",
        help=(
            "How often each frame size is measured (throughput, RFC 8219: 20); or auto: until the confidence interval"
            " of the median is narrower than a share of it. auto:width=1%,min=10,max=100,confidence=95% are its"
            " settings and their defaults. Not for frame loss, recovery and reset."
        ),
    ),
]
SearchChoice = Annotated[
    Algorithm, typer.Option("--search", help="How the rate is found: binary, or mlr (MLRsearch, RFC 9971).")
]
Goals = Annotated[
    list[float] | None,
    typer.Option(
        "--goal",
        metavar="RATIO",
        help=(
            "With --search mlr: share of a direction's frames that may be lost; repeatable: 0 and 0.005 in one search."
        ),
    ),
]
MinRate = Annotated[str | None, typer.Option("--min-rate", metavar="RATE", help="Lowest rate of the search.")]
MaxRate = Annotated[
    str | None,
    typer.Option(
        "--max-rate",
        metavar="RATE",
        help=(
            "Highest rate. Without it the media's; where that is not known a search doubles its rate; a series and"
            " bursts need this."
        ),
    ),
]
InitialRate = Annotated[str | None, typer.Option("--initial-rate", metavar="RATE", help="Rate to try first.")]
Resolution = Annotated[
    str, typer.Option("--resolution", metavar="RATE", help="The search ends when it knows the rate so exactly.")
]
RatesText = Annotated[
    str | None, typer.Option("--rates", metavar="RATE,…", help="Measure these rates instead of a series: 10k,20k,50%.")
]
Step = Annotated[
    str | None,
    typer.Option(
        "--step",
        metavar="RATE",
        help="From rate to rate of the series, in % of its highest, or frames/s. At most and without it 10%.",
    ),
]
AtRate = Annotated[
    str | None,
    typer.Option(
        "--rate",
        metavar="RATE",
        help=(
            "The throughput per direction, or another rate to measure delays at: frames/s or % of the media's maximum."
            " Without it and --from the throughput is measured first."
        ),
    ),
]
FoundIn = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="DIR",
        autocompletion=completion.results_directories,
        help="Take the throughput (median) that this run found for each frame size.",
    ),
]
MaxBurst = Annotated[
    float,
    typer.Option(
        "--max-burst",
        metavar="S",
        help="Longest burst to try, as the time that its sending takes (RFC 9004: up to 30).",
    ),
]
BurstResolution = Annotated[
    float,
    typer.Option(
        "--burst-resolution",
        metavar="RATIO",
        help="The search ends when it knows the longest burst to this share of it; never finer than a frame.",
    ),
]
Verifications = Annotated[
    int,
    typer.Option(
        "--verifications",
        metavar="COUNT",
        help="How often a burst that failed is offered again before it counts as failed (loss verification).",
    ),
]
LatencyDefinitionChoice = Annotated[
    LatencyDefinition,
    typer.Option(
        "--definition", help="rfc8219: typical and worst case of many frames; rfc2544: the mean of one frame a trial."
    ),
]
Tags = Annotated[
    int | None,
    typer.Option(
        "--tags",
        metavar="COUNT",
        help=(
            f"Tagged frames in each direction of a trial: at least 500 (RFC 8219 7.2), without it {DEFAULT.tags:,}; or"
            " 1 (RFC 2544)."
        ),
    ),
]
TagAfter = Annotated[
    float | None,
    typer.Option(
        "--tag-after",
        metavar="S",
        help=(
            "When the first frame is tagged (RFC 8219 7.2, RFC 2544 26.2: 60). Without it 60, or half of a trial"
            " shorter than 120."
        ),
    ),
]
DelaysTo = Annotated[
    Path | None,
    typer.Option(
        "--delays-to",
        metavar="DIR",
        help=(
            "Write every delay of each trial to files there (.npy: numpy.load; protocol/README.md). On the engine's"
            " machine, where engine.command starts it on another."
        ),
    ),
]
SubtractCalibration = Annotated[
    bool,
    typer.Option(
        "--subtract-calibration",
        help=(
            "Take the tester's own typical delay (dutperf selftest) from latencies, and say so. Differences of delays"
            " stay as they are."
        ),
    ),
]
Overload = Annotated[
    float | None,
    typer.Option(
        "--overload",
        metavar="S",
        help=(
            "How long the DUT is overloaded (RFC 2544 26.5: 60); then --duration goes on at half that rate. "
            "Without it 60, or half of a trial shorter than 120."
        ),
    ),
]
ResetAfter = Annotated[
    float | None,
    typer.Option(
        "--reset-after",
        metavar="S",
        help=(
            "When dut.commands.reset is started, to about a second, from the start of the trial. Without it 10, or half"
            " of a trial shorter than 20."
        ),
    ),
]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where results are written.")]
Directory = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        autocompletion=completion.results_directories,
        help="Where a run, or a suite of them, has its results.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="The result as one JSON object on standard output.")]
LogFormat = Annotated[
    log.Format,
    typer.Option(
        "--log-format",
        help="Of what is told on standard error while it measures; json: one object a line, for programs.",
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        metavar="PORT",
        min=0,
        max=65535,
        help="Serve Prometheus metrics of the run while it lasts; on loopback, or at the address given.",
    ),
]
MetricsAddress = Annotated[
    str | None,
    typer.Option(
        "--metrics-address", metavar="ADDRESS", help="Serve them there; without it 127.0.0.1. Anybody may read them."
    ),
]
MetricsFile = Annotated[
    Path | None,
    typer.Option(
        "--metrics-file",
        metavar="FILE.prom",
        help="Write the metrics to this file after each trial, for node_exporter's textfile collector.",
    ),
]

WATCHERS: dict[str, Any] = {
    "log_format": (LogFormat, "text"),
    "metrics_port": (MetricsPort, None),
    "metrics_address": (MetricsAddress, None),
    "metrics_file": (MetricsFile, None),
}
"""Options of every command that measures, with their defaults, by the names that
:class:`dutperf.cli.output.watch.Watchers` has."""
EVERY_TRIAL: dict[str, Any] = {
    "frame_sizes": FrameSizes,
    "duration_s": Duration,
    "drain_s": Drain,
    "learning_rest_s": LearningRest,
    "settle_s": Settle,
    "dut_patience_s": DutPatience,
    "directions": DirectionsChoice,
    "foreground": Foregrounds,
    "ports": Ports,
    "networks": NetworkCounts,
    "seed": Seed,
    "burst": Burst,
    "pattern": Pattern,
    "burst_rate": BurstRate,
    "loss_tolerance": LossTolerance,
}
"""Options that every procedure has, by the names that :func:`conditions` takes."""
OF_PROCEDURES: dict[str, Any] = {
    "frame_timeout_ms": FrameTimeout,
    "repetitions": Repetitions,
    "search": SearchChoice,
    "goals": Goals,
    "min_rate": MinRate,
    "max_rate": MaxRate,
    "initial_rate": InitialRate,
    "resolution": Resolution,
    "step": Step,
    "rates": RatesText,
    "rate": AtRate,
    "found": FoundIn,
    "max_burst_s": MaxBurst,
    "burst_resolution": BurstResolution,
    "verifications": Verifications,
    "definition": LatencyDefinitionChoice,
    "tags": Tags,
    "tag_after_s": TagAfter,
    "delays_to": DelaysTo,
    "subtract_calibration": SubtractCalibration,
    "overload_s": Overload,
    "reset_after_s": ResetAfter,
}
"""Those that a procedure names in its definition."""

_OPTIONS = {
    "frame_sizes": "--frame-size",
    "series": "--frame-size",
    "goals": "--goal",
    "found": "--from",
    "burst": "--tx-burst",  # not to be taken for the bursts of RFC 9004
    **dict.fromkeys(("n", "m", ""), "--foreground"),
}
_PARSERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("min_rate", "max_rate", "initial_rate", "resolution", "step", "rate", "burst_rate"), Rate.parse),
    "rates": lambda text: tuple(Rate.parse(one) for one in text.split(",")),
    "repetitions": stopping.parse,
}
"""Of members that are given as text."""
TEXTS = (*_PARSERS, "foreground", "networks")
"""What is given as text, whatever comes of it."""


def default(name: str, defaults: Conditions) -> Any:
    """What an option is where it is not given, as it would be typed; None where it then has no
    value."""
    if name in ("frame_sizes", "goals", "rates", "found", "tags", *LATEST_S):
        return None
    if name == "repetitions":
        return str(defaults.repetitions)
    if name == "networks":
        return str(defaults.networks)
    value = f"{defaults.n}:{defaults.m}" if name == "foreground" else getattr(defaults, name)
    return value.text() if isinstance(value, Rate) else value


def conditions(frame_sizes: Sequence[str] | None, foreground: str, **chosen: Any) -> Conditions:
    """The conditions that were chosen, ``chosen`` by the names that they have there; what is None
    keeps its default.

    Raises:
        ConfigError: an option with a value that is not possible, named as on the command line.
    """
    n, m = _foreground(foreground)
    given = {name: _value(name, value) for name, value in chosen.items() if value is not None and name != "found"}
    sizes = _sizes(frame_sizes) if frame_sizes else {}
    try:
        made = Conditions(n=n, m=m, **sizes, **given)
    except ValidationError as error:
        field, reason = refusal(error)
        raise ConfigError(reason, option_of(field)) from None
    directory = chosen.get("found")
    if directory is None:
        return made
    try:
        return made.model_copy(update={"found": results.throughput_found(directory, made)})
    except PlanError as error:
        raise ConfigError(str(error), option_of(error.option)) from None


def mixes(foreground: str, networks: str, **chosen: Any) -> tuple[Conditions, ...]:
    """The conditions of each mix of native traffic (``"2:2,10:9"`` or ``"rfc8219"``) with each
    number of networks (``"1,256"``).

    Raises:
        ConfigError: see :func:`conditions`; the same mix twice.
    """
    shares = ",".join(f"{n}:{m}" for n, m in NATIVE_SHARES) if foreground.strip() == "rfc8219" else foreground
    counts = [_count(word.strip()) for word in networks.split(",")]
    made = tuple(
        conditions(foreground=share.strip(), networks=count, **chosen)
        for count in counts
        for share in shares.split(",")
    )
    for option, values in (
        ("--networks", counts),
        ("--foreground", [each.native_percent for each in made[: len(made) // len(counts)]]),
    ):
        if len(set(values)) < len(values):
            raise ConfigError("the same twice", option)
    return made


def option_of(field: str) -> str:
    """The option that sets a member of the conditions."""
    return _OPTIONS.get(field, "--" + field.removesuffix("_s").replace("_", "-"))


def parse_rate(option: str, text: str) -> Rate:
    """A rate as given to ``option``.

    Raises:
        ConfigError: it is none.
    """
    return _read(Rate.parse, option, text)


def hardware(text: str | None) -> configuration.Hardware | None:
    """``"receive_timestamps"`` to ``("receive_timestamps",)``; None where the option was not given.

    Raises:
        ConfigError: no such help.
    """
    return None if text is None else configuration.hardware((name.strip() for name in text.split(",")), "--hardware")


def lab_options(texts: Sequence[str] | None) -> dict[str, str]:
    """``["loss=0.1"]`` to ``{"loss": "0.1"}``.

    Raises:
        ConfigError: one without a key or a value.
    """
    pairs = [text.partition("=") for text in texts or ()]
    for text, (key, _, value) in zip(texts or (), pairs, strict=True):
        if not key or not value:
            raise ConfigError(f"'{text}' is not of the form KEY=VALUE", "--lab-option")
    return {key: value for key, _, value in pairs}


def _value(name: str, value: Any) -> Any:
    if name == "goals":
        return tuple(value)
    if name == "delays_to":
        return _fresh(value)
    return _read(_PARSERS[name], option_of(name), value) if name in _PARSERS else value


def _read(parse: Callable[[str], Parsed], option: str, text: str) -> Parsed:
    try:
        return parse(text)
    except ValueError as error:
        raise ConfigError(str(error), option) from None


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]+", text):
        raise ConfigError(f"'{text}' is no number of networks", "--networks")
    return int(text)


def _fresh(directory: Path) -> str:
    """As an absolute path: the engine may run elsewhere.

    Raises:
        ConfigError: it holds the delays of another run.
    """
    if any(directory.glob("*/trial-*.npy")):
        raise ConfigError(
            f"{directory} holds the delays of another run: choose another directory or remove them", "--delays-to"
        )
    return str(directory.absolute())


def _foreground(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+):(\d+)", text)
    if not match:
        raise ConfigError(f"'{text}' is not of the form N:M, as in 2:2 or 10:9", "--foreground")
    return int(match[1]), int(match[2])


def _sizes(texts: Sequence[str]) -> dict[str, Any]:
    """The member of the conditions that says it, and its value."""
    words = [word.strip() for text in texts for word in text.split(",")]
    if len(words) == 1 and words[0] in FRAME_SIZE_SERIES:
        return {"series": words[0]}
    for word in words:
        if not re.fullmatch(r"[0-9]+", word):
            raise ConfigError(
                f"'{word}' is no frame size in bytes, and not one of the series {', '.join(FRAME_SIZE_SERIES)}",
                "--frame-size",
            )
    sizes = [int(word) for word in words]
    if len(set(sizes)) < len(sizes):
        raise ConfigError("the same size twice", "--frame-size")
    return {"frame_sizes": tuple(sizes)}
