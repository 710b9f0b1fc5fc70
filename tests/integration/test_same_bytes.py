# SPDX-License-Identifier: Apache-2.0
"""Two translators, TAYGA and the reference DUT, make the same of the tester's frames, but for what
RFC 7915 leaves open and what their way adds."""

from __future__ import annotations

import socket

import pytest

from labs.stations import ETH_P_ALL, PACKET_OUTGOING, in_namespace
from undisturbed import valid

from .measuring import bench

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

SIGNATURE = bytes.fromhex("d75450")
FRAMES = 200
"""Of each direction."""

MAY_DIFFER = {
    4: {
        **dict.fromkeys((4, 5), "identification: a count (RFC 7915 5.1), or zero with DF (RFC 6145)"),
        6: "DF: clear up to 1260 bytes (RFC 7915 5.1), or always set (RFC 6145)",
        8: "TTL: around TAYGA the kernel routes twice",
        **dict.fromkeys((10, 11), "header checksum: covers the above"),
        **dict.fromkeys((31, 32), "the run, by which the tag tells two engines' frames apart"),
        **dict.fromkeys((26, 27), "UDP checksum: covers the run"),
    },
    6: {
        7: "hop limit: around TAYGA the kernel routes twice",
        **dict.fromkeys((51, 52), "the run"),
        **dict.fromkeys((46, 47), "UDP checksum: covers the run"),
    },
}
"""IP version: offset in its header, and why."""


def received(name: str, networks: int) -> dict[bytes, bytes]:
    """What the tester's ports receive in a lab in which fore- and background are mixed: IP packets
    by the payload that identifies them."""
    packets: dict[bytes, bytes] = {}
    with bench(name, kind="af_packet") as ready:  # frames that AF_XDP takes are seen by nobody else
        listeners = [
            in_namespace(ready.tester_netns, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)) for _ in range(2)
        ]
        for listener, port in zip(listeners, ("tl", "tr"), strict=True):
            listener.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
            listener.bind((port, ETH_P_ALL))
            listener.setblocking(False)
        valid(lambda: ready.run(2 * FRAMES, foreground="4:3", networks=networks, seed=7))
        for listener in listeners:
            packets |= dict(of_test_frames(listener))
            listener.close()
    return packets


def of_test_frames(listener: socket.socket) -> list[tuple[bytes, bytes]]:
    """Payload behind the run, and IP packet, of every test frame that has arrived."""
    found = []
    while True:
        try:
            data, address = listener.recvfrom(65535)
        except BlockingIOError:
            return found
        at = data.find(SIGNATURE)
        if address[2] != PACKET_OUTGOING and at > 0:
            found.append((data[at + 5 :], data[14:]))


@pytest.mark.parametrize("networks", [1, pytest.param(256, marks=pytest.mark.long)])
def test_tayga_and_the_reference_dut_make_the_same_bytes(networks: int) -> None:
    tayga, reference = (received(name, networks) for name in ("tayga-siit", "refdut-siit"))
    assert len(reference) == 2 * FRAMES
    assert tayga.keys() == reference.keys()
    differing = {4: set[int](), 6: set[int]()}
    for payload, packet in reference.items():
        other = tayga[payload]
        assert len(packet) == len(other)
        differing[packet[0] >> 4] |= {
            offset for offset, (one, two) in enumerate(zip(packet, other, strict=True)) if one != two
        }
    assert {version: offsets - set(MAY_DIFFER[version]) for version, offsets in differing.items()} == {
        4: set(),
        6: set(),
    }
