# SPDX-License-Identifier: Apache-2.0
"""The DUT's own commands: in order, in time, on every way out, and with one sentence for what went
wrong."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf import dut
from dutperf.cli.output import console
from dutperf.dut import commands, printed
from dutperf.dut.device import Device
from dutperf.dut.printed import ByCause
from dutperf.model import Direction, TrialResult, Verdict
from dutperf.results.points import losses
from dutperf.setup import configuration
from dutperf.setup.configuration import ConfigError, Dut
from plans import CountingDevice, counts

RESULT = TrialResult(trial=1, verdict=Verdict.VALID)
SIDES = {
    side: {"port": "null", "version": 4, "ipv4": address}
    for side, address in (("left", "198.18.0.2/24"), ("right", "198.19.0.2/24"))
}


def with_commands(**commands: Any) -> Dut:
    return configuration.parse({**SIDES, "dut": {"name": "router", "commands": commands}}, "test").dut


def logging(tmp_path: Path, *names: str) -> dict[str, str]:
    return {name: f"echo {name} >> {tmp_path / 'log'}" for name in names}


def log(tmp_path: Path) -> list[str]:
    return (tmp_path / "log").read_text().split()


def test_it_is_set_up_and_taken_down(tmp_path: Path) -> None:
    with Device(with_commands(**logging(tmp_path, "set_up", "tear_down"))).in_place():
        assert log(tmp_path) == ["set_up"]
    assert log(tmp_path) == ["set_up", "tear_down"]


def test_without_commands_nothing_happens() -> None:
    bare = configuration.parse(SIDES, "test").dut
    with Device(bare).in_place():
        assert not Device(bare).can("state")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("something else")])
def test_it_is_taken_down_however_the_measurement_ends(error: BaseException, tmp_path: Path) -> None:
    with (
        pytest.raises(type(error)),
        Device(with_commands(tear_down=f"echo tear_down >> {tmp_path / 'log'}; exit 3")).in_place(),
    ):
        raise error
    assert log(tmp_path) == ["tear_down"]


def test_it_is_taken_down_where_setting_it_up_failed(tmp_path: Path) -> None:
    failing = with_commands(set_up="echo half way; exit 7", **logging(tmp_path, "tear_down"))
    with (
        pytest.raises(ConfigError, match=r"dut\.commands\.set_up: ended with status 7; last output: half way"),
        Device(failing).in_place(),
    ):
        pytest.fail("was not set up")
    assert log(tmp_path) == ["tear_down"]


SAID: list[tuple[Any, str]] = [
    ("echo one; echo two >&2", "one\ntwo\n"),
    (["printf", "%s", "$HOME *"], "$HOME *"),
    ("printf '\\377'", "\ufffd"),
]


@pytest.mark.parametrize(("command", "said"), SAID)
def test_what_the_state_is(command: Any, said: str) -> None:
    ask = Device(with_commands(state=command)).state
    assert ask() == said


def test_a_reset_runs_until_it_is_waited_for(tmp_path: Path) -> None:
    start = Device(with_commands(reset=f"seq 100000; touch {tmp_path / 'done'}")).reset
    start().finish()
    assert (tmp_path / "done").exists()
    assert not Device(with_commands(state="ls")).can("reset")


def test_what_a_reset_leaves_running_is_not_waited_for() -> None:
    start = Device(with_commands(reset="sleep 30 & true", time_limit_s=20)).reset
    began_s = time.monotonic()
    start().finish()
    assert time.monotonic() - began_s < 15


def test_a_reset_that_is_killed_ends_with_all_that_it_started(tmp_path: Path) -> None:
    start = Device(with_commands(reset=f"(sleep 1; touch {tmp_path / 'late'}) & wait")).reset
    start().kill()
    time.sleep(1.2)
    assert not (tmp_path / "late").exists()


def test_a_reset_that_is_killed_may_start_the_dut_again(tmp_path: Path) -> None:
    # A program of its own tells that it runs: a shell's child that has not begun its program yet may lose the signal.
    waiting = f"sh -c 'touch {tmp_path / 'stopped'}; sleep 30'"
    reset = f"trap 'touch {tmp_path / 'started'}' EXIT; trap 'exit 1' TERM; {waiting}"
    running = Device(with_commands(reset=reset)).reset()
    while not (tmp_path / "stopped").exists():
        time.sleep(0.01)
    running.kill()
    assert (tmp_path / "started").exists()


def test_a_reset_that_does_not_end_itself_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(commands, "GRACE_S", 0.2)
    reset = f"trap '' TERM; touch {tmp_path / 'deaf'}; sleep 1; sleep 1; touch {tmp_path / 'late'}"
    running = Device(with_commands(reset=reset)).reset()
    while not (tmp_path / "deaf").exists():
        time.sleep(0.01)
    running.kill()
    time.sleep(2.2)
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize(
    ("command", "words"), [("exit 5", "ended with status 5"), ("sleep 9", "did not end within 0.2 s")]
)
def test_a_reset_that_fails_says_so(command: str, words: str) -> None:
    start = Device(with_commands(reset=command, time_limit_s=0.2)).reset
    running = start()
    with pytest.raises(ConfigError, match=r"dut\.commands\.reset: " + words):
        running.finish()


WRONG: list[tuple[Any, str]] = [
    ("exit 5", "dut.commands.state: ended with status 5; no output"),
    ("kill -9 $$", "dut.commands.state: was ended by SIGKILL"),
    (["/no/such/program"], "dut.commands.state: cannot run /no/such/program: No such file"),
]


@pytest.mark.parametrize(("command", "words"), WRONG)
def test_a_command_that_fails_is_named(command: Any, words: str) -> None:
    ask = Device(with_commands(state=command)).state
    with pytest.raises(ConfigError) as caught:
        ask()
    assert words in str(caught.value)


def test_a_command_that_takes_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    slow = with_commands(state=f"(sleep 2; touch {tmp_path / 'late'}) & sleep 60", time_limit_s=0.3)
    ask = Device(slow).state
    with pytest.raises(ConfigError, match=r"dut\.commands\.state: did not end within 0\.3 s"):
        ask()
    time.sleep(2.2)
    assert not (tmp_path / "late").exists()


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"state": ""}, "dut.commands.state: is not a command"),
    ({"state": []}, "dut.commands.state: is not a command"),
    ({"state": ["ls", 1]}, "dut.commands.state: is not a command"),
    ({"state": 5}, "dut.commands.state: is not a command"),
    ({"sate": "ls"}, "dut.commands.sate: unknown key; did you mean state?"),
    ({"state": "ls", "time_limit_s": 0}, "dut.commands.time_limit_s: should be greater than 0"),
    ({"time_limit_s": 5}, "dut.commands: names no command"),
    ({}, "dut.commands: names no command"),
]


@pytest.mark.parametrize(("commands", "words"), REFUSED)
def test_what_is_no_command(commands: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        with_commands(**commands)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ({"losses": "./losses"}, "dut.losses: unknown key; did you mean dut.commands.losses?"),
        ({"set_up": ["./up"]}, "dut.set_up: unknown key; did you mean dut.commands.set_up?"),
        ({"command": {"losses": "./losses"}}, "dut.command: unknown key; did you mean dut.commands?"),
        ([{"name": "a"}, {"name": "b", "reset": "./reset"}], "dut.1.reset: unknown key; did you mean dut.1.commands"),
    ],
)
def test_a_command_at_the_wrong_place(device: Any, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configuration.parse({**SIDES, "dut": device}, "test")
    assert words in str(caught.value)


@pytest.mark.parametrize("command", ["clear_connections", "count_connections"])
def test_a_dut_without_gateways_has_connections_if_its_commands_say_so(command: str) -> None:
    """A transparent firewall."""
    sides = {
        name: {"port": name, "version": 4, "ipv4": f"198.18.0.{number}/24"}
        for number, name in enumerate(("left", "right"), 2)
    }
    one, other = (
        dut.of_setup(configuration.parse({**sides, "dut": {"name": "firewall", "commands": commands}}, "test"))
        for commands in ({command: "true"}, {"losses": "true"})
    )
    assert one.has_connections
    assert not other.has_connections


def test_the_identity_is_not_the_commands() -> None:
    assert with_commands(state="ls").identity() == {"name": "router"}


@pytest.mark.parametrize("commands", [{"state": "ls -l"}, {"set_up": ["ls", "-l"], "time_limit_s": 3}])
def test_a_configuration_comes_back_from_a_journal(commands: dict[str, Any]) -> None:
    setup = configuration.parse(
        {
            **SIDES,
            "engine": {"cores": [1], "command": ["sudo"]},
            "dut": {"name": "router", "commands": commands},
            "media_mbps": 100,
        },
        "test",
    )
    kept = configuration.as_json(setup)
    named = sorted(commands.keys() - {"time_limit_s"})
    assert "commands" not in kept["dut"]
    assert configuration.commands_of(setup) == named
    without = setup.model_copy(update={"dut": setup.dut.model_copy(update={"commands": None})})
    assert configuration.parse(kept, "journal") == without


def test_losses_are_what_the_dut_counted_during_the_trial(tmp_path: Path) -> None:
    counters = tmp_path / "counters"
    counters.write_text("forward queue 5\n\nreverse queue 7\n")
    counting = Device(with_commands(losses=["cat", str(counters)]))

    def lose() -> TrialResult:
        counters.write_text("forward queue 12\nforward random 3\nreverse queue 7\n")
        return RESULT

    assert counting.losses_during(lose).dut_losses == {
        Direction.FORWARD: {"queue": 7, "random": 3},
        Direction.REVERSE: {},
    }


def test_counters_that_went_back_say_so_beside_the_result() -> None:
    readings: list[ByCause | str] = [
        {Direction.FORWARD: {"queue": 5, "random": 1}, Direction.REVERSE: {"queue": 7}},
        {Direction.FORWARD: {"queue": 2, "random": 0}, Direction.REVERSE: {"queue": 9}},
    ]
    result = CountingDevice(lambda: readings.pop(0)).losses_during(lambda: RESULT)
    why = "its loss counters went back during the trial (forward queue from 5 to 2, forward random from 1 to 0)"
    assert (result.dut_losses, result.dut_losses_unknown) == (None, why)
    assert any(why in text for text in console._remarks(result))
    lossy = result.model_copy(update={"forward": counts(received=900)})
    assert why in losses(lossy)["forward"].sentence()
    assert TrialResult.model_validate_json(result.model_dump_json()) == result


@pytest.mark.parametrize("after", [{Direction.FORWARD: {"queue": 9}}, {Direction.REVERSE: {"queue": 5}}, {}])
def test_a_counter_that_is_not_told_any_more_is_not_zero(after: ByCause) -> None:
    readings: list[ByCause | str] = [{Direction.FORWARD: {"queue": 5, "random": 0}}, after]
    result = CountingDevice(lambda: readings.pop(0)).losses_during(lambda: RESULT)
    assert result.dut_losses is None
    assert "forward random" in str(result.dut_losses_unknown)


def test_a_direction_that_is_not_counted_is_not_without_loss(tmp_path: Path) -> None:
    counters = tmp_path / "counters"
    counters.write_text("forward queue 5\n")
    result = Device(with_commands(losses=f"cat {counters}")).losses_during(lambda: RESULT)
    assert result.dut_losses == {Direction.FORWARD: {}}
    assert [text for text in console._remarks(result) if "counters" in text] == [
        "the DUT's own counters, forward: nothing lost"
    ]


def test_the_dut_s_counters_are_told_where_the_tester_does_not_know_where_frames_were_lost() -> None:
    lossy = {"forward": counts(received=900), "dut_losses": {Direction.FORWARD: {"queue_full": 98}}}
    result = TrialResult(trial=1, verdict=Verdict.INVALID, **lossy)
    [where] = [cell for cell in console._counts("", result).columns[1].cells if "tester's counters" in str(cell)]
    assert where == "100 not in the tester's counters (in the DUT's own: 98 queue full)"


def test_a_dut_that_does_not_tell_its_counters_says_so_and_one_without_any_does_not() -> None:
    assert CountingDevice(lambda: "no answer").losses_during(lambda: RESULT).dut_losses_unknown is not None
    assert Device(Dut()).losses_during(lambda: RESULT) == RESULT


@pytest.mark.parametrize("line", ["forward queue", "left queue 5", "forward tail drop 5"])
def test_what_a_dut_that_counts_may_not_say(line: str) -> None:
    count = Device(with_commands(losses=f"echo {line}")).losses
    with pytest.raises(ConfigError, match=f"dut.commands.losses: '{line}' is not a direction, a cause and a number"):
        count()


@pytest.mark.parametrize("number", ["-1", "1,234", "1.5", "2k", "1_000"])
def test_a_loss_that_is_no_whole_number_is_an_error_that_quotes_it(number: str) -> None:
    count = Device(with_commands(losses=f"echo forward queue {number}")).losses
    with pytest.raises(ConfigError, match=f"dut.commands.losses: 'forward queue {number}': {number} is not a whole"):
        count()


@pytest.mark.parametrize("printed", ["true", "printf '\\n  \\n'", "nft list ruleset | grep no.such.counter || true"])
def test_a_dut_that_prints_no_counter_has_not_counted_nothing(printed: str) -> None:
    with pytest.raises(ConfigError, match=r"dut\.commands\.losses: printed nothing: .* also for 0"):
        Device(with_commands(losses=printed)).losses()


def test_a_router_that_is_away_prints_nothing_behind_a_pipe(tmp_path: Path) -> None:
    """The status is that of the last program."""
    counters = tmp_path / "counters"
    counters.write_text("forward queue 5\n")
    counting = Device(with_commands(losses=f"cat {counters} 2>/dev/null | grep forward || true"))
    assert counting.losses() == {Direction.FORWARD: {"queue": 5}}
    counters.unlink()
    assert "printed nothing" in counting.losses()


def test_losses_are_told_once() -> None:
    count = Device(with_commands(losses="echo forward queue 1; echo forward queue 2")).losses
    with pytest.raises(ConfigError, match=r"dut\.commands\.losses: printed forward queue more than once"):
        count()


def test_a_vertical_tab_ends_no_line() -> None:
    count = Device(with_commands(losses="printf 'forward queue 5\\vforward queue 7\\n'")).losses
    with pytest.raises(ConfigError, match=r"dut\.commands\.losses"):
        count()


def test_a_counter_that_was_reset_in_the_trial_gives_no_loss(tmp_path: Path) -> None:
    counters = tmp_path / "counters"
    counters.write_text("forward queue 5\n")
    counting = Device(with_commands(losses=["cat", str(counters)]))

    def restart() -> TrialResult:
        counters.write_text("forward queue 3\n")
        return RESULT

    result = counting.losses_during(restart)
    assert result.dut_losses is None
    assert "forward queue from 5 to" in str(result.dut_losses_unknown)


def test_a_dut_that_restarts_cannot_be_asked_for_its_losses(tmp_path: Path) -> None:
    counters = tmp_path / "counters"
    counting = Device(with_commands(losses=["cat", str(counters)]))
    with pytest.raises(ConfigError, match=r"dut\.commands\.losses: ended with status 1"):
        counting.losses()
    counters.write_text("forward queue 5\n")

    def restart() -> TrialResult:
        counters.unlink()
        return RESULT

    for run in (restart, lambda: RESULT):
        untold = counting.losses_during(run)
        assert untold.dut_losses is None
        assert re.match(
            r"the DUT did not tell its loss counters: dut\.commands\.losses: ended with status 1; .*No such file",
            str(untold.dut_losses_unknown),
        )


def test_a_dut_that_cannot_be_asked_gives_no_loss(tmp_path: Path) -> None:
    assert not Device(configuration.parse(SIDES, "test").dut).counts_losses()
    gone = configuration.parse({**SIDES, "dut": {"control": str(tmp_path / "no socket")}}, "test").dut
    assert dut.of(gone).losses_during(lambda: RESULT).dut_losses is None
    assert gone.identity() == {}


def test_filters_are_installed_and_told_and_removed_again(tmp_path: Path) -> None:
    told = with_commands(filters=f'echo "$DUTPERF_FILTERS filters" | tee -a {tmp_path / "log"}; echo; echo "  deny x"')
    with Device(told).filtered(25) as device:
        assert device.identity() == {"name": "router", "filters": ["25 filters", "deny x"]}
        assert log(tmp_path) == ["25", "filters"]
    assert log(tmp_path) == ["25", "filters", "0", "filters"]


def test_filters_are_removed_after_an_error(tmp_path: Path) -> None:
    told = with_commands(filters=f"echo $DUTPERF_FILTERS >> {tmp_path / 'log'}")
    with pytest.raises(KeyboardInterrupt), Device(told).filtered(1):
        raise KeyboardInterrupt
    assert log(tmp_path) == ["1", "0"]
    with (
        pytest.raises(ConfigError, match=r"^dut\.commands\.filters: ended with status 3"),
        Device(with_commands(filters="exit 3")).filtered(1),
    ):
        pytest.fail("it is not to be measured")


def test_without_the_modifier_or_the_command_no_filters_are_installed() -> None:
    with Device(with_commands(filters="exit 3")).filtered(None) as device:
        assert "filters" not in device.identity()
    with Device(with_commands(state="true")).filtered(25) as device:
        assert "filters" not in device.identity()


COUNTS: list[tuple[str, int]] = [
    ("echo 12", 12),
    ("echo connections 12; echo early_drop 3", 12),
    ("echo 'conntrack v1.4.7 (conntrack-tools): 12 flow entries have been shown.'", 12),
    ("echo 'table-2 of fw1.3: 7/100'", 7),
    ("echo There are 0.", 0),
    ("printf '2048\\r\\n'", 2048),
    ("""echo '{"current":12,"max":100}'""", 12),
    ("echo since 2026-01-02 12:00; echo connections: 12", 12),
]
NOT_COUNTS = [
    "2,048",
    "0,999",
    "2.048",
    "2.048 of 4096",
    "1.5e3",
    "2 048 flows",
    "2\u00a0048",
    "2\u202f048",
    "2'048",
    "2_048",
    "2k",
    "0x800",
    "-5 of 100",
    "connections 2,048",
    "since 2026-01-02: 5",
    "12:00:05 5",
    "connections 5\nconnections 6",
]


@pytest.mark.parametrize(("command", "count"), COUNTS)
def test_the_first_whole_number_is_the_count_of_connections(command: str, count: int) -> None:
    assert Device(with_commands(count_connections=command)).count_connections() == count


@pytest.mark.parametrize("output", NOT_COUNTS)
def test_a_count_that_is_not_understood_is_an_error_that_quotes_it(output: str) -> None:
    with pytest.raises(ValueError, match=re.escape(output.split()[-1])):
        printed.count(output)


@given(st.integers(0, 2**64), st.dictionaries(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), st.integers(0, 2**64)))
def test_any_count_is_read_as_it_was_printed_among_others(count: int, statistics: dict[str, int]) -> None:
    statistics.pop(printed.COUNTED, None)
    lines = [f"{printed.COUNTED} {count}", *(f"{name} {number}" for name, number in statistics.items())]
    assert printed.count("\n".join(lines)) == count


def test_what_prints_no_number_of_connections_is_named() -> None:
    connections = Device(with_commands(count_connections="echo many, v1.5 of them"))
    with pytest.raises(ConfigError, match=r"^dut\.commands\.count_connections: printed no number .* many, v1\.5"):
        connections.count_connections()


def test_a_dut_that_cannot_tell_has_no_count_and_one_that_cannot_clear_says_so() -> None:
    for bare in (configuration.parse(SIDES, "test").dut, with_commands(state="ls")):
        connections = Device(bare)
        assert connections.count_connections() is None
        with pytest.raises(ConfigError, match=r"^dut\.commands\.clear_connections: is missing"):
            connections.clear_connections()


def test_connections_are_cleared_by_the_command_and_timed() -> None:
    cleared_s = Device(with_commands(clear_connections="sleep 0.3")).clear_connections()
    assert 0.3 <= cleared_s < 20
    told = Device(with_commands(clear_connections="echo deletion_s 0.012500")).clear_connections()
    assert told == 0.0125


@pytest.mark.parametrize(
    "printed",
    ["deletion_s 0.25\\r\\n", "  deletion_s\\t0.25  ", "deletion_s 2.5e-1", "deletion_s: .25", "5%%\\rdeletion_s=0.25"],
)
def test_a_deletion_s_time_is_read_however_it_is_written(printed: str) -> None:
    assert Device(with_commands(clear_connections=f"printf '{printed}'")).clear_connections() == 0.25


def test_a_deletion_s_time_is_found_behind_any_output() -> None:
    told = with_commands(clear_connections="seq 300000; echo deletion_s 0.25")
    assert Device(told).clear_connections() == 0.25


@pytest.mark.parametrize(
    "line",
    [
        "deletion_s 0,25",
        "deletion_s 250ms",
        "deletion_s 0.25 s",
        "deletion_s",
        "deletion_s -1",
        "deletion_s nan",
        "deletion_s 1e999",
        "Deletion_s 0.25",
        "\ufeffdeletion_s 0.25",
        "took deletion_s 0.25",
        "deletion_s 1; deletion_s 2",
    ],
)
def test_a_deletion_s_time_that_is_not_understood_is_an_error_that_quotes_it(line: str) -> None:
    command = "printf '%s\\n' " + " ".join(f"'{one}'" for one in line.split("; "))
    with pytest.raises(ConfigError, match=r"^dut\.commands\.clear_connections: ") as caught:
        Device(with_commands(clear_connections=command)).clear_connections()
    assert line in str(caught.value)


def test_a_command_that_cannot_clear_is_named() -> None:
    connections = Device(with_commands(clear_connections="echo 5 are left; exit 1"))
    with pytest.raises(ConfigError, match=r"^dut\.commands\.clear_connections: ended with status 1.*5 are left"):
        connections.clear_connections()


def test_a_reference_dut_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    gone = configuration.parse({**SIDES, "dut": {"control": str(tmp_path / "no socket")}}, "test").dut
    for ask in (dut.of(gone).count_connections, dut.of(gone).clear_connections):
        with pytest.raises(ConfigError, match=r"^dut\.control: the reference DUT does not answer"):
            ask()
