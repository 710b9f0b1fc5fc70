# SPDX-License-Identifier: Apache-2.0
"""Labs without building any: options, texts, records, signals. What they build is tested in
tests/integration/test_labs.py."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from dutperf import lab
from dutperf.lab import (
    LabError,
    conntrack,
    definition,
    encapsulation,
    hosts,
    linux_bridge,
    netns,
    nft_nat44,
    outage,
    site,
)
from dutperf.lab.guest import machine
from dutperf.lab.guest.namespace import GuestNamespace
from dutperf.lab.kernel_router import RouterOptions, ruleset
from dutperf.lab.netns import Namespace, core_mask, run
from dutperf.lab.site import Owner, Record
from dutperf.lab.tayga_siit import configuration
from dutperf.machine.signals import defer_signals, exit_on_signals


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of its own for records."""
    monkeypatch.setattr(site, "STATE_DIR", tmp_path)
    return tmp_path


def enter(name: str, options: dict[str, str]) -> None:
    """Try to have a lab; for those that must be refused before anything is made."""
    with lab.bring_up(name, options):
        raise AssertionError("the lab was built")


def test_every_lab_is_listed_with_its_options() -> None:
    infos = {info.name: info for info in lab.list_labs()}
    assert set(infos) == {
        "tayga-siit",
        "tayga-nat64",
        "tayga-464xlat",
        "srv6",
        "vxlan",
        "ds-lite",
        "lw4o6",
        "map-e",
        "6rd",
        "gre",
        "ipip",
        "wireguard",
        "jool-464xlat",
        "nptv6",
        "srv6-clients",
        "vxlan-clients",
        "kernel-ipv4",
        "kernel-ipv6",
        "nft-nat44",
        "jool-siit",
        "jool-nat64",
        "kernel-vm",
        "kernel-vm-nat44",
        "linux-bridge",
        "ovs",
        "testpmd",
        "unbound-dns64",
        "bind9-dns64",
        "knot-dns64",
        "pdns-dns64",
        "refdut-siit",
        "refdut-ipv4",
        "refdut-ipv6",
        "refdut-nat44",
        "refdut-nat64",
        "refdut-dns64",
        "refdut-464xlat",
        "refdut-map-t",
        "refdut-ds-lite",
        "refdut-map-e",
        "refdut-lw4o6",
        "refdut-6rd",
        "loopback",
    }
    assert all(info.summary and all(info.options.values()) for info in infos.values())
    assert set(infos["kernel-ipv6"].options) == {"max_frame_size", "reset_s", "limit_fps", "burst", "loss"}


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("tayga-sit", {}, ["tayga-sit", "did you mean tayga-siit?"]),
        ("zzz", {}, ["zzz", *(info.name for info in lab.list_labs())]),
        ("tayga-siit", {"mtu": "9000"}, ["unknown option mtu", "max_frame_size"]),
        ("tayga-siit", {"limit_fps": "9000"}, ["unknown option limit_fps"]),
        ("tayga-siit", {"max_frame_size": "9217"}, ["max_frame_size=9217", "9216"]),
        ("tayga-siit", {"max_frame_size": "big"}, ["max_frame_size=big", "integer"]),
        ("kernel-ipv4", {"limit_fps": "0"}, ["limit_fps=0"]),
        ("kernel-ipv4", {"burst": "10"}, ["burst needs limit_fps"]),
        ("kernel-ipv4", {"loss": "0.3"}, ["loss=0.3", "0.333333"]),
        ("kernel-ipv4", {"loss": "0"}, ["loss=0"]),
        ("kernel-ipv4", {"loss": "1"}, ["loss=1"]),
        ("kernel-ipv4", {"loss": "nan"}, ["loss=nan"]),
        ("refdut-ipv4", {"loss": "1.5"}, ["loss=1.5"]),
        ("refdut-ipv4", {"queue": "-1"}, ["queue=-1"]),
        ("refdut-siit", {"jitter": "uniform"}, ["jitter=uniform", "exponential"]),
        ("refdut-siit", {"stall_at_s": "1"}, ["stall_at_s needs stall_ms"]),
        ("refdut-siit", {"jitter": "normal"}, ["jitter needs jitter_ms"]),
        ("refdut-siit", {"extra_delay": "0.1"}, ["extra_delay needs extra_delay_ms"]),
        ("refdut-siit", {"extra_delay_every": "9"}, ["extra_delay_every needs extra_delay_ms"]),
        ("refdut-ipv6", {"extra_delay_ms": "1"}, ["extra_delay_ms needs extra_delay_every"]),
        ("refdut-nat44", {"connections": "0"}, ["connections=0"]),
        ("refdut-nat44", {"when_full": "drop"}, ["when_full=drop", "evict_unanswered"]),
        ("refdut-nat44", {"evict_count": "5"}, ["evict_count needs when_full=evict"]),
        ("refdut-nat64", {"establishment_queue": "5"}, ["establishment_queue needs establishment_cps"]),
        ("refdut-nat64", {"first_port": "2000", "last_port": "1999"}, ["first_port is above last_port, 1999"]),
        ("refdut-ipv4", {"connections": "10"}, ["unknown option connections"]),
        ("refdut-dns64", {"cache": "-1"}, ["cache=-1"]),
        ("refdut-dns64", {"pending": "0"}, ["pending=0"]),
        ("refdut-dns64", {"prefix": "64:ff9b::"}, ["prefix=64:ff9b::", "32, 40, 48, 56, 64 or 96 bits"]),
        ("refdut-dns64", {"prefix": "64:ff9b::1/96"}, ["prefix=64:ff9b::1/96", "is not an IPv6 prefix"]),
        ("refdut-dns64", {"server_version": "5"}, ["server_version=5"]),
        ("refdut-ipv4", {"servfail_every": "10"}, ["unknown option servfail_every"]),
        ("refdut-map-e", {"link": "memif"}, ["link=memif needs end=left or end=right"]),
        ("refdut-6rd", {"end": "left", "properties_of": "left"}, ["properties_of needs end=both"]),
        ("refdut-6rd", {"psid_length": "4"}, ["unknown option psid_length"]),
        ("refdut-lw4o6", {"psid": "3"}, ["psid and psid_offset need psid_length"]),
        ("refdut-map-t", {"psid_length": "2", "psid": "4"}, ["psid=4 has more bits than psid_length=2"]),
        ("refdut-map-t", {"psid_length": "9"}, ["psid_length=9", "8"]),
        ("srv6", {"end": "middle"}, ["end=middle", "left"]),
        ("nft-nat44", {"udp_timeout_s": "0"}, ["udp_timeout_s=0"]),
        ("nft-nat44", {"pool_addresses": "65"}, ["pool_addresses=65", "64"]),
        ("tayga-nat64", {"cores": "2"}, ["unknown option cores"]),
        ("linux-bridge", {"ageing_s": "0"}, ["ageing_s=0"]),
        ("ovs", {"ageing_s": "20", "flows": "fixed"}, ["ageing_s needs flows=learning"]),
        ("ovs", {"link": "memif"}, ["link=memif", "vhost"]),
        ("testpmd", {"forward": "txonly"}, ["forward=txonly", "macswap"]),
        ("kernel-vm", {"accelerator": "xen"}, ["accelerator=xen", "tcg"]),
        ("jool-nat64", {"udp_timeout_s": "60"}, ["udp_timeout_s=60", "120"]),
        ("unbound-dns64", {"server_version": "5"}, ["server_version=5", "4 or 6"]),
        ("bind9-dns64", {"cache_mb": "3"}, ["cache_mb=3", "4"]),
        ("knot-dns64", {"cores": "0"}, ["cores=0"]),
        ("pdns-dns64", {"threads": "2"}, ["unknown option threads", "cores"]),
        ("loopback", {"version": "5"}, ["version=5", "4 or 6"]),
    ],
)
def test_what_is_wrong_with_name_or_options_is_one_sentence(
    name: str, options: dict[str, str], words: list[str]
) -> None:
    with pytest.raises(LabError) as error:
        enter(name, options)
    assert all(word in str(error.value) for word in words), str(error.value)
    assert "\n" not in str(error.value)


def test_without_root_there_is_no_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definition.os, "geteuid", lambda: 1000)
    with pytest.raises(LabError, match=r"needs root.*as root"):
        enter("loopback", {})
    with pytest.raises(LabError, match=r"needs root.*as root"):
        lab.down("loopback")


@pytest.mark.parametrize(
    ("program", "name", "package"),
    [
        ("tayga", "tayga-siit", "tayga"),
        ("nft", "kernel-ipv4", "nftables"),
        ("ip", "loopback", "iproute2"),
        ("ethtool", "loopback", "ethtool"),
        ("dpdk-testpmd", "testpmd", "dpdk-dev"),
        ("ovsdb-server", "ovs", "openvswitch-switch"),
        ("qemu-system-x86_64", "jool-siit", "qemu-system-x86"),
        ("unbound", "unbound-dns64", "unbound"),
        ("named", "bind9-dns64", "bind9"),
        ("kresd", "knot-dns64", "knot-resolver"),
        ("pdns_recursor", "pdns-dns64", "pdns-recursor"),
    ],
)
def test_a_missing_program_is_named_with_its_package(
    program: str, name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definition.os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda wanted: None if wanted == program else f"/usr/sbin/{wanted}")
    with pytest.raises(LabError, match=f"needs {program}.*apt-get install {package}"):
        enter(name, {})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What a kernel that was booted with ipv6.disable=1 is asked for."""
    texts: list[str] = []

    def note(argv: Sequence[str], stdin: str = "") -> str:
        texts.append(f"{' '.join(argv)}\n{stdin}")
        return ""

    for module in (netns, hosts, linux_bridge):
        monkeypatch.setattr(module, "run", note)
    monkeypatch.setattr(netns, "_IPV6_SETTINGS", tmp_path / "ipv6")
    return texts


@pytest.mark.parametrize("name", ["kernel-ipv4", "linux-bridge", "loopback"])
def test_a_kernel_without_ipv6_has_the_labs_that_do_not_need_it(name: str, asked: list[str]) -> None:
    one = lab._lab(name)
    built = one.build(site.Site.draft(name), one.parse({}))
    left = built["left"] | {"port": "tl"}
    if name == "kernel-ipv4":
        assert "ipv6" not in left
    hosts._configure(Namespace("host"), "tl", left)
    assert len(asked) > 3
    assert not [text for text in asked if "ipv6/" in text or "2001:2" in text]


@pytest.mark.parametrize("name", ["kernel-ipv6", "tayga-siit", "tayga-nat64", "tayga-464xlat", "unbound-dns64"])
def test_a_kernel_without_ipv6_refuses_the_others(name: str, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definition.os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda wanted: f"/usr/sbin/{wanted}")
    with pytest.raises(LabError, match=rf"lab {name} needs IPv6.*without ipv6\.disable=1"):
        enter(name, {})
    assert asked == []


@pytest.mark.parametrize(
    ("cores", "mask"),
    [
        ([0], "1"),
        ([1], "2"),
        ([5], "20"),
        ([31], "80000000"),
        ([32], "1,00000000"),
        ([65], "2,00000000,00000000"),
        ([0, 1, 3], "b"),
        ([2, 33, 32], "3,00000004"),
    ],
)
def test_core_mask(cores: list[int], mask: str) -> None:
    assert core_mask(cores) == mask


def test_the_tester_keeps_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site.os, "sched_getaffinity", lambda _pid: {7, 2, 3, 5})
    here = site.Site.draft("nft-nat44")
    assert here.dut_cores(1) == (7,)
    assert here.dut_cores(3) == (3, 5, 7)
    with pytest.raises(LabError, match=r"^lab nft-nat44: option cores=4: .* may use 4 cores, .* needs one of them$"):
        here.dut_cores(4)
    monkeypatch.setattr(site.os, "sched_getaffinity", lambda _pid: {0})
    assert here.dut_cores(1) == (0,)


STATISTICS = """entries  clashres found insert_failed drop early_drop
00000005  00000000 00000001 0000000a 00000002 000000ff
00000005  00000001 00000000 00000000 00000001 00000001
"""


@pytest.mark.parametrize(("ended_by", "stop", "status"), [(None, "true", 0), ("TERM", "true", 1), (None, "false", 1)])
def test_an_outage_ends_also_where_its_script_does_not_come_to_its_end(
    ended_by: str | None, stop: str, status: int, tmp_path: Path
) -> None:
    """A standing lab would stay dead."""
    switch = tmp_path / "switch"
    script = outage.script(f"echo off > {switch}; {stop}", 30 if ended_by else 0.1, f"echo on > {switch}")
    running = subprocess.Popen(["sh", "-ec", script], start_new_session=True)
    while ended_by and not (switch.exists() and switch.read_text() == "off\n"):
        time.sleep(0.01)
    if ended_by:
        os.killpg(running.pid, signal.Signals[f"SIG{ended_by}"])
    assert running.wait(5) == status
    assert switch.read_text() == "on\n"


@pytest.mark.usefixtures("asked")
def test_commands_have_time_for_a_long_reset() -> None:
    one = lab._lab("kernel-ipv4")
    options = one.parse({"reset_s": "100"})
    assert one.made(site.Site.draft(one.name), options)["dut"]["commands"]["time_limit_s"] > 100
    in_guest = machine.reset(site.Site.draft("kernel-vm"), 100)
    assert float(in_guest[-1]) > 100
    row = [{"name": "CLAT"}, {"name": "PLAT", "commands": {"reset": "true"}}]
    options.limit_commands(row)
    assert row[0] == {"name": "CLAT"}


def test_a_reset_of_a_guest_fails_where_one_of_its_steps_does() -> None:
    """The exit status of a script without ``-e`` is that of its last line."""
    script = machine.reset(site.Site.draft("jool-siit"), 0.01, stop="false", start="true")[-2]
    harmless = re.sub(r"/proc/sys/net/\S+?(?=[;' ]|$)", "/dev/null", script, flags=re.MULTILINE)
    assert "/proc" not in harmless
    assert subprocess.run(["sh", "-c", harmless], check=False).returncode == 1


def test_a_reset_of_duts_of_a_guest_fails_where_one_of_them_does() -> None:
    class Fails(GuestNamespace):
        def entered(self, argv: Iterable[str]) -> str:
            return f"sh -c 'exit {self.name}'"

    duts = [Fails(status, site.Site.draft("gre")) for status in "30"]
    assert subprocess.run(["sh", "-ec", encapsulation.reset(duts, 0.01)], check=False).returncode == 3


def test_statistics_of_connection_tracking_are_sums_over_the_cores() -> None:
    summed = {"clashres": 1, "found": 1, "insert_failed": 10, "drop": 3, "early_drop": 256}
    assert conntrack.statistics(STATISTICS) == summed


def test_a_table_larger_than_the_kernels_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "max").write_text("262144\n")
    monkeypatch.setattr(conntrack, "MAXIMUM", tmp_path / "max")
    assert nft_nat44.table_size("nft-nat44", 262_144) == 262_144
    with pytest.raises(LabError, match=r"table=262145: .* 262144 .*sysctl net\.netfilter\.nf_conntrack_max=262145$"):
        nft_nat44.table_size("nft-nat44", 262_145)


def test_the_size_of_the_table_is_read_after_the_rules_that_load_connection_tracking(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conntrack, "MAXIMUM", tmp_path / "max")
    with pytest.raises(LabError, match=r"kernel has no connection tracking: .*No such file"):
        nft_nat44.table_size("nft-nat44", None)
    one = lab._lab("nft-nat44")
    with pytest.raises(LabError, match="has no connection tracking"):
        one.build(site.Site.draft(one.name), one.parse({}))
    assert any("masquerade" in text for text in asked)


@pytest.mark.parametrize(
    ("options", "statement", "outside"),
    [
        ({}, "masquerade", ["198.19.0.1"]),
        ({"ports": "random"}, "masquerade fully-random", ["198.19.0.1"]),
        ({"pool_addresses": "1"}, "snat to 198.19.254.129", ["198.19.254.129"]),
        (
            {"pool_addresses": "2", "ports": "random"},
            "snat to 198.19.254.129-198.19.254.130 fully-random",
            ["198.19.254.129", "198.19.254.130"],
        ),
    ],
)
def test_rules_of_a_nat(options: dict[str, str], statement: str, outside: list[str]) -> None:
    parsed = nft_nat44.NatOptions.model_validate(options)
    assert parsed.statement() == statement
    assert parsed.outside() == outside
    assert f'oifname "dr" {statement}\n' in nft_nat44.ruleset(statement)


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ({}, {}),
        ({"limit_fps": "60000"}, {"limit": "limit rate over 60000/second"}),
        ({"limit_fps": "60000", "burst": "1000"}, {"limit": "limit rate over 60000/second burst 1000 packets"}),
        ({"loss": "0.0001"}, {"random": "numgen random mod 10000 == 0"}),
        (
            {"loss": "0.5", "limit_fps": "7"},
            {"limit": "limit rate over 7/second", "random": "numgen random mod 2 == 0"},
        ),
    ],
)
def test_known_truth_as_rules(options: dict[str, str], rules: dict[str, str]) -> None:
    parsed = RouterOptions.model_validate(options)
    assert parsed.rules() == rules
    assert all(f"    {rule} jump lost_by_{cause}\n" in ruleset(rules) for cause, rule in rules.items())
    assert all(
        f'counter name "{way}_{cause}" drop' in ruleset(rules) for cause in rules for way in ("forward", "reverse")
    )


def test_tayga_maps_256_networks_on_each_side_one_to_one() -> None:
    pairs = [line.split()[1:] for line in configuration(Path()).splitlines() if line.startswith("map ")]
    by_ipv4 = {ipaddress.IPv4Address(ipv4): ipaddress.IPv6Address(ipv6) for ipv4, ipv6 in pairs}
    assert len(by_ipv4) == len(set(by_ipv4.values())) == 512
    for address, text in {
        "198.18.0.2": "2001:2::2",
        "198.18.255.2": "2001:2:0:ff::2",
        "198.19.0.2": "2001:2:0:1000::2",
        "198.19.10.2": "2001:2:0:100a::2",
    }.items():
        assert by_ipv4[ipaddress.IPv4Address(address)] == ipaddress.IPv6Address(text)


def test_tayga_configuration_names_what_is_mandatory(tmp_path: Path) -> None:
    directives = [line.split()[0] for line in configuration(tmp_path).splitlines()]
    assert directives[:4] == ["tun-device", "ipv4-addr", "ipv6-addr", "data-dir"]
    assert set(directives[4:]) == {"map"}


def test_a_failing_program_is_one_sentence_with_its_complaint() -> None:
    with pytest.raises(LabError, match=r"^sh -c .* failed: no such thing$"):
        run(["sh", "-c", "echo no such thing >&2; echo more >&2; exit 3"])
    with pytest.raises(LabError, match=r"^cannot run /no/program: No such file"):
        run(["/no/program"])


def test_in_a_chroot_it_is_said_how_namespaces_can_be_entered() -> None:
    command = """echo '"mount --make-rslave /" failed: Invalid argument' >&2; exit 255"""
    with pytest.raises(LabError, match=r"Invalid argument: / is no mount point, as in a chroot: begin with unshare"):
        run(["sh", "-c", command])


def test_a_process_is_known_by_id_and_start_time() -> None:
    me = Owner.me()
    assert me.lives()
    assert not Owner(me.pid, me.start_time + 1).lives()


def test_a_dead_process_owns_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    start_time = site.process_start_time(child.pid)
    assert start_time is not None
    owner = Owner(child.pid, start_time)
    assert owner.lives()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not owner.lives(), "a zombie does not live"
    child.wait()
    assert not owner.lives()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"id": "a"}', '{"id": "a", "lab": "loopback", "owner": 3}'])
def test_a_spoilt_record_is_none(text: str, state: Path) -> None:
    file = state / "a.json"
    file.write_text(text)
    assert Record.read(file) is None
    assert site.records() == []


def test_records_come_back_as_written(state: Path) -> None:
    written = [Record("a", "loopback", Owner.me()), Record("b", "tayga-siit", None)]
    for record in written:
        record.write()
    assert site.records() == written
    assert json.loads((state / "b.json").read_text())["owner"] is None


@pytest.mark.usefixtures("state")
def test_a_lab_is_taken_down_where_its_program_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    taken_down: list[str] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(Record, "take_down", lambda one: taken_down.append(one.id))
    Record("b", "tayga-siit", None).write()
    assert lab.down("tayga-siit")
    assert taken_down == ["b"]
    with pytest.raises(LabError, match="needs ip, which is not installed"):
        enter("tayga-siit", {})


def test_only_what_dead_owners_left_is_removed(state: Path) -> None:
    mine, staying = Record("a", "loopback", Owner.me()), Record("b", "loopback", None)
    left = Record("c", "loopback", Owner(os.getpid(), 1))
    for record in (mine, staying, left):
        record.write()
        record.directory.mkdir()
        (record.directory / "file").touch()
    assert site.remove_leftovers() == 1
    assert site.records() == [mine, staying]
    assert {path.name for path in state.iterdir()} == {"a", "a.json", "b", "b.json", ".lock"}


@pytest.mark.parametrize(
    ("program", "limit_s", "how"),
    [
        ("echo first; echo no configuration; exit 3", 60, "ended with status 3"),
        ("echo no configuration; exec sleep 9", 0.5, r"did not start within 0\.5 s"),
    ],
    ids=["ended", "hangs"],
)
def test_a_process_that_does_not_start_is_named_with_its_last_words(
    program: str, limit_s: float, how: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with log.open("wb") as output, subprocess.Popen(["sh", "-c", program], stdout=output) as daemon:
        with pytest.raises(LabError, match=rf"^a DUT {how}; last output: no configuration$"):
            site.await_start(daemon, log, "a DUT", lambda: False, limit_s)
        daemon.kill()


def test_no_take_down_ends_its_own_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dutperf.lab.netns.NAMED", tmp_path)
    assert Namespace("own").processes() == set()
    (tmp_path / "own").symlink_to("/proc/self/ns/net")
    with subprocess.Popen(["sleep", "60"]) as other:
        inside = Namespace("own").processes()
        other.kill()
    assert other.pid in inside
    assert inside.isdisjoint({os.getpid(), os.getppid(), 1})


def test_a_signal_to_end_unwinds_instead_of_killing() -> None:
    with pytest.raises(SystemExit) as end, exit_on_signals():
        signal.raise_signal(signal.SIGTERM)
    assert end.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_the_programs_own_handlers_stay() -> None:
    caught: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: caught.append(number))
    try:
        with exit_on_signals():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert caught == [signal.SIGTERM]


def test_take_down_is_finished_before_a_signal_counts() -> None:
    steps = []

    def take_down() -> None:
        with defer_signals():
            signal.raise_signal(signal.SIGINT)
            steps.append("finished")

    with pytest.raises(KeyboardInterrupt):
        take_down()
    assert steps == ["finished"]
