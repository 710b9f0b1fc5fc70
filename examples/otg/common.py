# SPDX-License-Identifier: Apache-2.0
"""What the scripts here share: hosts beside a router, flows that are sent, and verdicts."""

import json
import ssl
import time
import urllib.request

import snappi

NETS = ("198.18.0", "198.19.0")
"""The router has .1 in each, the tester .2."""


def connect(server):
    """``https://127.0.0.1:8443``, or of gRPC ``127.0.0.1:40051``."""
    return snappi.api(location=server, transport="http" if "://" in server else "grpc")


def set_config(api, configuration):
    for text in api.set_config(configuration).warnings:
        print("warning:", text)


def hosts(api, locations):
    """A configuration with host0 and host1 at two ports, port0 and port1; the router is their gateway."""
    configuration = api.config()
    for number, location in enumerate(locations):
        port = configuration.ports.add(name=f"port{number}", location=location)
        ethernet = configuration.devices.add(name=f"host{number}").ethernets.add(name=f"ethernet{number}")
        ethernet.connection.port_name, ethernet.mac = port.name, f"02:00:00:00:00:0{number + 1}"
        net = NETS[number]
        ethernet.ipv4_addresses.add(name=f"ip{number}", address=f"{net}.2", gateway=f"{net}.1")
    return configuration


def flow_of_udp(configuration, name, destination_ports, dscp=0):
    """From host0 to host1."""
    flow = configuration.flows.add(name=name)
    flow.tx_rx.device.tx_names, flow.tx_rx.device.rx_names = ["host0"], ["host1"]
    _, ip, udp = flow.packet.ethernet().ipv4().udp()
    ip.src.value, ip.dst.value = f"{NETS[0]}.2", f"{NETS[1]}.2"
    ip.priority.dscp.phb.value = dscp
    udp.src_port.value, udp.dst_port.values = 49184, destination_ports
    flow.metrics.enable = True
    return flow


def sent(api):
    """The metrics of all flows, once these have been sent."""
    state = api.control_state()
    state.traffic.flow_transmit.state = "start"
    api.set_control_state(state)
    request = api.metrics_request()
    request.flow.flow_names = []
    metrics = api.get_metrics(request).flow_metrics
    while any(one.transmit != "stopped" for one in metrics):
        time.sleep(0.1)
        metrics = api.get_metrics(request).flow_metrics
    return metrics


def verdicts(server):
    """Of each trial of this configuration, with its causes."""
    with urllib.request.urlopen(f"{server}/dutperf/verdicts", context=ssl._create_unverified_context()) as answer:
        return [(one["verdict"], one["causes"]) for one in json.load(answer)["trials"]]
