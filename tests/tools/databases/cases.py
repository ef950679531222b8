"""Cases as data: lines of ``cases/NAME.txt``, divided at `` | ``. ``⏎``, ``␀``, ``∅`` stand for odd texts."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "cases"
ODD = {"⏎": "\n", "␀": "\0", "∅": ""}


def cases(name: str, width: int) -> list[tuple[str, ...]]:
    """Return the cases of a file as tuples of that width; parts that are left out are empty."""
    lines = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if line and not line.startswith("#")]
    assert rows
    for mark, text in ODD.items():
        rows = [[part.removesuffix(" |").replace(mark, text) for part in row] for row in rows]
    return [(*row, *[""] * (width - len(row))) for row in rows]
