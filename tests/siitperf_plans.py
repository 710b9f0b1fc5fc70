# SPDX-License-Identifier: Apache-2.0
"""What siitperf's commands plan, for tests: files that have been read, and variables."""

from __future__ import annotations

from dataclasses import replace

from dutperf.siitperf import commands, configuration
from dutperf.siitperf.configuration import parse
from dutperf.siitperf.variables import Variables
from siitperf_files import ENUMERATED, ROUTER, TRANSLATOR, with_lines

RINGS = Variables(ports=("ring", "ring"), automatic_cores=True, seed=7)
VETHS = Variables(ports=("af_packet:tl", "af_packet:tr"), automatic_cores=True, seed=7)
WITH_CORES = replace(VETHS, automatic_cores=False)

STATELESS, IPV4_ALONE = parse(TRANSLATOR), parse(ROUTER)
WITH_STATE = parse(with_lines(ROUTER, "Stateful 2", *ENUMERATED["Rev"]))


def plan(
    program: commands.Program = commands.TP,
    words: str = "84 1000 1 100 2 2",
    settings: configuration.Settings = STATELESS,
    variables: Variables = VETHS,
) -> commands.Planned:
    return commands.plan(program, words.split(), settings, variables)
