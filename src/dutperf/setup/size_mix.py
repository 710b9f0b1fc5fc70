# SPDX-License-Identifier: Apache-2.0
"""Mixes of frame sizes: ``imix``, ``imix:64=7,594=4,1518=1``, and the genome of RFC 6985
(``imix:aaag``, with sizes of one's own ``imix:aaz,z=1600`` and ``imix:AAB,A=82,B=1400``).

Sizes are bytes including the FCS. In a fixed order frames of a size are as far apart as their weights
allow; in a random one (``imix-random:…``) each frame's size is drawn by its weight.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import gcd
from typing import Self

from dutperf.model import MAX_FRAME_SIZE, MIN_FRAME_SIZE, MOST_KINDS

USUAL = ((64, 7), (594, 4), (1518, 1))
"""Sizes and weights of ``imix``, the mix that most testers offer by this name."""
GENOME = {"a": 64, "b": 128, "c": 256, "d": 512, "e": 1024, "f": 1280, "g": 1518, "h": 2112, "i": 9000, "j": 16000}
"""RFC 6985 section 4. The sizes of z, which is the MTU's, and of capital letters (section 5) are the user's."""
LONGEST_ORDER = 1024
"""Frames after which a fixed order repeats; the sum of the weights in a random one."""
_FORM = (
    "imix, imix:64=7,594=4,1518=1 (sizes and weights), imix:aaag (RFC 6985; sizes of your own: imix:aaz,z=1600,"
    " imix:AAB,A=82,B=1400), or imix-random:… for sizes at random"
)
_LETTERS = re.compile(r"([A-Za-z]+)((?:,\s*[A-Za-z]\s*=\s*\d+)*)")


@dataclass(frozen=True)
class SizeMix:
    """Sizes of successive frames."""

    text: str
    """As it was given."""
    order: tuple[int, ...]
    """The size of each frame, in bytes; repeated, or drawn from."""
    random: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError: the text is no mix."""
        kind, _, content = text.partition(":")
        if kind not in ("imix", "imix-random"):
            raise ValueError(f"'{text}' is no mix of frame sizes: give {_FORM}")
        random = kind == "imix-random"
        if letters := _LETTERS.fullmatch(content):
            order = _genome(letters[1], letters[2])
        else:
            weights = _weights(content) if content else USUAL
            order = tuple(size for size, weight in weights for _ in range(weight)) if random else _spread(weights)
        if len(order) > LONGEST_ORDER or len(set(order)) > MOST_KINDS:
            raise ValueError(f"a mix has at most {MOST_KINDS} sizes, whose weights are {LONGEST_ORDER} in sum")
        return cls(text, order, random)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The different sizes, smallest first."""
        return tuple(sorted(set(self.order)))

    @classmethod
    def single(cls, size: int) -> Self:
        """Frames of one size."""
        return cls(str(size), (size,))

    @property
    def mean(self) -> int:
        """Mean size in bytes, rounded."""
        return round(sum(self.order) / len(self.order))

    def kinds(self) -> tuple[int, ...]:
        """:attr:`order` as indices into :attr:`sizes`."""
        return tuple(self.sizes.index(size) for size in self.order)

    def shares(self) -> tuple[int, ...]:
        """The weight of each of :attr:`sizes`, without common factors."""
        counts = [self.order.count(size) for size in self.sizes]
        return tuple(count // gcd(*counts) for count in counts)

    def at_least(self, smallest: int) -> Self:
        """The same mix with sizes below ``smallest`` raised to it."""
        return type(self)(self.text, tuple(max(size, smallest) for size in self.order), self.random)

    def __str__(self) -> str:
        return self.text


def is_mix(given: object) -> bool:
    return isinstance(given, str) and re.match(r"\s*imix(-random)?\b", given) is not None


def _genome(letters: str, given: str) -> tuple[int, ...]:
    """Sizes in the order of the letters; ``given`` are those of the user's own: ``,z=1600``."""
    own = {letter: int(size) for letter, size in re.findall(r"(\w)\s*=\s*(\d+)", given)}
    for letter in own:
        if letter in GENOME or not (letter == "z" or letter.isupper()):
            raise ValueError(
                f"'{letter}={own[letter]}': sizes of your own are z and capital letters (RFC 6985 section 5)"
            )
        if letter not in letters:
            raise ValueError(f"'{letter}={own[letter]}': there is no {letter} in {letters}")
    sizes = GENOME | own
    unknown = sorted(set(letters) - set(sizes))
    if unknown:
        known = ", ".join(f"{letter} {size}" for letter, size in GENOME.items())
        raise ValueError(
            f"'{unknown[0]}' has no size; RFC 6985 has {known}; z and capital letters need yours:"
            f" imix:{letters},{unknown[0]}=1400"
        )
    for letter in letters:
        _check_size(sizes[letter])
    return tuple(sizes[letter] for letter in letters)


def _check_size(size: int) -> None:
    if not MIN_FRAME_SIZE <= size <= MAX_FRAME_SIZE:
        raise ValueError(f"{size} bytes are impossible: frames have {MIN_FRAME_SIZE} to {MAX_FRAME_SIZE}")


def _weights(content: str) -> tuple[tuple[int, int], ...]:
    weights: dict[int, int] = {}
    for word in content.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*=\s*(\d+)\s*", word)
        if not match:
            raise ValueError(f"'{word.strip()}' is no size with a weight, as in 64=7: give {_FORM}")
        size, weight = int(match[1]), int(match[2])
        _check_size(size)
        if size in weights or not 1 <= weight <= LONGEST_ORDER:
            raise ValueError(f"{size}={weight}: each size comes once, with a weight of 1 to {LONGEST_ORDER}")
        weights[size] = weight
    return tuple(weights.items())


def _spread(weights: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    return tuple(weights[index][0] for index in spread([weight for _, weight in weights]))


def spread(weights: Sequence[int]) -> tuple[int, ...]:
    """Indices of ``weights``, each as often as its weight says and at even distances: the ``i``-th of
    ``w`` belongs at ``(i + 1/2) / w``."""
    total = sum(weights)
    ends = accumulate(weights)
    places = sorted(
        ((2 * i + 1) * total // (2 * weight), end, index)
        for index, (weight, end) in enumerate(zip(weights, ends, strict=True))
        for i in range(weight)
    )
    return tuple(index for _, _, index in places)
