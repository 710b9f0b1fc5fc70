# SPDX-License-Identifier: Apache-2.0
"""``dutperf script``: an error of the user's file is shown as that, and where it is in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import dutperf, write

ERRORS = {
    "a parameter": ("    bench.trial('1k', dutperf.SingleTrial(tag=1))\n", "line 4: tag: SingleTrial has no such"),
    "a rate": ("    bench.trial('1z')\n", "line 4: rate: '1z' is not a rate"),
    "a capture": ("    bench.replay('none.pcap')\n", "line 4: file: cannot read none.pcap"),
    "two parameters": (
        "    dutperf.SingleTrial(capture_to='a')\n",
        "line 4: `capture_to` has no effect without `capture`\n",
    ),
}


def script(directory: Path, text: str, *arguments: str) -> tuple[int, str]:
    """The exit status, and what is said without the file's name."""
    file = directory / "mine.py"
    file.write_text(text)
    result = dutperf("script", file, "--config", write(directory, "Engine"), "--", *arguments)
    return result.exit_code, result.stderr.replace(f"dutperf: {file}, ", "")


@pytest.mark.parametrize(("text", "said"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_the_line_and_the_parameter_of_the_script(tmp_path: Path, text: str, said: str) -> None:
    status, error = script(tmp_path, f"import dutperf\n\ndef main(bench):\n{text}")
    assert (status, error[: len(said)]) == (2, said)


def test_too_many_arguments(tmp_path: Path) -> None:
    text = "def main(bench, rate='2k'):\n    return 7\n"
    assert script(tmp_path, text, "1k")[0] == 7
    status, error = script(tmp_path, text, "1k", "2k")
    assert status == 2
    assert error.startswith("dutperf: ARGUMENT: main(bench, rate='2k') of ")
    assert "with a bench and 2 arguments: too many" in error


@pytest.mark.parametrize(
    ("returned", "status"), [("True", 0), ("False", 3), ("None", 0), ("0", 0), ("4", 4), ("256", 2), ("-1", 2)]
)
def test_what_main_returns_is_the_exit_status(tmp_path: Path, returned: str, status: int) -> None:
    """A truth value says whether all is well, as ``is_valid`` does."""
    assert script(tmp_path, f"def main(bench):\n    return {returned}\n")[0] == status


@pytest.mark.parametrize("text", ["def main(bench):\n    (\n", "import no_such_module\n", "1 / 0\n"])
def test_a_file_that_python_does_not_run_is_not_a_fault_of_dutperf(tmp_path: Path, text: str) -> None:
    status, error = script(tmp_path, text)
    assert status == 2
    assert str(tmp_path / "mine.py") in error
    assert "report it" not in error
    assert "cli/commands" not in error
