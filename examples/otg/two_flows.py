# SPDX-License-Identifier: Apache-2.0
"""Two flows through whatever connects two ports, by snappi: how many frames came, and whether that is proven.

python two_flows.py https://127.0.0.1:8443 LOCATION LOCATION
"""

import sys

from common import connect, sent, set_config, verdicts


def main(server: str, *locations: str) -> int:
    api = connect(server)
    configuration = api.config()
    a, b = (configuration.ports.add(name=name, location=one) for name, one in zip("ab", locations, strict=True))
    for sender, receiver, size in ((a, b, 128), (b, a, 512)):
        flow = configuration.flows.add(name=f"{sender.name} to {receiver.name}")
        flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = sender.name, [receiver.name]
        ethernet, ip, udp = flow.packet.ethernet().ipv4().udp()
        ethernet.src.value, ethernet.dst.value = "02:00:00:00:00:01", "02:00:00:00:00:02"
        ip.src.value, ip.dst.value = "198.18.0.2", "198.19.0.2"
        udp.src_port.increment.start, udp.src_port.increment.count = 1024, 1000
        udp.dst_port.value = 7
        flow.size.fixed, flow.rate.pps = size, 5000
        flow.duration.fixed_packets.packets = 10000
        flow.metrics.enable = flow.metrics.loss = True
    set_config(api, configuration)
    for one in sent(api):
        print(f"{one.name}: {one.frames_tx} sent, {one.frames_rx} received, loss {one.loss:g} %")
    trials = verdicts(server)
    for verdict, causes in trials:
        print("; ".join([verdict, *causes]))
    return 0 if all(verdict == "valid" for verdict, _ in trials) else 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
