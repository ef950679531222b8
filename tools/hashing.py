"""64-bit hashes of whole columns in numpy: quick, stable across machines, not for secrets."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Keys: TypeAlias = npt.NDArray[np.uint64]

_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))  # splitmix64's finaliser
_ODD = np.uint64(0x9E3779B97F4A7C15)


def mix(values: Keys) -> Keys:
    """Scatter the bits of each value (a bijection: splitmix64's finaliser)."""
    mixed = values.copy()
    for shift, factor in _STEPS:
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def hash_texts(texts: pa.Array) -> Keys:
    """A hash for each text of a ``large_string`` array without NULLs.

    Each text is laid out in words of eight bytes; a word is mixed with its place, the words of
    a text are added up and mixed with its length in bytes.
    """
    count = len(texts)
    if count == 0:
        return np.empty(0, dtype=np.uint64)
    _, offset_buffer, data = texts.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, count + 1, texts.offset * 8)
    lengths = np.diff(offsets)
    words = np.maximum(1, -(-lengths // 8))
    starts = np.concatenate(([0], np.cumsum(words)))
    laid_out = np.zeros(int(starts[-1]) * 8, dtype=np.uint8)
    if data is not None and offsets[-1] > offsets[0]:
        content = np.frombuffer(data, np.uint8, int(offsets[-1] - offsets[0]), int(offsets[0]))
        shift = starts[:-1] * 8 - (offsets[:-1] - offsets[0])
        laid_out[np.arange(len(content)) + np.repeat(shift, lengths)] = content
    place = np.arange(int(starts[-1])) - np.repeat(starts[:-1], words)
    mixed = mix(laid_out.view("<u8").astype(np.uint64) + mix((place + 1).astype(np.uint64) * _ODD))
    return mix(np.add.reduceat(mixed, starts[:-1]) + mix(lengths.astype(np.uint64)))
