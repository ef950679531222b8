"""Garbage is collected rarely while a run is open, and as before when the last one has ended."""

from __future__ import annotations

import gc

import pytest

from quorum.tools import garbage
from quorum.tools.garbage import YOUNG, rare_collections


def test_the_last_run_restores_what_the_first_one_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "_open", 0)  # whatever another test of this process has left open
    gc.unfreeze()
    before = gc.get_threshold()
    first, second = rare_collections(), rare_collections()
    with first:
        assert gc.get_threshold() == (max(YOUNG, before[0]), *before[1:])
        second.__enter__()
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] >= YOUNG, "the second run is open"
    second.__exit__(None, None, None)
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)
