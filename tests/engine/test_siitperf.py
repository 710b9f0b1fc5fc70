# SPDX-License-Identifier: Apache-2.0
"""What siitperf-tp sends, and what ``dutperf trial`` sends with the same file converted: captured,
and compared byte for byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from dutperf.engine.client import EngineCommand
from siitperf_files import MACS, ROUTER, TRANSLATOR, link_commands, with_lines

SIGNATURE = bytes.fromhex("d75450")
FILES = {
    "translator with background": (
        with_lines(TRANSLATOR + MACS, "Num-R-Nets 256", "Rev-var-sport 2", "Rev-sport-max 5000"),
        "128 400 1 0 10 7",
        "128",
    ),
    "router with varying addresses": (
        ROUTER + MACS + "IP-L-var 3\nIP-L-min 1\nIP-L-max 0xff\nIPv4-L-offset 2\n",
        "84 400 1 0 2 2",
        "64",
    ),
}


@pytest.mark.usefixtures("command")
@pytest.mark.parametrize(("text", "arguments", "size"), FILES.values(), ids=FILES)
def test_a_converted_file_and_its_original_give_the_same_frames(
    text: str, arguments: str, size: str, tmp_path: Path, command: EngineCommand
) -> None:
    (tmp_path / "siitperf.conf").write_text(text)
    link_commands(tmp_path)
    mix = ":".join(arguments.split()[-2:])
    original = _captured(tmp_path / "original", command, ["build/siitperf-tp", *arguments.split()])
    converted = _environment(tmp_path / "converted", command)
    (tmp_path / "ours.yaml").write_bytes(_run(tmp_path, [sys.executable, "-m", "dutperf", "convert"], converted))
    ours = [
        sys.executable,
        "-m",
        "dutperf",
        "trial",
        "--config",
        "ours.yaml",
        "--frame-size",
        size,
        "--rate",
        "400",
        "--duration",
        "1",
        "--drain",
        "0",
    ]
    again = _captured(tmp_path / "converted", command, [*ours, "--foreground", mix, "--seed", "7"])
    assert [len(frames) for frames in original] == [400, 400]
    assert again == original


def _environment(files: Path, command: EngineCommand) -> dict[str, str]:
    files.mkdir(exist_ok=True)
    ports = ",".join(f"vdev:net_pcap_{side},tx_pcap={files}/{side}.pcap" for side in ("left", "right"))
    ours = {"PORTS": ports, "CORES": "auto", "SEED": "7", "LEARNING_REST": "0", "ENGINE": command.program}
    return os.environ | {f"DUTPERF_{name}": value for name, value in ours.items()}


def _run(directory: Path, argv: list[str], environment: dict[str, str]) -> bytes:
    done = subprocess.run(argv, cwd=directory, env=environment, capture_output=True, timeout=120, check=False)
    assert done.returncode in (0, 1, 3), done.stderr  # 1: nothing comes back from a file
    return done.stdout


def _captured(files: Path, command: EngineCommand, argv: list[str]) -> list[list[bytes]]:
    """Every test frame of each side, without what each engine draws (the run) and the checksum over it."""
    _run(files.parent, argv, _environment(files, command))
    sides = [[frame for frame, _ in RawPcapReader(str(files / f"{side}.pcap"))] for side in ("left", "right")]
    return [[_without_run(frame, frame.find(SIGNATURE)) for frame in side if SIGNATURE in frame] for side in sides]


def _without_run(frame: bytes, tag: int) -> bytes:
    return frame[: tag - 2] + frame[tag : tag + 3] + frame[tag + 5 :]
