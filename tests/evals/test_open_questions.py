"""The open questions of our own: every reading's gold runs, and no two of a question show the same."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from quorum.evals.suites.ambrosia import load
from tests.benchmarks.write_open_questions import QUESTIONS, write


def test_twenty_questions_have_readings_that_differ(tmp_path: Path) -> None:
    folder = write(tmp_path)
    questions = [json.loads(line) for line in QUESTIONS.read_text().splitlines()]
    assert len(questions) == 20
    assert len({question["kind"] for question in questions}) == 8
    with closing(sqlite3.connect(folder / "databases" / "shop.sqlite")) as shop:
        for question in questions:
            results = {str(sorted(map(str, shop.execute(sql)))) for sql in question["gold"]}
            assert len(results) == len(question["gold"]) == 2, question["id"]
    assert len(load(folder).questions) == 20
