"""Questions of public benchmarks on SQLite databases, for whole runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Asked:
    """A question, the URL of its database, and SQL that answers it."""

    question: str
    database: str
    gold: str


def spider1(shared: Path, *numbers: int) -> list[Asked]:
    """Some of Spider's questions, by their place in the file."""
    folder = shared / "data" / "spider1"
    items = json.loads((folder / "dev.json").read_text(encoding="utf-8"))
    return [
        Asked(
            item["question"],
            f"sqlite:///{folder}/database/{item['db_id']}/{item['db_id']}.sqlite",
            item["query"],
        )
        for item in (items[number] for number in numbers)
    ]


def spider2_local(shared: Path, count: int) -> list[Asked]:
    """The first of Spider 2.0's local questions for which SQL is published."""
    folder = shared / "data" / "spider2-local"
    databases = {path.stem.casefold(): path for path in (folder / "resource" / "databases").glob("*.sqlite")}
    asked = []
    for line in (folder / "spider2-lite.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        gold = folder / "evaluation_suite" / "gold" / "sql" / f"{entry['instance_id']}.sql"
        if gold.is_file():
            database = f"sqlite:///{databases[entry['db'].casefold()]}"
            asked.append(Asked(entry["question"], database, gold.read_text(encoding="utf-8")))
    return asked[:count]
