# SPDX-License-Identifier: Apache-2.0
"""Messages of PTP that leave in place of tagged frames, where cards stamp no other frames that they receive."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Literal

from dutperf.frames import Stack, build
from dutperf.frames.walk import VLAN_SIZE, Walk
from dutperf.model import DescribedFrame, FrameSpec, Stream, Trial

_IN_UDP = "udp(source=319)/ptp"
_MACS_SIZE, _TYPE_SIZE = 12, 2


def with_ptp(trial: Trial) -> Trial:
    """The trial, in which cards that stamp messages of PTP alone may have one in place of each tagged frame. Not where
    frames belong to connections: their replies have ports of their own."""
    if trial.stamps != "card" or trial.connections is not None:
        return trial
    streams = {path: one.model_copy(update={"ptp": messages_of(one)}) for path, one in trial.all_streams().items()}
    others = trial.other_streams and {path: streams[path] for path in trial.other_streams}
    own = {} if trial.sends_others_alone else {path: streams[path] for path in trial.streams()}
    return trial.with_streams(own).model_copy(update={"other_streams": others})


def messages_of(stream: Stream) -> tuple[DescribedFrame, ...]:
    """For each kind of a stream's frames a Sync message (IEEE 1588-2008 13.6) with the addresses of its first frame: in
    UDP, or in Ethernet where the frames have no IP header. It is as long as these, or as it needs. None of other
    streams."""
    plain = (one for one in (stream.foreground, stream.background) if one is not None)
    return (*map(_in_place_of_plain, plain), *map(_in_place_of, stream.frames))


def _in_place_of_plain(frame: FrameSpec) -> DescribedFrame:
    ends = f"source={frame.source},destination={frame.destination}"
    return _built(f"ipv{frame.version}({ends})/{_IN_UDP}", frame.size)


def _built(headers: str, size: int) -> DescribedFrame:
    stack = Stack.parse(headers)
    return build(stack, max(size, stack.min_size))


def _in_place_of(frame: DescribedFrame) -> DescribedFrame:
    data = bytes.fromhex(frame.bytes)
    network = Walk(data)
    tags = data[_MACS_SIZE : network.network_at - _TYPE_SIZE]
    link = [_vlan(tags[at : at + VLAN_SIZE]) for at in range(0, len(tags), VLAN_SIZE)]
    inner = "ptp" if network.version is None else f"{_ip(data[network.network_at :], network.version)}/{_IN_UDP}"
    made = _built("/".join((*link, inner)), frame.size)
    macs = frame.bytes[: 2 * _MACS_SIZE]
    return made.model_copy(
        update={
            "bytes": macs + made.bytes[len(macs) :],
            "source_mac": frame.source_mac,
            "destination_mac": frame.destination_mac,
        }
    )


def _vlan(tag: bytes) -> str:
    type_, control = int.from_bytes(tag[:2], "big"), int.from_bytes(tag[2:], "big")
    return f"vlan(type={type_:#06x},pcp={control >> 13},dei={control >> 12 & 1},id={control & 0xFFF})"


def _ip(header: bytes, version: Literal[4, 6]) -> str:
    if version == 4:
        source, destination = ip_address(header[12:16]), ip_address(header[16:20])
        return f"ipv4(source={source},destination={destination},dscp={header[1] >> 2},ttl={header[8]})"
    source, destination = ip_address(header[8:24]), ip_address(header[24:40])
    dscp = int.from_bytes(header[:2], "big") >> 6 & 0x3F
    return f"ipv6(source={source},destination={destination},dscp={dscp},hop_limit={header[7]})"
