"""Cases as data: a line each, its fields divided by tabs or `` | ``; ``⏎``, ``␀``, ``∅`` are odd texts."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
ODD = {"⏎": "\n", "␀": "\0", "∅": ""}


def cases(name: str, width: int = 1, *, kind: str = "") -> list[list[str]]:
    """Return the fields of the lines of ``NAME.txt``, but of comments.

    Args:
        width: How many they are; a line may leave out some, the last may hold a `` | ``.
        kind: Only of lines with this first field, which is left out.
    """
    lines = (HERE / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    rows = [
        line.split("\t") if "\t" in line else line.split(" | ", width - 1)
        for line in lines
        if line and line[0] != "#"
    ]
    for mark, text in ODD.items():
        rows = [[field.replace(mark, text) for field in row] for row in rows]
    found = [row[1:] for row in rows if row[0] == kind] if kind else rows
    assert found, f"no cases of {name} {kind}"
    return [row + [""] * (width - bool(kind) - len(row)) for row in found]
