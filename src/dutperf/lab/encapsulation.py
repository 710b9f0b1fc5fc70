# SPDX-License-Identifier: Apache-2.0
"""Two Linux kernels in a row with a tunnel between them (the dual DUT test setup of RFC 8219 section 4.2): each
encapsulates what comes from the tester, the other one decapsulates it. Or one alone, and the tester is the tunnel's
other end (the single DUT test setup). :mod:`dutperf.lab.tunnels` has the kinds of tunnels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dutperf.frames import Stack
from dutperf.lab import kernel_router, link_counters
from dutperf.lab.addresses import routed_sides, tester
from dutperf.lab.definition import Lab, LabOptions, ResetOptions
from dutperf.lab.guest import machine, packages
from dutperf.lab.guest.machine import PORTS, GuestOptions, Software
from dutperf.lab.guest.namespace import IP, GuestNamespace
from dutperf.lab.guest.packages import Kernel
from dutperf.lab.netns import DUT_PORTS, Namespace, prepare_router, start_router
from dutperf.lab.site import Site
from dutperf.lab.tunnels import ENDS, KINDS, TUNNEL, Encapsulation, End

NAMESPACES = ("left", "right")
"""Of a guest: one for each DUT."""
MODULES = ("veth", *machine.NFTABLES)
PROGRAMS = ("ip", "nft")
"""Of this machine, for the guest: busybox's own ``ip`` knows few kinds of tunnels."""


def build(kind: Encapsulation, site: Site, options: ResetOptions) -> dict[str, Any]:
    ends = [
        end for end, name in zip(ENDS, NAMESPACES, strict=True) if getattr(options, "end", "both") in ("both", name)
    ]
    if isinstance(options, GuestOptions):
        duts, places = in_guest(kind, site, options, ends)
    else:
        duts, places = in_namespaces(kind, site, options, ends)
    sides = routed_sides(kind.version) if len(ends) == 2 else beside_one(kind, ends[0])
    made = tester({core for dut in duts for core in dut["cores"]}, sides)
    if len(ends) == 1:
        return {**made, "dut": duts[0]}
    more = {} if kind.tester is None else kind.tester(options)
    near, far = places
    between = {"overhead": kind.overhead, "passed": link_counters.passed(near, far, f"{TUNNEL}*")}
    return {**made, "dut": duts, "between": between, **more}


def beside_one(kind: Encapsulation, near: End) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tester's sides beside one end alone, without their ports."""
    left, right = routed_sides(kind.version)
    if near == ENDS[0]:
        return {**left, **kind.left_of_alone}, far_end(kind, near, ENDS[1])
    return far_end(kind, near, ENDS[0]), right


def far_end(kind: Encapsulation, near: End, far: End) -> dict[str, Any]:
    """The tester's side as an end of the tunnel, without its port."""
    headers = str(kind.headers if near == ENDS[0] else kind.headers_to_right)
    outer4 = {"ipv4": f"{far.address4}/30", "gateway4": near.address4}
    outer6 = {"ipv6": f"{far.address}/64", "gateway6": near.address}
    side = {"version": kind.version, "tunnel": headers}
    if kind.version == 6:
        return {**side, **outer4, "ipv6": f"{far.own.tester6}/64"}
    if Stack.parse(headers).ip_version == 6:
        return {**side, **outer6, "ipv4": f"{far.own.tester4}/24"}
    return {**side, **outer6, **outer4, "ipv4": f"{far.own.tester4}/15", "answers_for": [far.address4]}


Made = tuple[list[dict[str, Any]], Sequence[Namespace]]
"""What the configuration says of the DUTs, and where they are."""


def in_namespaces(kind: Encapsulation, site: Site, options: ResetOptions, ends: Sequence[End]) -> Made:
    """DUTs of this machine's kernel."""
    if len(ends) == 1:
        site.add_router(options.mtu + kind.overhead)
        sites = [site]
    else:
        sites = [*site.add_routers(options.mtu, options.mtu + kind.overhead)]
    duts = [
        {**kernel_router.of_this_kernel([one.dut_core]), **set_up(kind, one.dut, end, options)}
        for one, end in zip(sites, ends, strict=True)
    ]
    for one, dut in zip(sites, duts, strict=True):
        dut.setdefault("commands", {})["reset"] = kernel_router.reset(one.dut, options.reset_s)
    return duts, [one.dut for one in sites]


def in_guest(kind: Encapsulation, site: Site, options: GuestOptions, ends: Sequence[End]) -> Made:
    """Likewise DUTs of one emulated machine. Its reset, which the first DUT has, is that of all."""
    kernel, script = packages.kernel(), list[str]()
    namespaces = [GuestNamespace(name, site, script) for name in NAMESPACES[: len(ends)]]
    for one in namespaces:
        prepare_router(one)
    longer = options.mtu + kind.overhead
    outer = options.mtu if len(ends) == 2 else longer
    script += [f"{IP} {line}\n" for line in cables(namespaces, outer, longer)]
    duts = []
    for one, end in zip(namespaces, ends, strict=True):
        start_router(one)
        about = {"version": kernel.release, **machine.identity(options, kernel, site)}
        duts.append({**about, **set_up(kind, one, end, options)})
    duts[0].setdefault("commands", {})["reset"] = machine.ask(site, reset(namespaces, options.reset_s), options.reset_s)
    machine.start(site, outer, options, kernel, contents(kind, kernel, script))
    return duts, namespaces


def contents(kind: Encapsulation, kernel: Kernel, script: Sequence[str]) -> Software:
    """What the guest has, with the lines of its set-up."""
    assert kind.guest is not None
    own = kind.guest(kernel)
    programs = (*map(packages.of_this_machine, PROGRAMS), *own.programs)
    return replace(own, set_up="".join(script), drivers=(*MODULES, *own.drivers), programs=programs)


def cables(duts: Sequence[Namespace], mtu: int, mtu_between: int) -> list[str]:
    """``ip`` commands that give the guest's cards, of this MTU, to its DUTs, and connect these."""
    left, right = DUT_PORTS
    near, far = duts[0], duts[-1]
    between = (
        f"link add {right} netns {near.name} mtu {mtu_between} type veth peer name {left} netns {far.name}"
        f" mtu {mtu_between}"
    )
    return [
        *([between] if len(duts) > 1 else []),
        f"link set {PORTS[0]} netns {near.name} name {left} mtu {mtu}",
        f"link set {PORTS[1]} netns {far.name} name {right} mtu {mtu}",
    ]


def reset(duts: Sequence[GuestNamespace], reset_s: float) -> str:
    """The script that stops the forwarding of all DUTs of a guest."""
    scripts = (one.entered(["sh", "-ec", kernel_router.stopped(one, reset_s)]) for one in duts)
    started = "".join(f'{script} &\nall="$all $!"\n' for script in scripts)
    return f"{started}for one in $all; do wait $one; done\n"


def set_up(kind: Encapsulation, dut: Namespace, end: End, options: ResetOptions) -> dict[str, Any]:
    """Make a router an end of the tunnel; returns what the configuration says of that."""
    dut.ip(*end.own.ip4(end.inside), *end.own.ip6(end.inside))
    more = add_tunnel(kind, dut, end, options)
    return {"name": kind.names[end.number - 1], "program": kind.program, **more}


def add_tunnel(kind: Encapsulation, dut: Namespace, end: End, options: LabOptions) -> dict[str, Any]:
    """Make a router an end of one tunnel more; returns what the configuration says of that. ARP asks once: its frames
    count on the link."""
    neighbours = f"ipv4/neigh/{end.outside}"
    dut.sysctl({f"{neighbours}/base_reachable_time_ms": 86_400_000, f"{neighbours}/delay_first_probe_time": 86_400})
    dut.ip(f"addr add {end.address}/64 dev {end.outside} nodad", f"addr add {end.address4}/30 dev {end.outside}")
    return kind.set_up(dut, end, options)


def summary(kind: Encapsulation) -> str:
    """What ``dutperf lab list`` says."""
    where = "" if kind.guest is None else ", in an emulated machine"
    return f"{kind.program}: two Linux routers in a row{where}, IPv{kind.version} on both sides"


LABS = tuple(
    Lab(
        name=name,
        summary=summary(kind),
        options=kind.options,
        programs={} if kind.guest is None else packages.PROGRAMS,
        build=partial(build, kind),
        needs_ipv6=kind.guest is None,
    )
    for name, kind in KINDS.items()
)
