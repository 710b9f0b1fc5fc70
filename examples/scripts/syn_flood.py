# SPDX-License-Identifier: Apache-2.0
"""How much of a web stream survives a SYN flood: streams whose shares change while the rate of the web
stream stays. The DUT is a router with a limit of packets/s.

    dutperf script examples/scripts/syn_flood.py --lab kernel-ipv4 --lab-option limit_fps=4000 --lab-option burst=200
"""

from dutperf import SingleTrial

WEB_FPS = 1000
WEB = {"name": "web", "frame": "ip/tcp(flags=PA,destination=80)", "sizes": 594}
FLOOD = {"name": "flood", "frame": "ip/tcp(flags=S,source=random(1024,65535),destination=80,seq=random(0,4294967295))"}


def main(bench):
    print("flood, frames/s    web lost    flood lost")
    with bench.start(WEB_FPS, SingleTrial(directions="forward", pattern="poisson"), streams=[WEB]) as traffic:
        traffic.wait(0.5)
        report(0, traffic)
        for times in (2, 6):
            traffic.change(rate=WEB_FPS * (1 + times), streams=[WEB, {**FLOOD, "share": times}])
            traffic.wait(0.5)
            report(WEB_FPS * times, traffic)
    return 0 if traffic.is_valid else 3


def report(flood_fps, traffic):
    """The share of each stream that was lost, by the counters of the part that ends."""
    result = traffic.change()
    kinds = result.forward.kinds
    lost = [f"{1 - kind.received / kind.sent:10.1%}" for kind in kinds]
    print(f"{flood_fps:15,}  {'    '.join(lost)}  {'; '.join(cause.text for cause in result.causes)}")
