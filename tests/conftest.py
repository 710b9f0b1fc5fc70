# SPDX-License-Identifier: Apache-2.0
"""What tests in namespaces share: they need root, and keep out of the way of other labs on this
machine."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import lacking
from dutperf.lab import site
from undisturbed import NOT_SHOWN

ALONE = ("cards", "integration", "faults")
"""Directories whose tests measure DUTs or boot machines: others on the same cores would slow them down."""
MOST_NOT_SHOWN = 10
MEMORY_BYTES = 2_000_000_000
"""Of free memory for the tests' files: a run writes up to 400 MB."""
SESSION_PRIORITY = "-10"
"""A nice value: ten times the share of a session at normal priority."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which tests of a selection run: all, or one of the two parts of ``make test``."""
    parser.addoption(
        "--part",
        choices=("beside", "alone"),
        help="only tests that compare values and bytes, which may run beside each other, or only the others",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Some tests press Ctrl-C or hang up. A shell that runs these in the background has both
    ignored, and so have their child processes. And other work of this machine comes second."""
    _prefer_this_session(config)
    _keep_files_in_memory()
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def _prefer_this_session(config: pytest.Config) -> None:
    """Until the end of the tests, where the kernel divides cores between sessions (sched(7), autogroup) and
    lets this user do so. Other work would double the time of the tests, and those that are about a
    busy machine make it busy themselves. Processes that began before the first session are of none:
    their file is empty."""
    if hasattr(config, "workerinput"):  # of the same session as the process that started it
        return
    own = Path("/proc/self/autogroup")
    with contextlib.suppress(OSError):
        before = own.read_text().split()
        if before:
            own.write_text(SESSION_PRIORITY)
            config.add_cleanup(lambda: own.write_text(before[-1]))


def _keep_files_in_memory() -> None:
    """A journal waits for the disk after each line. On a busy machine each such wait lets other
    programs run for some milliseconds, and a search takes five times as long."""
    memory = Path("/dev/shm")
    with contextlib.suppress(OSError):
        if shutil.disk_usage(memory).free > MEMORY_BYTES:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of the other part are left out. Those marked root are skipped without it, and say so."""
    part = config.getoption("part")
    if part is not None:
        config.hook.pytest_deselected(items=[item for item in items if _is_alone(item) is not (part == "alone")])
        items[:] = [item for item in items if _is_alone(item) is (part == "alone")]
    for item in items:
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs root for network namespaces"))


def _is_alone(item: pytest.Item) -> bool:
    return _directory(item.path) in ALONE or item.get_closest_marker("alone") is not None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Directories without a test of the part are not read: that takes a quarter of a minute."""
    directories = {"alone": ("unit",), "beside": ALONE}.get(config.getoption("part"), ())
    return True if _directory(collection_path) in directories else None


def _directory(path: Path) -> str:
    """That of the tests in which ``path`` lies."""
    return next(iter(path.relative_to(Path(__file__).parent).parts), "")


def pytest_collection_finish() -> None:
    """What was loaded stays: looking through it for garbage again and again takes a twentieth of the time."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A machine can be too busy for some tests. For more than a few, it is no machine to test on,
    or the tester calls good trials invalid."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = (
        []
        if reporter is None
        else [report for report in reporter.stats.get("skipped", []) if NOT_SHOWN in str(report.longrepr)]
    )
    if len(skipped) > MOST_NOT_SHOWN and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print(f"\n{len(skipped)} tests could not show what they should, more than {MOST_NOT_SHOWN}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line on what to install for the tests that were skipped."""
    reports = [one.longrepr for one in terminalreporter.stats.get("skipped", [])]
    if said := lacking.sentence(one[2] for one in reports if isinstance(one, tuple)):
        terminalreporter.write_line(said)


@pytest.fixture(autouse=True)
def _signals_stay_as_they_were() -> Iterator[None]:
    """A command that a test calls takes the signals for the rest of its process (exit_status.end_at_signals), which
    here goes on with other tests."""
    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in former.items():
        signal.signal(number, handler)


@pytest.fixture
def lab_records(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of the test's own for labs' records: labs of others on this machine are none of
    its business. Its path has room for those of sockets."""
    records = tmp_path_factory.mktemp("labs")
    monkeypatch.setattr(site, "STATE_DIR", records)
    return records
