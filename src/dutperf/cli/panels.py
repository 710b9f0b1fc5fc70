# SPDX-License-Identifier: Apache-2.0
"""How help and manual group the options of commands that send, and the commands."""

from __future__ import annotations

from typing import Any

from dutperf.cli.options import WATCHERS
from dutperf.cli.source_options import MEASURED, SOURCE
from dutperf.setup.conditions import EveryTrial
from dutperf.setup.option import OUTPUT, SEARCH, TRAFFIC, TRIAL, all_offered

FIRST, SETUP, OWN = "First options", "Test setup", "Procedure"
ORDER = (FIRST, OWN, SETUP, TRAFFIC, TRIAL, SEARCH, OUTPUT)
NEEDED_FIRST = ("lab", "config_file", "rate", "max_rate", "frame_sizes", "duration_s", "out")


def arrange(command: Any) -> None:
    """Give each option of a command its panel, and put them in the order of the panels. A command that sends nothing
    has few options, and they stay as they are."""
    options = [one for one in command.params if one.param_type_name == "option"]
    if "drain_s" in {one.name for one in options}:
        for one in options:
            one.rich_help_panel = panel_of(one.name)
        options.sort(key=lambda one: (ORDER.index(one.rich_help_panel), _place(one)))
        command.params = [one for one in command.params if one not in options] + options


def panel_of(parameter: str) -> str:
    if parameter in NEEDED_FIRST:
        return FIRST
    if parameter in (*SOURCE, "testbed", "wait_for_testbed"):
        return SETUP
    if parameter in (*MEASURED, *WATCHERS):
        return OUTPUT
    return next(
        (one.option.panel for one in all_offered(EveryTrial) if one.name == parameter and one.option.panel), OWN
    )


def _place(option: Any) -> int:
    return NEEDED_FIRST.index(option.name) if option.name in NEEDED_FIRST else 0
