# SPDX-License-Identifier: Apache-2.0
"""``dutperf resume``: goes on with what was killed, interrupted, or stopped by an error, from the
last trial that it finished."""

from __future__ import annotations

from dutperf.cli import options
from dutperf.cli.commands.measure import tell
from dutperf.cli.errors import kept, say
from dutperf.cli.output import watch
from dutperf.cli.output.watch import Watchers, watched
from dutperf.run.resume import go_on, is_complete


@watched
def resume(
    directory: options.Directory,
    config_file: options.ConfigNow = None,
    as_json: options.Json = False,
    *,
    watchers: Watchers,
) -> None:
    """Go on with a run, or a suite of them, from the last trial that it finished; ends as it would
    have."""
    if is_complete(directory):
        say(f"what was to be measured in {directory} is complete")
    with kept(directory):
        result = go_on(directory, lambda measurements: watch.course(measurements, directory, watchers), config_file)
    tell(result, directory, as_json)
