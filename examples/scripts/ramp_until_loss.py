# SPDX-License-Identifier: Apache-2.0
"""Raise the rate until the first loss, with a frame that scapy built.

dutperf script examples/scripts/ramp_until_loss.py --lab refdut-ipv4 --lab-option capacity_fps=9000
"""

from scapy.layers.dns import DNS, DNSQR
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from dutperf import SingleTrial
from dutperf.frames import Template


def main(bench):
    query = Ether() / IP(src="198.18.0.2", dst="198.19.0.2") / UDP() / DNS(qd=DNSQR(qname="a-name.of-a-host.example"))
    frame = str(Template.of(bytes(query)))
    rate = 2000
    with bench.start(rate, SingleTrial(frame=frame, directions="forward")) as traffic:
        while True:
            traffic.wait(0.5)
            result = traffic.stop()
            if result.verdict != "valid":
                print(f"{rate:,} frames/s: {result.causes[0].text}; again")
            elif result.forward.lost:
                print(f"first loss at {rate:,} frames/s: {result.forward.lost} of {result.forward.sent} frames")
                return 0
            else:
                print(f"{rate:,} frames/s: no loss")
                rate += 2000
            traffic.change(rate=rate)
