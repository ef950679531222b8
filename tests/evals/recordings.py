"""Recorded candidates and their gold, made by hand: a result is one number in the column ``n``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

Result = int | str | None
"""A number; "" for a result without rows; None for a candidate that failed."""


def write_candidates(
    folder: Path, model: str, answers: Mapping[str, Sequence[Result]], **finals: Result
) -> Path:
    """Candidates 0, 1, … of each question, and the pipeline's choice for those in ``finals``."""
    for question, results in answers.items():
        place = folder / model / question
        place.mkdir(parents=True)
        named = dict(enumerate(results)) | ({"final": finals[question]} if question in finals else {})
        for name, result in named.items():
            (place / f"{name}.sql").write_text(f"SELECT {result or 0} AS n{name}")
            if result is not None:
                (place / f"{name}.csv").write_text(f"n\n{result}\n" if result != "" else "n\n")
    return folder


def write_gold(folder: Path, **golds: int) -> Path:
    """The gold of an edition: one number a question."""
    (folder / "exec_result").mkdir(parents=True)
    for question, number in golds.items():
        (folder / "exec_result" / f"{question}.csv").write_text(f"n\n{number}\n")
    lines = [
        json.dumps({"instance_id": question, "condition_cols": [], "ignore_order": True})
        for question in golds
    ]
    (folder / "spider2snow_eval.jsonl").write_text("\n".join(lines) + "\n")
    return folder
