# SPDX-License-Identifier: Apache-2.0
"""Which VLANs a bridge forwards, by snappi: a flow with each tag.

python vlans.py https://127.0.0.1:8443 LOCATION LOCATION ID...

The server may also be one of gRPC: 127.0.0.1:40051.
"""

import sys

from common import connect, sent, set_config

FRAMES = 500


def main(server, left, right, *ids):
    api = connect(server)
    configuration = api.config()
    a, b = configuration.ports.add(name="a", location=left), configuration.ports.add(name="b", location=right)
    for number in ids:
        flow = configuration.flows.add(name=f"VLAN {number}")
        flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = a.name, [b.name]
        ethernet, vlan, ip, udp = flow.packet.ethernet().vlan().ipv4().udp()
        ethernet.src.value, ethernet.dst.value = "02:00:00:00:00:01", "02:00:00:00:00:02"
        vlan.id.value, vlan.priority.value = int(number), 5
        ip.src.value, ip.dst.value = "198.18.0.2", "198.18.0.3"
        udp.src_port.value, udp.dst_port.value = 49184, 7
        flow.size.fixed, flow.rate.pps = 128, 1000
        flow.duration.fixed_packets.packets = FRAMES
        flow.metrics.enable = True
    set_config(api, configuration)
    metrics = sent(api)
    for one in metrics:
        what = "forwarded" if one.frames_rx == FRAMES else "partly forwarded" if one.frames_rx else "not forwarded"
        print(f"{one.name}: {what}, {one.frames_rx} of {one.frames_tx}")
    return 0 if all(one.frames_rx == FRAMES for one in metrics) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
