# SPDX-License-Identifier: Apache-2.0
"""Several DUTs in a row: the commands of each in order, and what is said of which."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from command_line import dutperf, setup_of, throughput, trial
from dutperf import dut
from dutperf.cli.output import console
from dutperf.dut.row import DeviceRow
from dutperf.engine.factory import engine_on
from dutperf.model import Direction, DirectionCounts, TrialResult, Verdict
from dutperf.results import environments, tables
from dutperf.results.points import losses
from dutperf.setup import configuration
from dutperf.setup.configuration import ConfigError, Dut
from dutperf.store import Store
from dutperf.tester import TesterError
from plans import CountingDevice, counts

RESULT = TrialResult(trial=1, verdict=Verdict.VALID)
SIDES = {
    side: {"port": "null", "version": 4, "ipv4": address}
    for side, address in (("left", "198.18.0.2/24"), ("right", "198.19.0.2/24"))
}


def row(*commands: dict[str, Any], names: tuple[str, ...] = ("CLAT", "PLAT", "CPE")) -> DeviceRow:
    """DUTs with these commands."""
    duts = [{"name": name} | ({"commands": each} if each else {}) for name, each in zip(names, commands, strict=False)]
    made = dut.of_setup(configuration.parse({**SIDES, "dut": duts}, "test"))
    assert isinstance(made, DeviceRow)
    return made


def logging(tmp_path: Path, name: str, *commands: str) -> dict[str, str]:
    return {command: f"echo {name}.{command} >> {tmp_path / 'log'}" for command in commands}


def log(tmp_path: Path) -> list[str]:
    return (tmp_path / "log").read_text().split()


# --- the configuration ----------------------------------------------------------------------------


def test_a_namespace_of_a_dut_that_is_not_there_is_named() -> None:
    """A typing error would end the watch over what its processes wait for."""
    setup = configuration.parse({**SIDES, "engine": {"dut_netns": ["no-such-namespace"]}}, "test")
    with pytest.raises(TesterError, match="there is no network namespace no-such-namespace") as caught:
        engine_on(setup, 1518)
    assert caught.value.field == "engine.dut_netns"


REFUSED: list[tuple[Any, str]] = [
    ([{"name": "CLAT"}], "dut: is a list of several DUTs; give a DUT alone as a mapping"),
    ([{"name": "CLAT"}, {"version": "1"}], "dut.1.name: is missing: each of several DUTs needs a name"),
    ([{"name": "CLAT"}, {"name": ""}], "dut.1.name: is missing"),
    ([{"name": "1"}, {"name": 1}], "dut.1.name: 1 is already the name of another DUT"),
    ([{"name": "CLAT"}, 5], "dut.1: should be a mapping, with keys of name, version, commands, control"),
    ([{"name": "CLAT"}, {"name": "PLAT", "control": True}], "dut.1.control: is true or false"),
    ([{"name": "CLAT"}, {"name": "PLAT", "commands": {}}], "dut.1.commands: names no command"),
    (
        [{"name": "CLAT"}, {"name": "PLAT", "commands": {"sate": "ls"}}],
        "dut.1.commands.sate: unknown key; did you mean state?",
    ),
]


@pytest.mark.parametrize(("duts", "words"), REFUSED)
def test_what_is_no_row(duts: Any, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configuration.parse({**SIDES, "dut": duts}, "test")
    assert words in str(caught.value)


def test_a_row_comes_back_from_a_journal_without_its_commands() -> None:
    duts = [{"name": "CLAT", "hardened": True, "commands": {"state": "ls", "reset": "ls"}}, {"name": "PLAT"}]
    setup = configuration.parse({**SIDES, "engine": {"dut_netns": ["one", "two"]}, "dut": duts}, "test")
    kept = configuration.as_json(setup)
    assert kept["dut"] == [{"name": "CLAT", "hardened": True}, {"name": "PLAT"}]
    assert kept["engine"]["dut_netns"] == ["one", "two"]
    assert configuration.commands_of(setup) == ["CLAT: reset", "CLAT: state"]
    assert configuration.as_json(configuration.parse(kept, "journal")) == kept


def test_a_single_namespace_is_written_as_it_was_given() -> None:
    setup = configuration.parse({**SIDES, "engine": {"dut_netns": "one"}}, "test")
    assert setup.engine.dut_netns == ("one",)
    assert configuration.as_json(setup)["engine"]["dut_netns"] == "one"


# --- around a measurement -------------------------------------------------------------------------


def test_it_is_set_up_from_left_to_right_and_torn_down_in_reverse(tmp_path: Path) -> None:
    both = [logging(tmp_path, name, "set_up", "tear_down") for name in ("CLAT", "PLAT")]
    with row(*both).in_place():
        assert log(tmp_path) == ["CLAT.set_up", "PLAT.set_up"]
    assert log(tmp_path)[2:] == ["PLAT.tear_down", "CLAT.tear_down"]


@pytest.mark.parametrize(
    ("failing", "run"),
    [
        ("set_up", ["CLAT.set_up", "PLAT.tear_down", "CLAT.tear_down"]),
        ("tear_down", ["CLAT.set_up", "PLAT.set_up", "CLAT.tear_down"]),
    ],
)
def test_all_are_torn_down_where_one_fails_and_that_one_is_named(failing: str, run: list[str], tmp_path: Path) -> None:
    clat, plat, cpe = (logging(tmp_path, name, "set_up", "tear_down") for name in ("CLAT", "PLAT", "CPE"))
    devices = row(clat, plat | {failing: "exit 7"}, *([] if failing == "tear_down" else [cpe]))
    with pytest.raises(ConfigError, match=rf"^dut\.1\.commands\.{failing}: ended with status 7"), devices.in_place():
        pass
    assert log(tmp_path) == run


def test_each_that_has_filters_says_which() -> None:
    told = {"filters": 'echo "$DUTPERF_FILTERS rules"'}
    with row(told, {}, told).filtered(25) as duts:
        assert [one.identity().get("filters") for one in duts] == [["25 rules"], None, ["25 rules"]]
    with row(told, told).filtered(None) as duts:
        assert all("filters" not in one.identity() for one in duts)


# --- around a trial -------------------------------------------------------------------------------


def test_each_state_has_its_name() -> None:
    asked = row({"state": "echo one; echo two"}, {"reset": "ls"}, {"state": "printf three"})
    assert asked.can("state")
    assert not asked.can("losses")
    assert asked.state() == "CLAT:\none\ntwo\nCPE:\nthree\n"


def test_those_that_can_are_reset_at_the_same_time(tmp_path: Path) -> None:
    """Each waits for the other."""
    meet = "touch {0}/{1}; until [ -e {0}/{2} ]; do sleep 0.02; done; sleep 0.2; echo {1} >> {0}/log"
    resets = row({"reset": meet.format(tmp_path, "a", "b")}, {}, {"reset": meet.format(tmp_path, "b", "a")})
    resets.reset().finish()
    assert sorted(log(tmp_path)) == ["a", "b"]


def test_a_reset_that_fails_is_named_and_the_others_are_waited_for(tmp_path: Path) -> None:
    running = row({"reset": "exit 5"}, {"reset": f"sleep 0.3; echo done > {tmp_path / 'log'}"}).reset()
    with pytest.raises(ConfigError, match=r"^dut\.0\.commands\.reset: ended with status 5"):
        running.finish()
    assert log(tmp_path) == ["done"]


def test_resets_that_are_killed_all_end(tmp_path: Path) -> None:
    late = [{"reset": f"sleep 1; echo {name} >> {tmp_path / 'log'}"} for name in "ab"]
    row(*late).reset().kill()
    with pytest.raises(ConfigError, match=r"^dut\.1\.commands\.reset: cannot run /no/such/program"):
        row(late[0], {"reset": ["/no/such/program"]}).reset()
    time.sleep(1.3)
    assert not (tmp_path / "log").exists()


def test_each_forgets_its_addresses(tmp_path: Path) -> None:
    row(*(logging(tmp_path, name, "clear_addresses") for name in ("CLAT", "PLAT"))).clear_addresses()
    assert log(tmp_path) == ["CLAT.clear_addresses", "PLAT.clear_addresses"]


# --- losses ---------------------------------------------------------------------------------------


def counters(tmp_path: Path, name: str, text: str) -> dict[str, list[str]]:
    (tmp_path / name).write_text(text)
    return {"losses": ["cat", str(tmp_path / name)]}


def test_a_loss_has_the_name_of_the_dut_that_counted_it(tmp_path: Path) -> None:
    commands = [counters(tmp_path, name, f"forward {name} 5\nreverse full 0\n") for name in ("queue", "tun")]

    def lose() -> TrialResult:
        (tmp_path / "queue").write_text("forward queue 8\nreverse full 2\n")
        (tmp_path / "tun").write_text("forward tun 6\nreverse full 0\n")
        return RESULT

    result = row(*commands).losses_during(lose)
    assert (result.dut_losses, result.dut_losses_unknown) == (
        {Direction.FORWARD: {"CLAT: queue": 3, "PLAT: tun": 1}, Direction.REVERSE: {"CLAT: full": 2}},
        None,
    )


def test_one_without_counters_is_named_beside_what_the_others_counted(tmp_path: Path) -> None:
    def lose() -> TrialResult:
        (tmp_path / "clat").write_text("forward queue 4\n")
        return RESULT

    result = row(counters(tmp_path, "clat", "forward queue 1\n"), {}).losses_during(lose)
    lossy = result.model_copy(update={"forward": counts(received=900)})
    said = losses(lossy)["forward"].sentence()
    assert "the DUT counts 3 itself: 3 CLAT: queue (PLAT has no loss counters)" in said
    assert list(console._remarks(result))[-2:] == [
        "the DUT's own counters, forward: 3 CLAT: queue lost",
        "PLAT has no loss counters",
    ]
    assert row({}, {"state": "ls"}).losses_during(lambda: RESULT) == RESULT


def test_one_that_does_not_answer_makes_the_losses_unknown(tmp_path: Path) -> None:
    devices = row(*(counters(tmp_path, name, "forward queue 5\n") for name in ("clat", "plat")))

    def restart() -> TrialResult:
        (tmp_path / "plat").unlink()
        return RESULT

    result = devices.losses_during(restart)
    assert result.dut_losses is None
    assert re.match("PLAT: the DUT did not tell its loss counters: .*No such file", str(result.dut_losses_unknown))
    counters(tmp_path, "plat", "forward queue 7\n")

    def go_back() -> TrialResult:
        counters(tmp_path, "plat", "forward queue 2\n")
        return RESULT

    why = "PLAT: its loss counters went back during the trial (forward queue from 7 to 2)"
    assert devices.losses_during(go_back).dut_losses_unknown == why
    silent = row(counters(tmp_path, "clat", "forward queue 5\n"), {"losses": "exit 3"})
    with pytest.raises(ConfigError, match=r"^dut\.1\.commands\.losses: ended with status 3"):
        silent.losses_during(lambda: RESULT)


BY_CAUSE = st.fixed_dictionaries(
    dict.fromkeys(
        (Direction.FORWARD, Direction.REVERSE), st.dictionaries(st.sampled_from("abc"), st.integers(1, 2**40))
    )
)


@given(st.lists(BY_CAUSE, min_size=2, max_size=4))
def test_no_loss_of_any_dut_is_left_out_or_added_to_another_s(lost: list[dict[Direction, dict[str, int]]]) -> None:
    before = {way: dict.fromkeys("abc", 7) for way in (Direction.FORWARD, Direction.REVERSE)}
    after = [{way: {cause: 7 + each[way].get(cause, 0) for cause in "abc"} for way in before} for each in lost]
    readings = [[before, one] for one in after]
    devices = [CountingDevice(lambda told=told: told.pop(0)) for told in readings]
    for number, one in enumerate(devices):
        one.described = Dut(name=f"{number}")
    result = DeviceRow(devices).losses_during(lambda: RESULT)
    assert result.dut_losses == {
        way: {f"{number}: {cause}": each[way][cause] for number, each in enumerate(lost) for cause in each[way]}
        for way in before
    }


# --- losses by what was sent on the links ---------------------------------------------------------


PRINTED_NOTHING = "printed nothing: it prints a line for each counter, also for 0"


def linked(tmp_path: Path, *shown: str, duts: list[dict[str, Any]] | None = None) -> DeviceRow:
    """DUTs with links that print this, or their last words."""
    names = ("CLAT", "BRIDGE", "PLAT") if len(shown) > 1 else ("CLAT", "PLAT")
    for number, text in enumerate(shown):
        (tmp_path / f"link{number}").write_text(text)
    between = [{"passed": f"cat {tmp_path / f'link{number}'}"} if text else {} for number, text in enumerate(shown)]
    made = {**SIDES, "dut": duts or [{"name": name} for name in names], "between": between}
    row = dut.of_setup(configuration.parse(made, "test"))
    assert isinstance(row, DeviceRow)
    return row


def sent_on(tmp_path: Path, *shown: str, **directions: DirectionCounts) -> Callable[[], TrialResult]:
    """A trial after which the links print this."""

    def run() -> TrialResult:
        for number, text in enumerate(shown):
            (tmp_path / f"link{number}").write_text(text)
        return RESULT.model_copy(update=directions)

    return run


def test_a_link_tells_what_both_duts_lost(tmp_path: Path) -> None:
    row = linked(tmp_path, "forward 7\nreverse 100\n")
    both = {"forward": counts(received=900), "reverse": counts(received=990)}
    lossy = row.losses_during(sent_on(tmp_path, "forward 967\nreverse 1098\n", **both))
    assert (lossy.dut_losses, lossy.dut_losses_unknown) == (
        {
            Direction.FORWARD: {"CLAT: not_forwarded": 40, "PLAT: not_forwarded": 60},
            Direction.REVERSE: {"PLAT: not_forwarded": 2, "CLAT: not_forwarded": 8},
        },
        None,
    )
    again = sent_on(tmp_path, "forward 2000\nreverse 2200\n", forward=counts(), reverse=counts())
    assert row.losses_during(again).dut_losses == {Direction.FORWARD: {}, Direction.REVERSE: {}}, "frames of the DUTs"


def test_a_direction_that_the_link_does_not_tell_is_not_told(tmp_path: Path) -> None:
    both = {"forward": counts(received=900), "reverse": counts(received=990)}
    result = linked(tmp_path, "reverse 0\n").losses_during(sent_on(tmp_path, "reverse 995\n", **both))
    assert result.dut_losses == {Direction.REVERSE: {"PLAT: not_forwarded": 5, "CLAT: not_forwarded": 5}}


def test_streams_beside_those_that_are_measured_passed_it_as_well(tmp_path: Path) -> None:
    beside = {Direction("forward:load"): counts(sent=500, received=400)}
    run = sent_on(tmp_path, "forward 1480\n", forward=counts(received=990), other_streams=beside)
    result = linked(tmp_path, "forward 0\n").losses_during(run)
    assert result.dut_losses == {Direction.FORWARD: {"CLAT: not_forwarded": 20, "PLAT: not_forwarded": 90}}


def test_duts_between_links_that_tell_are_named_together(tmp_path: Path) -> None:
    row = linked(tmp_path, "", "forward 0\n")
    result = row.losses_during(sent_on(tmp_path, "", "forward 970\n", forward=counts(received=900)))
    assert result.dut_losses == {Direction.FORWARD: {"CLAT and BRIDGE: not_forwarded": 30, "PLAT: not_forwarded": 70}}
    assert result.dut_losses_unknown == "CLAT and BRIDGE have no loss counters"


def test_what_a_dut_counted_itself_is_not_told_twice(tmp_path: Path) -> None:
    duts = [{"name": "B4"}, {"name": "AFTR", "commands": {"losses": f"cat {tmp_path / 'own'}"}}]
    (tmp_path / "own").write_text("reverse no_connection 3\n")
    row = linked(tmp_path, "reverse 0\n", duts=duts)
    sent = sent_on(tmp_path, "reverse 950\n", reverse=counts(received=940))

    def run() -> TrialResult:
        (tmp_path / "own").write_text("reverse no_connection 45\n")
        return sent()

    expected = {"AFTR: not_forwarded": 8, "AFTR: no_connection": 42, "B4: not_forwarded": 10}
    assert row.losses_during(run).dut_losses == {Direction.REVERSE: expected}


def test_why_a_link_cannot_be_asked_after_a_trial_is_in_the_result(tmp_path: Path) -> None:
    row = linked(tmp_path, "forward 0\n")

    def unreachable() -> TrialResult:
        (tmp_path / "link0").unlink()
        return RESULT.model_copy(update={"forward": counts(received=900)})

    [said] = [one.sentence() for one in losses(row.losses_during(unreachable)).values()]
    assert re.search(r"no counter says .*: between\.passed: ended with status 1; .*link0.*No such file", said)


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        ("forward 1011\n", "1,011 frames were counted behind CLAT, which was sent 1,000 (forward)"),
        (
            "forward 889\n",
            "only 889 frames were counted behind CLAT, but 900 arrived (forward): what does passed count?",
        ),
        (
            "forward 0\n",
            "900 frames arrived over the link behind CLAT, of which it counted none (forward): what does passed count?",
        ),
        ("", f"the link behind CLAT: no counter says what was sent on it: between.passed: {PRINTED_NOTHING}"),
        ("reverse 5\n", "the link behind CLAT: its counters went back during the trial, or are missing after it"),
    ],
)
def test_a_link_that_cannot_be_right_tells_nothing(tmp_path: Path, shown: str, why: str) -> None:
    row = linked(tmp_path, "forward 0\n")
    result = row.losses_during(sent_on(tmp_path, shown, forward=counts(received=900)))
    assert (result.dut_losses, result.dut_losses_unknown) == (None, why)


@pytest.mark.parametrize(
    ("shown", "lost"),
    [
        ("forward 1002\n", {"PLAT: not_forwarded": 100}),
        ("forward 1010\n", {"PLAT: not_forwarded": 100}),
        ("forward 952\n", {"CLAT: not_forwarded": 48, "PLAT: not_forwarded": 52}),
        ("forward 899\n", {"CLAT: not_forwarded": 100}),
    ],
)
def test_a_few_frames_of_the_duts_own_are_taken_off(tmp_path: Path, shown: str, lost: dict[str, int]) -> None:
    """An ARP or Neighbour Discovery frame on the link makes nobody's loss unknown."""
    result = linked(tmp_path, "forward 0\n").losses_during(sent_on(tmp_path, shown, forward=counts(received=900)))
    assert (result.dut_losses, result.dut_losses_unknown) == ({Direction.FORWARD: lost}, None)


@pytest.mark.parametrize(
    ("members", "lost"),
    [
        ({"late": 100}, {}),
        ({"corrupted": 100}, {}),
        ({"tester_drops": {"kernel_socket": 100}}, {}),
        ({"late": 50, "tester_drops": {"kernel_socket": 5_000}}, {}),
        ({"late": 60, "corrupted": 10}, {"PLAT: not_forwarded": 30}),
        ({"corrupted": 140}, {}),
    ],
)
def test_what_left_the_last_dut_is_not_its_loss(tmp_path: Path, members: dict[str, Any], lost: dict[str, int]) -> None:
    """Late and corrupted frames, and those that the tester dropped, are lost in the trial, but the DUTs sent them."""
    run = sent_on(tmp_path, "forward 1000\n", forward=counts(received=900, **members))
    result = linked(tmp_path, "forward 0\n").losses_during(run)
    assert (result.dut_losses, result.dut_losses_unknown) == ({Direction.FORWARD: lost}, None)


def test_one_direction_that_does_not_fit_leaves_the_other(tmp_path: Path) -> None:
    row = linked(tmp_path, "forward 0\nreverse 0\n")
    both = {"forward": counts(received=900), "reverse": counts(received=990)}
    result = row.losses_during(sent_on(tmp_path, "forward 5000\nreverse 995\n", **both))
    assert result.dut_losses == {Direction.REVERSE: {"PLAT: not_forwarded": 5, "CLAT: not_forwarded": 5}}
    assert result.dut_losses_unknown == "5,000 frames were counted behind CLAT, which was sent 1,000 (forward)"


def test_a_counter_that_counts_something_else_shows_without_a_loss(tmp_path: Path) -> None:
    row = linked(tmp_path, "forward 7\nreverse 9\n")
    whole = sent_on(tmp_path, "forward 7\nreverse 9\n", forward=counts(), reverse=counts())
    result = row.losses_during(whole)
    assert result.dut_losses is None
    assert "1,000 frames arrived over the link behind CLAT, of which it counted none (forward)" in str(
        result.dut_losses_unknown
    )


def test_a_counter_that_never_counted_names_nobody(tmp_path: Path) -> None:
    """Whether the DUT before it lost all, or the command counts elsewhere, nobody knows."""
    row = linked(tmp_path, "forward 7\n")
    nothing = sent_on(tmp_path, "forward 7\n", forward=counts(received=0))
    result = row.losses_during(nothing)
    assert result.dut_losses is None
    assert result.dut_losses_unknown == (
        "on the link behind CLAT no frame has been counted yet (forward): none was sent there, or passed counts"
        " something else"
    )
    assert row.losses_during(sent_on(tmp_path, "forward 1007\n", forward=counts())).dut_losses_unknown is None
    again = row.losses_during(sent_on(tmp_path, "forward 1007\n", forward=counts(received=0)))
    assert again.dut_losses == {Direction.FORWARD: {"CLAT: not_forwarded": 1000}}


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        ("forward many\n", "'forward many': many is not a whole number"),
        ("forward 1\nforward 2\n", "printed forward more than once"),
        ("forward queue 2\n", "'forward queue 2' is not forward or reverse and a number"),
        (" \n", "printed nothing"),
    ],
)
def test_what_a_link_prints_is_understood_or_refused(tmp_path: Path, shown: str, words: str) -> None:
    with pytest.raises(ConfigError, match=rf"^between\.passed: {words}"):
        linked(tmp_path, shown).losses_during(lambda: RESULT)


def test_links_between_named_ports_are_not_asked() -> None:
    ports = {"ports": {"a": SIDES["left"], "b": SIDES["right"]}, "paths": ["a<->b"]}
    made = {**ports, "dut": [{"name": "CLAT"}, {"name": "PLAT"}], "between": {"passed": "true"}}
    with pytest.raises(ConfigError, match="between: has passed, which says forward and reverse"):
        configuration.parse(made, "test")


# --- connections ----------------------------------------------------------------------------------


def test_each_that_can_deletes_its_connections(tmp_path: Path) -> None:
    clearing = [{"clear_connections": f"echo {name} >> {tmp_path / 'log'}; echo deletion_s 0.25"} for name in "ab"]
    assert row(clearing[0], {}, clearing[1]).clear_connections() == 0.5
    assert log(tmp_path) == ["a", "b"]
    with pytest.raises(ConfigError, match=r"^dut: none of CLAT, PLAT and CPE has the command clear_connections"):
        row({}, {"state": "ls"}, {}).clear_connections()


def test_one_that_has_connections_left_is_named() -> None:
    clears, empty, full = (
        {"clear_connections": "true"},
        {"count_connections": "echo 0"},
        {"count_connections": "echo 9"},
    )
    row(clears | empty, empty).begin_without_connections()
    with pytest.raises(ConfigError, match=r"^dut\.1\.commands\.clear_connections: the DUT has 9 connections after"):
        row(clears | empty, full).begin_without_connections()


def test_the_smallest_count_of_connections_is_that_of_the_row() -> None:
    counted = row({"count_connections": "echo 12"}, {}, {"count_connections": "echo 7"})
    assert counted.count_connections() == 7
    assert row({}, {"state": "ls"}).count_connections() is None


# --- what the results say -------------------------------------------------------------------------


def test_a_row_has_a_name_for_all_and_the_identity_of_each() -> None:
    assert row({}, {}).identity() == {"name": "CLAT and PLAT", "row": [{"name": "CLAT"}, {"name": "PLAT"}]}
    assert row({}, {}, {}).identity()["name"] == "CLAT, PLAT and CPE"


def configured(directory: Path, **commands: str) -> Path:
    each = {name: f"echo {name} >> {directory / 'log'}; {command}" for name, command in commands.items()}
    setup = setup_of("Engine")
    setup["dut"] = [{"name": "CLAT", "version": "0.9"}, {"name": "PLAT", "version": "1.2", "cores": [1, 2]}]
    setup["dut"][1] |= {"commands": each} if each else {}
    path = directory / "row.yaml"
    path.write_text(yaml.safe_dump(setup))
    return path


def test_everything_that_shows_a_result_shows_the_row(tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    config = configured(tmp_path, state="true")
    measured = throughput(config, out, "--json")
    assert measured.exit_code == 0, measured.stderr
    assert json.loads(measured.stdout)["dut"] == {
        "name": "CLAT and PLAT",
        "row": [{"name": "CLAT", "version": "0.9"}, {"name": "PLAT", "version": "1.2", "cores": [1, 2]}],
    }
    assert ", of CLAT 0.9, PLAT 1.2" in dutperf("show", out, columns=200).stdout.replace("\n", " ")
    assert dutperf("report", out).exit_code == 0
    page = (out / "report.html").read_text()
    assert "DUT: CLAT 0.9, PLAT 1.2" in page
    assert "<dt>PLAT</dt><dd>version 1.2, cores 1, 2</dd>" in page
    [entry], _ = Store(tmp_path / "store.sqlite").add(out)
    assert (entry.dut, entry.dut_version) == ("CLAT and PLAT", "CLAT 0.9, PLAT 1.2")
    config.write_text(config.read_text().replace("version: '1.2'", "version: '1.3'"))
    assert throughput(config, other).exit_code == 0
    assert "dut PLAT version: 1.2 against 1.3" in dutperf("compare", out, other, columns=200).stdout
    assert json.loads(trial(config, "--json").stdout)["dut"]["name"] == "CLAT and PLAT"


def test_what_a_user_says_of_a_single_dut_is_no_row() -> None:
    for place in ("7 b", ["7 b"], [{"name": "rack"}]):
        told = {"name": "router", "version": "1", "row": place}
        assert tables.dut_name(told) == "router 1"
        assert dict(environments.of_dut(told)) == dict(environments.flat(told))


def test_a_command_that_fails_is_named_with_its_place_in_the_row(tmp_path: Path) -> None:
    result = throughput(configured(tmp_path, set_up="exit 4", tear_down="true"), tmp_path / "out")
    assert result.exit_code == 2
    assert "row.yaml, line " in result.stderr
    assert ": dut.1.commands.set_up: ended with status 4" in result.stderr.replace("\n", " ")
    assert log(tmp_path) == ["set_up", "tear_down"]


def test_a_run_with_a_row_goes_on_with_the_commands_of_its_configuration(tmp_path: Path) -> None:
    config, out = configured(tmp_path, state="true"), tmp_path / "out"
    assert throughput(config, out).exit_code == 0
    whole = (out / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (out / "journal.jsonl").write_bytes(b"".join(whole[:7]))
    before = config.read_text()
    config.write_text(before.replace("name: CLAT", "name: CLAT\n  commands: {reset: ls}"))
    refused = dutperf("resume", out)
    assert refused.exit_code == 2
    assert "other commands for the DUT than the run had (PLAT: state)" in refused.stderr.replace("\n", " ")
    config.write_text(before)
    asked = len(log(tmp_path))
    assert dutperf("resume", out).exit_code == 0
    assert len(log(tmp_path)) > asked
    assert len((out / "journal.jsonl").read_bytes().splitlines()) >= len(whole)
