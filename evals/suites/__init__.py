"""Benchmarks as they are published: one loader per layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from quorum.knowledge.errors import ConfigurationError

if TYPE_CHECKING:
    from quorum.evals.questions import Loader, Suite

SUITES = {
    "spider1": "quorum.evals.suites.spider1:load",
    "spider1-test": "quorum.evals.suites.spider1:load_test",
    "bird": "quorum.evals.suites.bird:load",
    "spider2-lite": "quorum.evals.suites.spider2:load_lite",
    "spider2-local": "quorum.evals.suites.spider2:load_local",
    "spider2-snow": "quorum.evals.suites.spider2:load_snow",
    "defog": "quorum.evals.suites.defog:load",
    "ambrosia": "quorum.evals.suites.ambrosia:load",
}
"""Name to ``module:function``; a module is imported when its suite is asked for."""


def load_suite(name: str, folder: Path) -> Suite:
    """Read a benchmark from its folder.

    Raises:
        ConfigurationError: There is no such suite, or the folder does not hold it; the message says what is
            missing and where to get it.
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


def part_of(
    suite: Suite,
    *,
    ids: Iterable[str] | None = None,
    limit: int | None = None,
    sample: Mapping[str, int] | None = None,
) -> Suite:
    """Return the suite for a run over a part of its questions: ``missing`` says what those lack alone.

    The questions that the folder leaves out concern only runs over all of them. For files of own questions
    and suites on servers ``missing`` stays as it is.

    Args:
        ids, limit, sample: As ``Suite.chosen``. A shard is no part: together shards are the whole.

    Raises:
        ConfigurationError: An id or a group is not in the suite, or nothing is left.
    """
    from quorum.evals.suites.spider2 import EDITIONS, lacking

    asked = suite.chosen(ids=ids, limit=limit, sample=sample)
    if len(asked) == len(suite.questions):
        return suite
    if suite.name in EDITIONS:
        return replace(suite, missing=lacking(suite, asked))
    return replace(suite, missing=()) if suite.name in SUITES else suite
