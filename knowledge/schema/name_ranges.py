"""Member names of a group as ranges that expand exactly: ``EVENTS_{20201101..20210131}``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta

from quorum.knowledge.naming import write_name
from quorum.knowledge.schema.grammar import BARE_NAME

_DIGITS = re.compile(r"([0-9]+)")
ITEM = re.compile(r"""(["`]?)([\w$-]*)\{([0-9]+(?:\.\.[0-9]+)?(?:, [0-9]+(?:\.\.[0-9]+)?)*)\}([\w$-]*)\1""")


def fold_names(names: Sequence[str], dialect: str = "") -> list[tuple[str, list[str]]]:
    """Items and the names each stands for, in expanded order; every name in exactly one item.

    Items stand in the dialect's quotes where one of their names must.
    """
    around = {
        name: [(name[: found.start()], name[found.end() :]) for found in _DIGITS.finditer(name)]
        for name in names
        if BARE_NAME.fullmatch(name)
    }
    common = Counter(place for places in around.values() for place in places)
    members: dict[tuple[str, str] | str, list[str]] = {}
    for name in names:
        best = max(around.get(name, ()), key=lambda place: common[place], default=None)
        members.setdefault(best or name, []).append(name)
    folded = []
    for place, group in members.items():
        if isinstance(place, str) or len(group) == 1:
            folded += [(_alone(name, dialect), [name]) for name in group]
            continue
        prefix, suffix = place
        digits = (name[len(prefix) : len(name) - len(suffix)] for name in group)
        ordered = sorted(digits, key=lambda d: (len(d), d))
        item = f"{prefix}{{{', '.join(_ranges(ordered))}}}{suffix}"
        written = (write_name(name, dialect) for name in group)
        mark = next((text[0] for name, text in zip(group, written, strict=True) if text != name), "")
        folded.append((f"{mark}{item}{mark}", [f"{prefix}{d}{suffix}" for d in ordered]))
    return folded


def _alone(name: str, dialect: str) -> str:
    """A name as an item of its own; one that looks like a range has its brace escaped."""
    item = write_name(name, dialect)
    return item.replace("{", r"\u007b") if ITEM.fullmatch(item) else item


def _ranges(ordered: Sequence[str]) -> list[str]:
    runs: list[list[str]] = []
    for value in ordered:
        if runs and _follows(runs[-1][-1], value):
            runs[-1].append(value)
        else:
            runs.append([value])
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]}..{run[-1]}"] if len(run) > 2 else run
    return parts


def _follows(first: str, second: str) -> bool:
    if len(first) != len(second):
        return False
    one, other = day_of(first), day_of(second)
    if one or other:
        return bool(one and other and other - one == timedelta(days=1))
    return int(second) - int(first) == 1


def day_of(digits: str) -> date | None:
    if len(digits) != 8:
        return None
    try:
        return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return None
