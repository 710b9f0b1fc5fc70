# SPDX-License-Identifier: Apache-2.0
"""Two flows through whatever connects two ports, by snappi: how many frames came, and whether that is proven.

python two_flows.py https://127.0.0.1:8443 LOCATION LOCATION
"""

import json
import ssl
import sys
import time
import urllib.request

import snappi


def main(server: str, *locations: str) -> int:
    api = snappi.api(location=server)
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
    for text in api.set_config(configuration).warnings:
        print("warning:", text)

    state = api.control_state()
    state.traffic.flow_transmit.state = "start"
    api.set_control_state(state)
    request = api.metrics_request()
    request.flow.flow_names = []
    metrics = api.get_metrics(request).flow_metrics
    while any(one.transmit != "stopped" for one in metrics):
        time.sleep(0.1)
        metrics = api.get_metrics(request).flow_metrics
    for one in metrics:
        print(f"{one.name}: {one.frames_tx} sent, {one.frames_rx} received, loss {one.loss:g} %")

    unverified = ssl._create_unverified_context()
    with urllib.request.urlopen(f"{server}/dutperf/verdicts", context=unverified) as answer:
        trials = json.load(answer)["trials"]
    for trial in trials:
        print("; ".join([trial["verdict"], *trial["causes"]]))
    return 0 if all(trial["verdict"] == "valid" for trial in trials) else 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
