"""What a suite lacks, as far as it concerns the questions that are asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from quorum.evals.questions import Suite
from quorum.evals.suites.spider2 import EDITIONS, lacking

LEFT_OUT_ONLY = ("spider1", "bird", "defog")
"""Suites that tell in ``missing`` of nothing but questions that are left out."""


def part_of(suite: Suite, *, ids: Iterable[str] | None = None, limit: int | None = None) -> Suite:
    """The suite for a run over a part of its questions: ``missing`` says what those lack, and nothing else.

    Which questions the folder leaves out concerns only who asks for all of them. The files of own questions
    and other suites tell what they always do.

    Args:
        ids, limit: As ``Suite.chosen``. A shard is no part: together shards are the whole.

    Raises:
        ConfigurationError: An id is not in the suite, or nothing is left.
    """
    asked = suite.chosen(ids=ids, limit=limit)
    if len(asked) == len(suite.questions):
        return suite
    if suite.name in LEFT_OUT_ONLY:
        return replace(suite, missing=())
    if suite.name in EDITIONS:
        return replace(suite, missing=lacking(suite, asked))
    return suite
