"""Evaluations, recorded candidates and their gold on disk, written by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from quorum.evals.folder import MANIFEST, RESULTS
from quorum.evals.records import Linking, Manifest, PlannedQuestion, Record
from quorum.evals.reports.evaluations import Opened, open_evaluations
from quorum.graph.options import RunOptions

EX = {"name": "ex", "title": "EX", "meaning": "The result is the gold's."}
F1 = {"name": "soft_f1", "title": "Soft F1", "meaning": "Cells in common."}

PASSING = ("usage", "course", "ended", "resumed", "discarded")
"""Fields of a record that tell how it came about: times, processes, and what was spent, in which a call that
was under way when the process was killed may stand twice. All others are the result."""


def differing(one: Mapping[str, Record], other: Mapping[str, Record]) -> dict[str, tuple[str, ...]]:
    """By id, the fields but ``PASSING`` that differ; the ``id`` of a question that only one of both has."""
    found: dict[str, tuple[str, ...]] = dict.fromkeys(one.keys() ^ other.keys(), ("id",))
    for id in one.keys() & other.keys():
        left, right = asdict(one[id]), asdict(other[id])
        if names := tuple(name for name in left if name not in PASSING and left[name] != right[name]):
            found[id] = names
    return found


def asked(id: str, **values: Any) -> PlannedQuestion:
    """A question asked for, of database ``shop``."""
    usual = {"database": "shop", "dialect": "sqlite", "difficulty": "", "external_knowledge": False}
    return PlannedQuestion(id, **(usual | values))


def manifest(questions: Sequence[PlannedQuestion], **values: Any) -> Manifest:
    usual: dict[str, Any] = {
        "suite": "shops",
        "rules": "the rules of shops",
        "metrics": (EX,),
        "options": RunOptions(models=["openai:m"]).as_dict(),
        "version": "1.0",
        "started": "2026-01-01T12:00:00.000+00:00",
    }
    return Manifest(asked=tuple(questions), **(usual | values))


def record(id: str, **values: Any) -> Record:
    """A right answer; ``match=False`` makes it a wrong one."""
    usual: dict[str, Any] = {
        "question": f"What is {id}?",
        "database": "shop",
        "dialect": "sqlite",
        "difficulty": "",
        "external_knowledge": False,
        "status": "answered",
        "sql": "SELECT 1",
        "rows": 3,
        "executes": True,
        "valid": True,
        "match": True,
        "confidence": 0.5,
        "usage": usage(),
        "run": f"runs/{id}",
        "ended": "2026-01-01T12:00:10.000+00:00",
    }
    given = usual | values
    given.setdefault("metrics", {"ex": None if given["match"] is None else float(given["match"])})
    return Record(id=id, **given)


def unanswered(id: str, error: str, **values: Any) -> Record:
    """A question without an answer."""
    usual = {"status": "failed", "sql": "", "rows": None, "executes": None, "valid": None, "match": None}
    return record(id, **(usual | {"error": error, "usage": {}, "metrics": {}, "confidence": 0.0} | values))


def usage(**values: Any) -> dict[str, Any]:
    """A ledger."""
    usual = {
        "model_calls": 2, "input_tokens": 1000, "output_tokens": 50, "cached_tokens": 0, "usd": 0.01,
        "queries": 1, "bytes": 64, "query_seconds": 0.5, "estimated_calls": 0, "seconds": 4.0,
    }  # fmt: skip
    return usual | values


def linking(tables: float, columns: float | None) -> Linking:
    """Recalls as given; everything that is used is right."""
    return Linking(tables, 1.0, columns, 1.0)


def write(folder: Path, made: Manifest, records: Sequence[Record]) -> Path:
    """The folder of an evaluation."""
    folder.mkdir(parents=True)
    (folder / MANIFEST).write_text(json.dumps(asdict(made)), encoding="utf-8")
    lines = [json.dumps(asdict(each)) + "\n" for each in records]
    (folder / RESULTS).write_text("".join(lines), encoding="utf-8")
    return folder


def opened(
    folder: Path, records: Sequence[Record], questions: Sequence[PlannedQuestion] | None = None, **values: Any
) -> Opened:
    """An evaluation written and read again; it asks for the records' questions if none are given.

    Args:
        values: Of the manifest.
    """
    if questions is None:
        questions = [asked(it.id, database=it.database, difficulty=it.difficulty) for it in records]
    (found,) = open_evaluations([write(folder, manifest(questions, **values), records)])
    return found


Result = int | str | None
"""A number in the column ``n``; "" for a result without rows; None for a candidate that failed."""


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
