# SPDX-License-Identifier: Apache-2.0
"""The neighbours of two hosts beside a router, by snappi: the MAC addresses of their gateways by ARP, and whether each
host reaches the router's other side.

python neighbours.py https://127.0.0.1:8443 LOCATION LOCATION

The server may also be one of gRPC: 127.0.0.1:40051.
"""

import sys
import time

from common import NETS, connect, hosts, set_config

PATIENCE_S = 30


def neighbours(api):
    request = api.states_request()
    request.ipv4_neighbors.ethernet_names = []
    return api.get_states(request).ipv4_neighbors


def main(server, *locations):
    api = connect(server)
    api.request_timeout = 60  # of gRPC: a silent gateway takes some seconds
    set_config(api, hosts(api, locations))
    end_s = time.monotonic() + PATIENCE_S
    found = neighbours(api)
    while not all(one.link_layer_address for one in found) and time.monotonic() < end_s:
        time.sleep(1)
        found = neighbours(api)
    for one in found:
        print(f"{one.ethernet_name}: {one.ipv4_address} is at {one.link_layer_address or 'no address: it is silent'}")
    action = api.control_action()
    for number, net in enumerate(reversed(NETS)):
        action.protocol.ipv4.ping.requests.add(src_name=f"ip{number}", dst_ip=f"{net}.1")
    results = api.set_control_action(action).response.protocol.ipv4.ping.responses
    for one in results:
        print(f"{one.src_name}: ping of {one.dst_ip} {one.result}")
    return 0 if all(one.result == "succeeded" for one in results) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
