# SPDX-License-Identifier: Apache-2.0
"""Puts the engine into the wheel that ``scripts/wheel`` builds. Other wheels have the Python side alone."""

from __future__ import annotations

import os
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class EngineHook(BuildHookInterface):
    """Adds the tree ``$DUTPERF_ENGINE_TREE`` (``bin``, ``lib``) as ``dutperf/engine``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        tree = os.environ.get("DUTPERF_ENGINE_TREE")
        if tree is None:
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data.update(pure_python=False, tag=f"py3-none-{platform}")
        build_data["force_include"][tree] = "dutperf/engine"
