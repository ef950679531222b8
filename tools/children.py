"""The environment of child processes: no key, no token, no home."""

from __future__ import annotations

import os
from pathlib import Path

import quorum

ROOT = Path(str(quorum.__file__)).resolve().parent.parent
"""Where the package lies: nothing else may become importable in a child."""
INHERITED = (
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "SYSTEMROOT",
    "PYTHONHOME",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
)
"""The only environment variables that a child gets: no key, no token, no home."""


def environment() -> dict[str, str]:
    """Return the environment variables of a child."""
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    # one malloc arena: each more reserves address space, which the memory limit counts
    ours = {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"}
    return kept | ours
