# SPDX-License-Identifier: Apache-2.0
"""Test packets counted by nftables at both ports of a DUT whose kernel forwards: what it lost is what came in and did
not go out. It counts packets whatever form they have on either side."""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.lab.netns import DUT_PORTS, Namespace

TEST_PACKETS = ("meta l4proto { tcp, udp }",)
"""Match expression for those that are in no tunnel."""
_RULESET = """
table netdev forwarded {{
  counter forward_in {{ }}
  counter forward_out {{ }}
  counter reverse_in {{ }}
  counter reverse_out {{ }}
  chain from_left {{
    type filter hook ingress device "{left}" priority 0;
    {forward_in}
  }}
  chain to_right {{
    type filter hook egress device "{right}" priority 0;
    {forward_out}
  }}
  chain from_right {{
    type filter hook ingress device "{right}" priority 0;
    {reverse_in}
  }}
  chain to_left {{
    type filter hook egress device "{left}" priority 0;
    {reverse_out}
  }}
}}
"""


def ruleset(on_left: Sequence[str], on_right: Sequence[str]) -> str:
    """The counters; each match expression is for a part of the test packets at that port."""
    left, right = DUT_PORTS
    counted = {"forward_in": on_left, "forward_out": on_right, "reverse_in": on_right, "reverse_out": on_left}
    rules = {
        counter: "\n    ".join(f"{match} counter name {counter}" for match in matches)
        for counter, matches in counted.items()
    }
    return _RULESET.format(left=left, right=right, **rules)


def in_without_out(dut: Namespace, cause: str) -> list[str]:
    """The command that prints by direction what came in and did not go out, by the counters ``forward_in``,
    ``forward_out`` and the reverse ones of nftables. Others, as ``reverse_no_connection``, are causes of their own."""
    lines = (
        '$1 == "counter" { way = what = $2; sub(/_.*/, "", way); sub(/^[^_]*_/, "", what) }'
        ' $1 == "packets" { lost[way] += what == "in" ? $2 : -$2 }'
        ' $1 == "packets" && what != "in" && what != "out" { print way, what, $2 }'
        f' END {{ for (way in lost) print way, "{cause}", lost[way] }}'
    )
    return dut.command(["sh", "-ec", f"nft list counters | awk '{lines}'"])
