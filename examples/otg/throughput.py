# SPDX-License-Identifier: Apache-2.0
"""The throughput of a router between two ports, by snappi: the highest rate at which a flow loses no frame. A trial
that says nothing about the router is repeated.

python throughput.py https://127.0.0.1:8443 LOCATION LOCATION LOWEST HIGHEST
"""

import sys

from common import connect, flow_of_udp, hosts, sent, verdicts

SECONDS, SIZE, RESOLUTION, REPEATS = 1, 128, 0.002, 10


def trial(api, server, configuration, pps):
    """Whether no frame was lost at this rate; None: the trial says nothing about the router."""
    configuration.flows[0].rate.pps = pps
    api.set_config(configuration)
    [metric] = sent(api)
    verdict, causes = verdicts(server)[-1]
    print(
        f"{pps} frames/s: {metric.frames_tx} sent, {metric.frames_rx} received,",
        "; ".join([verdict, *causes]),
    )
    return metric.loss == 0 if verdict == "valid" else None  # not by the frames received: duplicates count there


def main(server, left, right, lowest, highest):
    api = connect(server)
    configuration = hosts(api, (left, right))
    flow = flow_of_udp(configuration, "flow", [7])
    flow.size.fixed, flow.duration.fixed_seconds.seconds, flow.metrics.loss = SIZE, SECONDS, True
    below, above, middle = 0, int(highest) + 1, int(lowest)
    while above - below > max(1, RESOLUTION * below):
        passed = next(
            (one for _ in range(REPEATS) if (one := trial(api, server, configuration, middle)) is not None), None
        )
        if passed is None:
            print(f"throughput: at least {below} and less than {above} frames/s; no valid trial at {middle}")
            return 3
        if not passed and not below:
            print(f"throughput: less than {lowest} frames/s")
            return 1
        below, above = (middle, above) if passed else (below, middle)
        middle = (below + above) // 2
    print(f"throughput: {below} frames/s")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
