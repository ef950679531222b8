"""Benchmarks as they are published: one loader per layout."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from quorum.knowledge.errors import ConfigurationError

if TYPE_CHECKING:
    from quorum.evals.questions import Loader, Suite

SUITES = {
    "spider1": "evals.suites.spider1:load",
    "bird": "quorum.evals.suites.bird:load",
    "spider2-lite": "evals.suites.spider2:load_lite",
    "spider2-local": "evals.suites.spider2:load_local",
    "spider2-snow": "evals.suites.spider2:load_snow",
    "defog": "quorum.evals.suites.defog:load",
}
"""Name to ``module:function``; a module is imported when its suite is asked for."""


def load_suite(name: str, folder: Path) -> Suite:
    """Read a benchmark from its folder.

    Raises:
        ConfigurationError: There is no such suite, or the folder does not hold it; the message says what
            is missing and where it is had.
    """
    if name not in SUITES:
        raise ConfigurationError(
            f"There is no suite {name!r}.",
            hint=f"Known are {', '.join(SUITES)}; or name a .jsonl or .csv file with your own questions.",
        )
    if not folder.is_dir():
        raise ConfigurationError(
            f"There is no folder {folder}.", hint="Name the benchmark's folder with --data."
        )
    module, _, attribute = SUITES[name].partition(":")
    load: Loader = getattr(import_module(module), attribute)
    return load(folder)
