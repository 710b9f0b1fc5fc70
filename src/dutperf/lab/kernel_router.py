# SPDX-License-Identifier: Apache-2.0
"""The Linux kernel as a router: IPv4 or IPv6 in the foreground (RFC 2544, RFC 5180), IPv6 also in
the background.

Options give it a known throughput and loss, to test the tester: ``limit_fps`` with ``burst`` is a token
bucket, ``loss`` drops packets at random. Both apply to every forwarded packet: the limit is for the
sum of both directions, foreground and background.
"""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from dutperf.lab import filters, outage
from dutperf.lab.addresses import LEFT, RIGHT, routed_sides, tester
from dutperf.lab.definition import Lab, ResetOptions
from dutperf.lab.netns import DUT_PORTS, Namespace, has_ipv6
from dutperf.lab.site import Site


class RouterOptions(ResetOptions):
    """Limits with known values, off by default."""

    limit_fps: Annotated[
        int | None, Field(ge=1, le=100_000_000, description="maximum packets/s forwarded, both directions together")
    ] = None
    burst: Annotated[
        int | None,
        Field(ge=1, le=1_000_000, description="packets that may exceed limit_fps in a burst; needs limit_fps"),
    ] = None
    loss: Annotated[
        float | None,
        Field(gt=0, le=0.5, description="share of the packets dropped at random: one in a whole number, as 0.0001"),
    ] = None

    @field_validator("loss")
    @classmethod
    def _one_in_a_whole_number(cls, loss: float | None) -> float | None:
        if loss is not None and abs(loss * round(1 / loss) - 1) > 1e-6:
            raise ValueError(f"must be one in a whole number of packets; the nearest is {1 / round(1 / loss):.6g}")
        return loss

    @model_validator(mode="after")
    def _burst_of_a_limit(self) -> Self:
        if self.burst is not None and self.limit_fps is None:
            raise ValueError("option burst needs limit_fps")
        return self

    def rules(self) -> dict[str, str]:
        """Match expressions of nftables for packets to drop, by cause; limit first."""
        burst = "" if self.burst is None else f" burst {self.burst} packets"
        limit = {} if self.limit_fps is None else {"limit": f"limit rate over {self.limit_fps}/second{burst}"}
        loss = {} if self.loss is None else {"random": f"numgen random mod {round(1 / self.loss)} == 0"}
        return limit | loss


def build(version: Literal[4, 6], site: Site, options: RouterOptions) -> dict[str, Any]:
    """The DUT as a router, and the tester's configuration with ``version`` in the foreground."""
    site.add_router(options.mtu)
    for side, port in ((LEFT, "dl"), (RIGHT, "dr")):
        site.dut.ip(*side.ip4(port), *(side.ip6(port) if has_ipv6() else ()))
    if options.rules():
        site.dut.nft(ruleset(options.rules()))
    return {
        **tester([site.dut_core], routed_sides(version, ipv6=has_ipv6())),
        "dut": {
            **identity(version, site.dut_core, options),
            "commands": {"reset": reset(site.dut, options.reset_s), "filters": filtered(site), **losses(site, options)},
        },
    }


def reset(dut: Namespace, reset_s: float) -> list[str]:
    """The command that stops the kernel's forwarding for ``reset_s`` seconds. Routes and neighbours
    stay."""
    return dut.command(["sh", "-ec", stopped(dut, reset_s)])


def stopped(dut: Namespace, reset_s: float) -> str:
    """The script for this, to run in the DUT's namespace."""
    paths = ["ipv4/ip_forward", *(["ipv6/conf/all/forwarding"] if dut.has_ipv6() else [])]
    switches = " ".join(f"/proc/sys/net/{path}" for path in paths)
    off, on = (f"for switch in {switches}; do echo {value} > $switch; done" for value in (0, 1))
    return outage.script(off, reset_s, on)


def filtered(site: Site) -> list[str]:
    """The command that installs as many filters as DUTPERF_FILTERS says, and prints them
    (:mod:`dutperf.lab.filters`)."""
    script = f"{shlex.quote(sys.executable)} -c 'from dutperf.lab import filters; filters.main()' | nft -f -"
    return site.dut.command(["sh", "-ec", f'{script}; [ "${filters.VARIABLE}" = 0 ] || {filters.SHOWN}'])


def losses(site: Site, options: RouterOptions) -> dict[str, list[str]]:
    """The command that prints the packets dropped by the rules, if there are any: a line for each
    counter of :func:`ruleset`."""
    lines = '$1 == "counter" { split($2, name, "_") } $1 == "packets" { print name[1], name[2], $2 }'
    return (
        {"losses": site.dut.command(["sh", "-ec", f"nft list counters table inet truth | awk '{lines}'"])}
        if options.rules()
        else {}
    )


def ruleset(rules: Mapping[str, str]) -> str:
    """nftables ruleset that drops every forwarded packet that matches one of ``rules``, and counts it by
    direction and cause."""
    counters = "".join(
        f"  counter {direction}_{cause} {{ }}\n" for cause in rules for direction in ("forward", "reverse")
    )
    ends = "".join(
        f'  chain lost_by_{cause} {{\n    iifname "{DUT_PORTS[0]}" counter name "forward_{cause}" drop\n    counter'
        f' name "reverse_{cause}" drop\n  }}\n'
        for cause in rules
    )
    lines = "".join(f"    {rule} jump lost_by_{cause}\n" for cause, rule in rules.items())
    forwarded = f"  chain forwarded {{\n    type filter hook forward priority 0; policy accept;\n{lines}  }}\n"
    return f"table inet truth {{\n{counters}{ends}{forwarded}}}\n"


def of_this_kernel(cores: Iterable[int]) -> dict[str, Any]:
    """What the results say of every DUT that is this machine's kernel."""
    release = platform.release()
    return {"version": release, "kernel": release, "cores": [*cores]}


def identity(version: Literal[4, 6], core: int, options: RouterOptions) -> dict[str, Any]:
    rules = {"rules": [f"{rule} drop" for rule in options.rules().values()]} if options.rules() else {}
    return {"name": f"Linux IPv{version} router", **of_this_kernel([core]), **rules}


LABS = tuple(
    Lab(
        name=f"kernel-ipv{version}",
        summary=f"the Linux kernel as an IPv{version} router; options set a known throughput or loss",
        options=RouterOptions,
        programs={},
        build=partial(build, version),
        needs_ipv6=version == 6,
    )
    for version in (4, 6)
)
