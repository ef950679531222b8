"""How much memory the process and its children have used at most."""

from __future__ import annotations

import contextlib
import math
import os
import re
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_UNIT = 1 if sys.platform == "darwin" else 1024  # getrusage counts bytes there, kilobytes elsewhere
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


class Watch:
    """``peak_memory``, measured at most once a second, because it looks at every process."""

    def __init__(self) -> None:
        self._looked, self._most = -math.inf, 0

    def peak(self) -> int:
        """Bytes."""
        now = time.monotonic()
        if now - self._looked >= 1:
            self._looked, self._most = now, max(self._most, peak_memory())
        return self._most


def peak_memory() -> int:
    """Peak resident bytes of this process, plus those of its children.

    Of the children and theirs it is the sum of the peaks of those that live now, or the peak of the largest
    that has ended, whichever is more. What processes share is counted in each.
    """
    own, ended = (
        resource.getrusage(who).ru_maxrss * _UNIT for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return int(own + max(ended, sum(_living())))


def _living(process: int | None = None) -> Iterator[int]:
    """The peaks of the children that live now and of theirs; none where the system (not Linux) is silent."""
    for children in Path(f"/proc/{process or os.getpid()}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            for child in children.read_text(encoding="ascii").split():
                with contextlib.suppress(OSError):
                    status = Path(f"/proc/{child}/status").read_text(encoding="utf-8", errors="replace")
                    if found := _PEAK.search(status):
                        yield int(found[1]) * 1024
                yield from _living(int(child))
