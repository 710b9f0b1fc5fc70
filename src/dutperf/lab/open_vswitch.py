# SPDX-License-Identifier: Apache-2.0
"""Open vSwitch with its datapath in user space, as a bridge of two ports.

Its ports are cables (packet sockets), or vhost-user sockets, by which virtual machines are connected: the tester
makes these, Open vSwitch connects to them. Database, sockets and logs are in the lab's directory; the
machine's own Open vSwitch, if there is one, does not meet it.
"""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from dutperf import installation
from dutperf.lab import outage
from dutperf.lab.definition import Lab, ResetOptions
from dutperf.lab.errors import LabError
from dutperf.lab.netns import DUT_PORTS, TESTER_PORTS, run
from dutperf.lab.site import Site, await_start
from dutperf.lab.transparent import TransparentOptions, tester_sides

BRIDGE = "bridge"
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
WITH_DPDK = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
"""Debian has two programs; ``ovs-vswitchd`` is the chosen one."""
MEMORY_MB = 512
DIRECTORIES = ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR")
"""Environment variables of ``ovs-vswitchd``, for the socket of the bridge."""


class OvsOptions(TransparentOptions, ResetOptions):
    """The kind of ports, and what decides where a frame goes."""

    link: Annotated[
        Literal["veth", "vhost"],
        Field(description="veth: cables and packet sockets; vhost: vhost-user sockets and DPDK, without the kernel"),
    ] = "veth"
    flows: Annotated[
        Literal["learning", "fixed"],
        Field(
            description="learning: by a table of learned MAC addresses; fixed: what enters one port leaves the other"
        ),
    ] = "learning"
    ageing_s: Annotated[
        int, Field(ge=15, le=3600, description="life of a learned address without a frame from it, in s")
    ] = 300

    @model_validator(mode="after")
    def _ages_what_is_learned(self) -> OvsOptions:
        if "ageing_s" in self.model_fields_set and self.flows != "learning":
            raise ValueError("option ageing_s needs flows=learning")
        return self

    def rules(self, ports: Iterable[str]) -> list[str]:
        """The OpenFlow rules for the numbers of the two ports."""
        if self.flows == "learning":
            return ["actions=NORMAL"]
        left, right = ports
        return [f"in_port={left},actions=output:{right}", f"in_port={right},actions=output:{left}"]


class Switch:
    """The processes of one Open vSwitch, and the commands to them."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.directory = site.directory
        self.database = f"unix:{self.directory}/db.sock"

    def start(self, link: Literal["veth", "vhost"]) -> None:
        """Start the database and the switch. Raises LabError: one of them did not start."""
        run(["ovsdb-tool", "create", f"{self.directory}/conf.db", SCHEMA])
        self._daemon("ovsdb-server", "conf.db", "--remote=punix:db.sock", "--unixctl=ovsdb.ctl", ready="db.sock")
        self.set_up("--no-wait", "init")
        if link == "vhost":
            self.set_up("--no-wait", "set", "Open_vSwitch", ".", *dpdk_settings(self.site.dut_core))
        program = WITH_DPDK if link == "vhost" else "ovs-vswitchd"
        self._daemon(program, self.database, "--unixctl=vswitchd.ctl", ready="vswitchd.ctl")

    def set_up(self, *words: str) -> str:
        """What ``ovs-vsctl`` prints."""
        return run(["ovs-vsctl", f"--db={self.database}", "--timeout=20", *words]).strip()

    def openflow(self, request: str, *words: str) -> list[str]:
        """The command line of ``ovs-ofctl`` for the bridge."""
        return ["ovs-ofctl", "--names", request, f"unix:{self.directory}/{BRIDGE}.mgmt", *words]

    def _daemon(self, program: str, *argv: str, ready: str) -> None:
        name = Path(program).name
        log = self.directory / f"{name}.log"
        places = (f"{variable}={self.directory}" for variable in DIRECTORIES)
        command = ["env", "--chdir", str(self.directory), *places, program, *argv, "--verbose=console:err"]
        daemon = self.site.start_daemon(command, log)
        path = self.directory / ready
        await_start(daemon, log, f"lab {self.site.record.lab}: {name}", path.exists)


def dpdk_settings(core: int) -> list[str]:
    """Settings of Open vSwitch for DPDK on one core, without huge pages."""
    settings = {
        "dpdk-init": "true",
        "dpdk-lcore-mask": hex(1 << core),
        "pmd-cpu-mask": hex(1 << core),
        "per-port-memory": "true",
        "dpdk-extra": f"--no-pci --iova-mode=va --no-huge --legacy-mem --no-shconf -m {MEMORY_MB}",
    }
    return [f'other_config:{key}="{value}"' for key, value in settings.items()]


def build(site: Site, options: OvsOptions) -> dict[str, Any]:
    if options.link == "vhost":
        check_dpdk(site)
        site.add_memory_dut()
        sockets = [site.directory / f"{side}.vhost" for side in ("left", "right")]
        interfaces = [f"type=dpdkvhostuserclient options:vhost-server-path={socket}" for socket in sockets]
        left, right = (f"virtio_user:{socket},server=1" for socket in sockets)
    else:
        site.add_program_dut(options.mtu)
        interfaces = ["type=system"] * 2
        left, right = TESTER_PORTS
    switch = Switch(site)
    switch.start(options.link)
    add_bridge(switch, interfaces, options)
    rules = options.rules(switch.set_up("get", "Interface", port, "ofport") for port in DUT_PORTS)
    for argv in install(switch, rules):
        run(argv)
    release = platform.release()
    return {
        "engine": {"dut_cores": [site.dut_core]},
        **tester_sides(left, right, options.version),
        "dut": {
            "name": "Open vSwitch",
            "version": version(),
            "kernel": release,
            "cores": [site.dut_core],
            "datapath": "user space",
            "link": options.link,
            "rules": rules,
            "commands": {
                "reset": reset(switch, rules, options.reset_s),
                "losses": losses(switch),
            },
        },
    }


def version() -> str:
    """Of Open vSwitch, such as 3.1.0."""
    return run(["ovs-vswitchd", "--version"]).splitlines()[0].split()[-1]


def check_dpdk(site: Site) -> None:
    """Raises LabError if Open vSwitch with DPDK is not installed."""
    if not Path(WITH_DPDK).exists():
        raise LabError(
            f"lab {site.record.lab}: option link=vhost needs Open vSwitch with DPDK, which is not installed: "
            + installation.package("openvswitch-switch-dpdk")
        )


def add_bridge(switch: Switch, interfaces: Iterable[str], options: OvsOptions) -> None:
    """The bridge with its two ports. Without rules it forwards nothing (``fail-mode``)."""
    ageing = f"other_config:mac-aging-time={options.ageing_s}"
    words = ["--", "add-br", BRIDGE]
    words += ["--", "set", "bridge", BRIDGE, "datapath_type=netdev", "fail-mode=secure", ageing]
    for port, columns in zip(DUT_PORTS, interfaces, strict=True):
        mtu = f"mtu_request={options.mtu}" if options.link == "vhost" else ""
        words += ["--", "add-port", BRIDGE, port, "--", "set", "Interface", port, *columns.split(), *mtu.split()]
    switch.set_up(*words)


def install(switch: Switch, rules: Iterable[str]) -> list[list[str]]:
    return [switch.openflow("add-flow", rule) for rule in rules]


def reset(switch: Switch, rules: Iterable[str], reset_s: float) -> list[str]:
    """The command that takes the rules away for ``reset_s`` seconds: all frames are dropped."""
    start = "; ".join(map(shlex.join, install(switch, rules)))
    return ["sh", "-ec", outage.script(shlex.join(switch.openflow("del-flows")), reset_s, start)]


def losses(switch: Switch) -> list[str]:
    """The command that prints how many frames Open vSwitch received and did not forward, by direction."""
    program = """
        $1 == "port" { name = $2; sub(":", "", name); sub("pkts=", "", $4); received[name] = $4 }
        $1 == "tx" { sub("pkts=", "", $2); sent[name] = $2 }
        END {
            print "forward not_forwarded", received["dl"] - sent["dr"]
            print "reverse not_forwarded", received["dr"] - sent["dl"]
        }"""
    show = shlex.join(switch.openflow("dump-ports"))
    return ["sh", "-ec", f"{show} | tr -d , | awk {shlex.quote(program)}"]


LAB = Lab(
    name="ovs",
    summary="Open vSwitch in user space as a bridge of two ports, by cables or vhost-user",
    options=OvsOptions,
    programs={"ovs-vswitchd": "openvswitch-switch", "ovsdb-server": "openvswitch-switch"},
    build=build,
)
