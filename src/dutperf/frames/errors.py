# SPDX-License-Identifier: Apache-2.0
"""Errors of header stacks: one sentence with the place."""

from __future__ import annotations

from dutperf.errors import DutperfError


class FrameError(DutperfError):
    """A header stack, or a frame made from it, is not possible. The text begins with the place as far as
    it is known: ``header 3 (vlan), character 14: id=5000 does not fit …``.

    Members: ``message`` without the place; ``header``, the number of the header from 1 on; ``name``, its
    name; ``field``, its field; ``position``, the character in the text from 1 on. Each is None where it
    is not known.
    """

    def __init__(
        self,
        message: str,
        *,
        header: int | None = None,
        name: str | None = None,
        field: str | None = None,
        position: int | None = None,
    ) -> None:
        place = [f"header {header} ({name})"] if header is not None else []
        place += [f"character {position}"] if position is not None else []
        super().__init__(": ".join(part for part in (", ".join(place), message) if part))
        self.message = message
        self.header, self.name, self.field, self.position = header, name, field, position

    def at(self, header: int | None = None, name: str | None = None, field: str | None = None) -> FrameError:
        """This error with its header and field, where they were not known."""
        return FrameError(
            self.message,
            header=self.header or header,
            name=self.name or name,
            field=self.field or field,
            position=self.position,
        )

    def in_text(self, position: int) -> FrameError:
        """This error with its position in the text, where it was not known."""
        return FrameError(
            self.message,
            header=self.header,
            name=self.name,
            field=self.field,
            position=self.position or position,
        )
