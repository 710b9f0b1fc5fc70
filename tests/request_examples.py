# SPDX-License-Identifier: Apache-2.0
"""Requests to the engine with the members that no transcript of protocol/golden has. None of them is sent as it
stands: ports and files that they name need not be there."""

from __future__ import annotations

from typing import Any

MAC, ADDRESS = "02:00:00:00:00:01", "198.18.0.2"
RANGES = {
    "ipv4": [{"first": "198.18.0.9", "last": "198.18.0.12", "mask": "255.255.255.255"}],
    "ipv6": [{"first": "2001:2::9", "last": "2001:2::12"}],
}
PORT = {
    "port": "null",
    "mac": MAC,
    "ipv4": ADDRESS,
    "gateway_mac": MAC,
    "answers_for": RANGES,
    "vlans": [1, 2],
    "receive_ring": 64,
}
OTHER_STREAM = {"name": "voice", "from": "a", "to": "b", "also_to": ["c"]}
OPENS: list[dict[str, Any]] = [
    {
        "left": PORT,
        "right": PORT,
        "cores": [0],
        "dut_cores": [0],
        "queues": 1,
        "offloads": ["send_at"],
        "flow_control": "off",
        "link_timeout_ms": 1,
        "resolve_timeout_ms": 1,
    },
    {
        "ports": [{"name": name, "port": "null", "hosts": [{"mac": MAC, "ipv4": ADDRESS}]} for name in "abc"],
        "paths": [{"from": "a", "to": "b"}],
        "other_streams": [OTHER_STREAM],
    },
]
UDP_OVER_IPV4 = "00000000000000000000000008004500006e000040000a110000c6120002c6130002c0200007005a0000"
FRAME = {"version": 4, "size": 64, "source": ADDRESS, "destination": "198.19.0.2"}
VARYING = {"bit": 304, "bits": 16, "by": "frame", "mode": "increasing", "first": "0", "step": "1", "count": "2"}
DESCRIBED = {
    "size": 128,
    "bytes": UDP_OVER_IPV4,
    "tag_at": 42,
    "host": 0,
    "flows": 2,
    "flow_order": "in_turn",
    "source_mac": "port",
    "destination_mac": "given",
    "checked": True,
    "arrives_with": ["81000001"],
    "arrives_encapsulated": False,
    "checksums": [{"at": 24, "covers": [[14, 34]], "plus": 0}],
    "fields": [VARYING, {"bit": 288, "bits": 8, "mode": "list", "values": ["1"]}],
}
MARKS = [{"at": 12, "bytes": "0800"}]
ADDITIONAL = {
    "name": "management",
    "frames": ["00" * 60],
    "destination_mac": "given",
    "forwarded": MARKS,
    "replies": MARKS,
}
SHARES = {
    "rate_fps": 1000,
    "grace_ns": 0,
    "frames": [DESCRIBED, DESCRIBED],
    "shares": [1, 2],
    "streams": [0, 1],
    "tracked": [{"bit": 0, "bits": 1}],
    "answers_for": {"from": RANGES, "to": RANGES},
    "ptp": [DESCRIBED | {"tag_at": 86, "fields": [], "flows": 1}] * 2,
    "additional": [ADDITIONAL | {"after_frames": 1}, ADDITIONAL | {"every_ns": 1_000_000}],
}
QUESTIONS = {
    "source": "2001:2::2",
    "destination": "2001:2::1",
    "zone": "dutperf.test",
    "prefix": "64:ff9b::/96",
    "addresses": {"network": "10.0.0.0/8", "first": 0, "slices": {"count": 100, "burst": 1, "names": 1}},
    "cached": {"names": 1, "n": 2, "m": 1, "first": 0},
}
FIXED = {"mode": "fixed", "min": 0, "max": 0}
PART = {"bit": 272, "bits": 16, "mode": "connection", "part": "source_port", "first": "1024", "count": "200"}
TRIAL = {"trial": 1, "duration_ns": 100_000_000, "drain_ns": 0}
RUNS: list[dict[str, Any]] = [
    TRIAL
    | {
        "rest_ns": 0,
        "stamping": "every",
        "stamps": "loop",
        "lost_delay_ns": 1,
        "forward": SHARES,
        "delays_files": {"forward": "/nowhere"},
        "capture": {"path": "/nowhere", "first": 1},
    },
    TRIAL
    | {
        "stamping": "every",
        "delays_files": {"reverse": "/nowhere"},
        "reverse": {"rate_fps": 1, "foreground": FRAME, "source_address": FIXED | {"offset4": 2, "offset6": 14}},
    },
    TRIAL
    | {
        "connections": {"count": 200, "order": "random", "initiator": "forward"},
        "by_flow": False,
        "forward": {"rate_fps": 1000, "frames": [DESCRIBED | {"fields": [PART], "flows": 1}]},
    },
    TRIAL
    | {
        "stamping": "every",
        "queries_file": "/nowhere",
        "delay_parts": 1,
        "forward": {"rate_fps": 1000, "questions": QUESTIONS},
    },
    TRIAL
    | {
        "stamping": "tagged",
        "tagged": {"count": 1, "after_ns": 0},
        "pacing": {"kind": "fill", "destination": MAC},
        "forward": {"rate_fps": 1000, "foreground": FRAME},
    },
    TRIAL
    | {
        "forward": {
            "rate_fps": 1000,
            "frames": [DESCRIBED],
            "pattern": {"kind": "joining", "flows": 2, "apart_ns": 1000},
        }
    },
]
RUNS += [RUNS[1] | {"delays_files": {name: "/nowhere"}} for name in ("voice", "left->right")]
LISTED = {"frames": [{"bytes": "00" * 60, "at_ns": 0, "source_mac": "port", "destination_mac": "given"}]}
READY = [
    {"method": "open", "params": {"left": {"port": "null"}, "right": {"port": "null"}, "memory": "no_huge_pages"}},
    {"method": "load", "params": LISTED},
]
