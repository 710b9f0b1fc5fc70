# SPDX-License-Identifier: Apache-2.0
"""What comes out of a router, by snappi: sends UDP frames to three ports, and writes what arrives to a capture file.

python capture.py https://127.0.0.1:8443 LOCATION LOCATION FILE

The server may also be one of gRPC: 127.0.0.1:40051.
"""

import sys
from pathlib import Path

from common import connect, flow_of_udp, hosts, sent, set_config


def set_capture(api, state):
    wanted = api.control_state()
    wanted.port.capture.state = state
    api.set_control_state(wanted)


def main(server, left, right, file):
    api = connect(server)
    configuration = hosts(api, (left, right))
    flow = flow_of_udp(configuration, "flow", [5000, 5001, 5002])
    flow.size.fixed, flow.rate.pps = 128, 1000
    flow.duration.fixed_packets.packets = 300
    configuration.captures.add(name="capture", port_names=["port1"])
    set_config(api, configuration)
    set_capture(api, "start")
    [metric] = sent(api)
    set_capture(api, "stop")
    request = api.capture_request()
    request.port_name = "port1"
    Path(file).write_bytes(api.get_capture(request).read())
    print(f"{metric.frames_tx} sent, {metric.frames_rx} received: {file}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
