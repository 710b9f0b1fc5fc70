# SPDX-License-Identifier: Apache-2.0
"""A member of the conditions that may be given as more than it is: ``max_rate="30k"`` is a :class:`Rate`.

Validation turns one into the other. An editor or type checker has to know both: what the constructor takes, and what
the member then is. For it the member is a descriptor, whose two types are independent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

_Kept = TypeVar("_Kept")
_Taken = TypeVar("_Taken")

if TYPE_CHECKING:

    class Given(Generic[_Kept, _Taken]):
        """A member that has the first type, and may be given as the second too."""

        @overload
        def __get__(self, instance: None, owner: type) -> Given[_Kept, _Taken]: ...
        @overload
        def __get__(self, instance: object, owner: type) -> _Kept: ...
        def __get__(self, instance: object, owner: type) -> Any: ...

        def __set__(self, instance: object, value: _Kept | _Taken) -> None: ...

else:

    class Given:
        """When the program runs, the member's own type."""

        def __class_getitem__(cls, types: tuple[Any, Any]) -> Any:
            return types[0]


def default(value: Any) -> Any:
    """The default of such a member."""
    return value
