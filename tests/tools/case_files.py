"""Cases as data: lines of text files, their fields separated by tabs; ⏎ is the end of a line in one."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "sql_cases"


def cases(name: str, kind: str = "") -> list[list[str]]:
    """Return the fields of each line of ``sql_cases/NAME.txt``; with ``kind``, of its lines, what follows."""
    lines = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    rows = [[field.replace("⏎", "\n") for field in line.split("\t")] for line in lines]
    found = [row[1:] for row in rows if row[0] == kind] if kind else rows
    assert found, f"no cases of {name} {kind}"
    return found
