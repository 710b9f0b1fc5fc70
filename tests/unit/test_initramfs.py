# SPDX-License-Identifier: Apache-2.0
"""The modules of a guest's kernel: compressed or not, as the distribution has them."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from dutperf.lab.errors import LabError
from dutperf.lab.guest import initramfs


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """Its directory; ``one-module`` needs ``other_module``, which needs nothing."""
    made = tmp_path / "6.12.0-test"
    made.mkdir()
    for kind in ("builtin", "builtin.modinfo", "order"):
        (made / f"modules.{kind}").write_bytes(b"")
    return made


@pytest.mark.parametrize(
    ("suffix", "compressed"), [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress)], ids=["plain", "xz", "gz"]
)
def test_a_guest_has_the_modules_it_needs_uncompressed(
    suffix: str, compressed: Callable[[bytes], bytes], kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "depmod").write_text("#!/bin/sh\n")
    (tmp_path / "depmod").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    contents = {"one-module": b"\0depends=other_module\0", "other-module": b"\0depends=\0", "third": b"\0depends=\0"}
    for name, content in contents.items():
        (kernel / f"{name}.ko{suffix}").write_bytes(compressed(content))
    initramfs.install_modules(tmp_path / "root", kernel, ["one_module"])
    installed = {path.name: path.read_bytes() for path in (tmp_path / "root").rglob("*.ko")}
    assert installed == {f"{name}.ko": contents[name] for name in ("one-module", "other-module")}


def test_a_module_that_the_kernel_does_not_have_is_named(kernel: Path, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="has no module virtio_net"):
        initramfs.install_modules(tmp_path / "root", kernel, ["virtio-net"])
