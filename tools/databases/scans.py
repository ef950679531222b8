"""What estimates of what a query reads share, whatever engine's plan they are made of."""

from __future__ import annotations


class Hidden(Exception):
    """A plan does not tell what is read; why, as the end of a sentence."""


def repeated(size: float, once: float, loops: float, cache: float) -> float:
    """Bytes that several scans read of a table.

    Args:
        size: Of the table; it is read once if it stays in memory.
        once: Bytes of one scan.
        loops: Scans.
        cache: Bytes that the server keeps in memory.
    """
    return min(size, once * loops) if size <= cache else min(size, once) * loops
