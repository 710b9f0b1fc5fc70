# SPDX-License-Identifier: Apache-2.0
"""Loss and latency of three kinds of traffic through a router, by snappi, and whether they are proven.

python loss_by_flow.py https://127.0.0.1:8443 LOCATION LOCATION
"""

import sys

from common import connect, flow_of_udp, hosts, sent, set_config, verdicts

KINDS = {"voice": (46, 218, 500), "video": (34, 1280, 1000), "data": (0, 1518, 2000)}
"""DSCP, size in bytes, frames/s."""


def main(server, *locations):
    api = connect(server)
    configuration = hosts(api, locations)
    for number, (name, (dscp, size, pps)) in enumerate(KINDS.items()):
        flow = flow_of_udp(configuration, name, [5000 + number], dscp)
        flow.size.fixed, flow.rate.pps, flow.duration.fixed_seconds.seconds = size, pps, 2
        flow.metrics.loss = flow.metrics.latency.enable = True
    set_config(api, configuration)
    for one in sent(api):
        average, most = one.latency.average_ns or 0, one.latency.maximum_ns or 0  # none where no frame came
        print(
            f"{one.name}: {one.frames_tx} sent, {one.frames_rx} received, loss {one.loss:.3g} %,"
            f" latency {average / 1000:.1f} us, at most {most / 1000:.1f} us"
        )
    verdict, causes = verdicts(server)[-1]
    print("; ".join([verdict, *causes]))
    return 0 if verdict == "valid" else 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
