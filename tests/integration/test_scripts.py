# SPDX-License-Identifier: Apache-2.0
"""Scripts: the examples, on DUTs whose truth is known; traffic that is changed while it runs; a script with
an error. Root only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import dutperf
from dutperf.cli import app
from dutperf.model import Verdict
from undisturbed import until

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]
EXAMPLES = Path(__file__).parents[2] / "examples" / "scripts"


def script(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["script", *arguments])


def figures(result: Result) -> list[list[float]]:
    """The figures of each line of a table."""
    lines = [line for line in result.stdout.splitlines() if re.match(r"\s*[0-9]", line)]
    return [[float(word.strip("%").replace(",", "")) for word in line.split()] for line in lines]


@pytest.mark.long
def test_load_latency() -> None:
    """A DUT that delays every frame by 2 ms and is never full."""

    def run() -> Result:
        return script(
            str(EXAMPLES / "load_latency.py"), "--lab", "refdut-ipv4", "--lab-option", "delay_ms=2", "--", "1k", "4k"
        )

    table = figures(until(run, lambda result: result.exit_code == 0, lambda result: result.output))
    assert [row[0] for row in table] == [1000, 2000, 4000]
    assert all(2000 <= median <= p99 for _, median, p99, _ in table)
    assert [row[3] for row in table] == [0, 0, 0]


@pytest.mark.long
def test_syn_flood() -> None:
    """The router's limit is 4,000 packets/s, and 200 more: at 7,000 at least a third is lost, of both
    streams alike."""

    def run() -> Result:
        return script(
            str(EXAMPLES / "syn_flood.py"),
            *("--lab", "kernel-ipv4", "--lab-option", "limit_fps=4000", "--lab-option", "burst=200"),
        )

    def shows(result: Result) -> bool:
        table = figures(result)
        return (
            result.exit_code == 0 and [row[1] for row in table[:2]] == [0, 0] and all(20 < x < 60 for x in table[2][1:])
        )

    until(run, shows, lambda result: result.output)


@pytest.mark.long
def test_ramp_until_loss() -> None:
    """9,000 frames/s, and a queue that more than that fills within half a second."""

    def run() -> Result:
        return script(
            str(EXAMPLES / "ramp_until_loss.py"), "--lab", "refdut-ipv4", "--lab-option", "capacity_fps=9000",
            "--lab-option", "queue=100",
        )  # fmt: skip

    def shows(result: Result) -> bool:
        return result.exit_code == 0 and "first loss at 10,000 frames/s" in result.stdout

    until(run, shows, lambda result: result.output)


def test_traffic_that_changes() -> None:
    """Every frame of every part arrives, and is counted in its part."""
    with dutperf.bench(lab="kernel-ipv4") as bench:

        def run() -> dutperf.api.RunningTraffic:
            with bench.start(2000, dutperf.SingleTrial(frame_sizes=128)) as traffic:
                early = traffic.wait(0.3)
                assert 0 < early.sent <= 2 * 2000 * 0.6
                traffic.change(4000, dutperf.SingleTrial(frame_sizes=128, directions="forward"))
                traffic.wait(0.3)
                assert traffic.is_running
                assert traffic.counters("reverse").sent == 0
            return traffic

        traffic = until(run, lambda one: one.is_valid, lambda one: str([result.causes for result in one.results]))
        first, second = traffic.results
        assert not traffic.is_running
        assert first.reverse is not None
        assert second.reverse is None
        for result in traffic.results:
            assert result.verdict is Verdict.VALID
            for counts in result.directions().values():
                assert counts.sent == counts.intended == counts.received > 0
                assert counts.delay_us is not None
        assert second.forward is not None
        assert second.forward.sent == pytest.approx(4000 * second.forward.send_time_s, rel=0.02)
        assert 0 < traffic.pauses_s[0] < 5
        assert traffic.stop() is second
        restarted = traffic.change()
        assert restarted is second
        assert traffic.stop().forward is not None


def test_traffic_that_runs_is_alone_on_its_bench() -> None:
    """Two trials of one engine would end each other."""
    with dutperf.bench(lab="kernel-ipv4") as bench:
        with bench.start(2000) as traffic:
            for other in (
                lambda: bench.trial(1000),
                lambda: bench.start(1000),
                lambda: bench.measure(dutperf.Latency(rate=1000)),
            ):
                with pytest.raises(dutperf.TesterError, match="stop it first"):
                    other()
            assert traffic.is_running
        for wrong in ({"warm_up_s": 1}, {"connections": 10}, {"modifiers": "filters:25"}):
            with pytest.raises(dutperf.ConfigError, match=f"{next(iter(wrong))}.*not of traffic that is started"):
                bench.start(1000, dutperf.SingleTrial(**wrong))
        assert bench.trial(1000, dutperf.SingleTrial(duration_s=0.2)).forward is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "import dutperf\ndef main(bench):\n    bench.start(100, dutperf.SingleTrial(frame='ip/tpc'))\n",
            "unknown header 'tpc'",
        ),
        ("def main(bench):\n    return 1 / 0\n", "ZeroDivisionError"),
        ("main = 5\n", "has no function main(bench, *arguments)"),
    ],
)
def test_an_error_in_a_script(tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, said: str) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(text)
    result = script(str(file), "--lab", "kernel-ipv4")
    assert result.exit_code == 2
    assert said in result.output + capfd.readouterr().err
    assert "typer" not in result.output
