# SPDX-License-Identifier: Apache-2.0
"""The throughput of a router between two ports, by snappi: the highest rate at which a flow loses no frame. A trial
that says nothing about the router is repeated.

python throughput.py https://127.0.0.1:8443 LOCATION LOCATION LOWEST HIGHEST
"""

import json
import ssl
import sys
import time
import urllib.request

import snappi

SECONDS, SIZE, RESOLUTION, REPEATS = 1, 128, 0.002, 10
NETS = ("198.18.0", "198.19.0")
"""The router has .1 in each, the tester .2."""


def configured(api, locations):
    """Two hosts beside the router, and a flow from one to the other."""
    configuration = api.config()
    for number, location in enumerate(locations):
        port = configuration.ports.add(name=f"port{number}", location=location)
        ethernet = configuration.devices.add(name=f"host{number}").ethernets.add(name=f"ethernet{number}")
        ethernet.connection.port_name, ethernet.mac = port.name, f"02:00:00:00:00:0{number + 1}"
        net = NETS[number]
        ethernet.ipv4_addresses.add(name=f"ip{number}", address=f"{net}.2", gateway=f"{net}.1")
    flow = configuration.flows.add(name="flow")
    flow.tx_rx.device.tx_names, flow.tx_rx.device.rx_names = ["host0"], ["host1"]
    _, ip, udp = flow.packet.ethernet().ipv4().udp()
    ip.src.value, ip.dst.value = f"{NETS[0]}.2", f"{NETS[1]}.2"
    udp.src_port.value, udp.dst_port.value = 49184, 7
    flow.size.fixed, flow.duration.fixed_seconds.seconds = SIZE, SECONDS
    flow.metrics.enable = True
    return configuration


def trial(api, server, configuration, pps):
    """Whether no frame was lost at this rate; None: the trial says nothing about the router."""
    configuration.flows[0].rate.pps = pps
    api.set_config(configuration)
    state = api.control_state()
    state.traffic.flow_transmit.state = "start"
    api.set_control_state(state)
    request = api.metrics_request()
    request.flow.flow_names = ["flow"]
    while (metric := api.get_metrics(request).flow_metrics[0]).transmit != "stopped":
        time.sleep(0.1)
    with urllib.request.urlopen(f"{server}/dutperf/verdicts", context=ssl._create_unverified_context()) as answer:
        last = json.load(answer)["trials"][-1]
    print(
        f"{pps} frames/s: {metric.frames_tx} sent, {metric.frames_rx} received,",
        "; ".join([last["verdict"], *last["causes"]]),
    )
    return metric.frames_rx == metric.frames_tx if last["verdict"] == "valid" else None


def main(server, left, right, lowest, highest):
    api = snappi.api(location=server)
    configuration = configured(api, (left, right))
    below, above = int(lowest), int(highest) + 1
    while above - below > max(1, RESOLUTION * below):
        middle = (below + above) // 2
        passed = next(
            (one for _ in range(REPEATS) if (one := trial(api, server, configuration, middle)) is not None), None
        )
        if passed is None:
            print(f"throughput: at least {below} and less than {above} frames/s; no valid trial at {middle}")
            return 3
        below, above = (middle, above) if passed else (below, middle)
    print(f"throughput: {below} frames/s")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
