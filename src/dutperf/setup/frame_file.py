# SPDX-License-Identifier: Apache-2.0
"""Frames of a capture as the text of their bytes, so that results contain what was sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic_core import PydanticCustomError

from dutperf.captures import frames_of
from dutperf.errors import DutperfError
from dutperf.frames import Template, is_template

_FORM = re.compile(r"(?P<path>.+?)(:(?P<number>[1-9][0-9]*))?(,tag=(?P<tag>[0-9]{1,5}))?(?P<keep>,macs=keep)?")


def frame_text(given: str) -> str:
    """The text (docs/frames.md) of the frame that ``FILE[:N][,tag=BYTE][,macs=keep]`` names; N is its number from 1 on.
    Raises ValueError: the file or the frame is not possible."""
    match = _FORM.fullmatch(given)
    if match is None:
        raise ValueError(f"'{given}' names no frame: give FILE.pcap or FILE.pcap:N")
    path, number = Path(match["path"]), int(match["number"] or 1)
    try:
        frame = next(islice(frames_of(path), number - 1, None), None)
        if frame is None:
            raise ValueError(f"{path} has no frame {number}")
        if not frame.is_whole:
            raise ValueError(
                f"{path} has only {len(frame.data)} of the {frame.wire_size} bytes of frame {number}: capture whole"
                " frames"
            )
        tag_at = None if match["tag"] is None else int(match["tag"])
        return str(Template.of(frame.data, tag_at, keeps_macs=match["keep"] is not None))
    except DutperfError as error:
        place = "" if str(error).startswith(("cannot", str(path))) else f"{path}, frame {number}: "
        raise ValueError(f"{place}{error}") from None


MEMBER = "frame_from"
"""The member, and the type of its errors."""


def with_frame(members: Any) -> Any:
    """Members of a model in which ``frame_from`` has given ``frame``. What was read once, as in a journal, is not read
    again. Raises PydanticCustomError: see :func:`frame_text`; or ``frame`` is given as well."""
    if not isinstance(members, Mapping) or members.get(MEMBER) is None:
        return members
    frame = members.get("frame")
    if frame is not None:
        if not is_template(str(frame)):
            raise PydanticCustomError(MEMBER, "goes without `frame`: the capture has the headers")
        return members
    try:
        return {**members, "frame": frame_text(str(members[MEMBER]))}
    except ValueError as error:
        raise PydanticCustomError(MEMBER, "{reason}", {"reason": str(error)}) from None
