# SPDX-License-Identifier: Apache-2.0
"""Several client devices at one server device (RFC 8219 10.1.2, n:1): Linux kernels that carry IPv4 over IPv6, as in
:mod:`dutperf.lab.tunnels`. Each client has a port of the tester and a link to the server, with a tunnel on it;
the server has one port of the tester."""

from __future__ import annotations

from functools import partial
from ipaddress import IPv4Network, IPv6Network
from typing import Annotated, Any

from pydantic import Field

from dutperf.lab.addresses import RIGHT, Side
from dutperf.lab.definition import Lab, LabOptions
from dutperf.lab.encapsulation import add_tunnel
from dutperf.lab.kernel_router import of_this_kernel
from dutperf.lab.netns import DUT_PORTS
from dutperf.lab.site import MOST_DUTS, Site, link_to, star_ports
from dutperf.lab.tunnels import KINDS, Encapsulation, End


class ClientOptions(LabOptions):
    """How many there are."""

    clients: Annotated[
        int, Field(ge=1, le=MOST_DUTS - 1, description="client devices, each with a port of the tester")
    ] = 4


def side_of(client: int) -> Side:
    """The addresses of the tester and a client on their cable: a network of the left side for each."""
    net4, net6 = IPv4Network(f"198.18.{client}.0/24"), IPv6Network(f"2001:2:0:{client:x}::/64")
    return Side(str(net4[2]), str(net4[1]), str(net4), str(net6[2]), str(net6[1]), str(net6))


def build(kind: Encapsulation, site: Site, options: ClientOptions) -> dict[str, Any]:
    *clients, server = site.add_star(options.mtu, options.mtu + kind.overhead, options.clients)
    server.dut.ip(*RIGHT.ip4(DUT_PORTS[1]), *RIGHT.ip6(DUT_PORTS[1]))
    for number, client in enumerate(clients):
        _connect(kind, client, server, number, options)
    *near, far = star_ports(options.clients)
    sides = {port: side_of(number) for number, port in enumerate(near)} | {far: RIGHT}
    names = [*(f"client {number}" for number in range(1, options.clients + 1)), "server"]
    duts = zip(names, (*clients, server), strict=True)
    return {
        "engine": {"dut_cores": [site.dut_core]},
        "ports": {port: {"port": port, "version": 4, **side.ipv4, **side.ipv6} for port, side in sides.items()},
        "paths": [f"{port}<->{far}" for port in near],
        "dut": [{"name": name, "program": kind.program, **of_this_kernel([one.dut_core])} for name, one in duts],
        "between": [{"overhead": kind.overhead}] * options.clients,
    }


def _connect(kind: Encapsulation, client: Site, server: Site, number: int, options: ClientOptions) -> None:
    """Set up the tunnel between a client and the server."""
    own = side_of(number)
    near = End(1, own, RIGHT, *DUT_PORTS, number)
    client.dut.ip(*own.ip4(DUT_PORTS[0])[:1], *own.ip6(DUT_PORTS[0])[:1])
    add_tunnel(kind, client.dut, near, options)
    add_tunnel(kind, server.dut, End(2, RIGHT, own, DUT_PORTS[1], link_to(number), number), options)


LABS = tuple(
    Lab(
        name=f"{name}-clients",
        summary=f"Linux routers as clients of one server, {kind.program} between them: IPv4 on both sides",
        options=ClientOptions,
        programs={},
        build=partial(build, kind),
        needs_ipv6=True,
    )
    for name, kind in KINDS.items()
    if kind.guest is None
)
