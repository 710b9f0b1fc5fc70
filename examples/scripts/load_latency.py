# SPDX-License-Identifier: Apache-2.0
"""Latency over load: traffic at rising rates, until frames are lost.

dutperf script examples/scripts/load_latency.py --lab kernel-ipv4 -- 2k 32k
"""

import sys

from dutperf import SingleTrial


def number(text: str) -> int:
    return int(float(text.removesuffix("k")) * (1000 if text.endswith("k") else 1))


def main(bench, lowest="2k", highest="32k"):
    print("frames/s    median, us    p99, us    lost")
    rate = number(lowest)
    with bench.start(rate, SingleTrial(directions="forward")) as traffic:
        while rate <= number(highest):
            traffic.wait(0.5)
            result = traffic.change(rate=rate * 2) if rate * 2 <= number(highest) else traffic.stop()
            counts, delay = result.forward, result.forward.delay_us
            delays = "none arrived" if delay is None else f"{delay.p50:10,.1f}    {delay.p99:7,.1f}"
            print(f"{rate:8,}    {delays}    {counts.lost:4}{'' if result.verdict == 'valid' else '    invalid'}")
            if counts.lost and result.verdict == "valid":
                break
            rate *= 2
    for result in traffic.results:
        for cause in result.causes:
            print(cause.text, file=sys.stderr)
    return 0 if traffic.is_valid else 3
