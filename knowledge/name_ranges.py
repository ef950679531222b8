"""Member names of a group as ranges that expand exactly: ``EVENTS_{20201101..20210131}``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from quorum.knowledge.schema_grammar import BARE_NAME, SchemaTextError, quote, read_name

MAX_EXPANSION = 1_000_000
"""Names that one item may stand for when text is read: text is data, and may be hostile."""

_DIGITS = re.compile(r"([0-9]+)")
_ITEM = re.compile(r"([\w$-]*)\{([0-9]+(?:\.\.[0-9]+)?(?:, [0-9]+(?:\.\.[0-9]+)?)*)\}([\w$-]*)")


def fold_names(names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Items and the names each stands for, in expanded order; every name in exactly one item."""
    bare = [name for name in names if BARE_NAME.fullmatch(name)]
    places: Counter[tuple[str, str]] = Counter()
    split = {name: list(_places(name)) for name in bare}
    for found in split.values():
        places.update((prefix, suffix) for prefix, _, suffix in found)
    members: dict[tuple[str, str], list[str]] = {}
    for name in names:
        options = [(prefix, suffix) for prefix, _, suffix in split.get(name, ())]
        best = max(options, key=lambda place: places[place], default=("", name))
        members.setdefault(best, []).append(name)
    folded = []
    for (prefix, suffix), group in members.items():
        if len(group) == 1:
            only = group[0]
            folded.append((only if only in split and BARE_NAME.fullmatch(only) else quote(only), group))
            continue
        digits = [name[len(prefix) : len(name) - len(suffix)] for name in group]
        parts, ordered = _ranges(digits)
        folded.append((f"{prefix}{{{', '.join(parts)}}}{suffix}", [prefix + d + suffix for d in ordered]))
    return folded


def _places(name: str) -> Iterator[tuple[str, str, str]]:
    for found in _DIGITS.finditer(name):
        yield name[: found.start()], found[0], name[found.end() :]


def _day(digits: str) -> date | None:
    if len(digits) != 8:
        return None
    try:
        return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return None


def _follows(first: str, second: str) -> bool:
    if len(first) != len(second):
        return False
    one, other = _day(first), _day(second)
    if one or other:
        return bool(one and other and other - one == timedelta(days=1))
    return int(second) - int(first) == 1


def _ranges(digits: Sequence[str]) -> tuple[list[str], list[str]]:
    ordered = sorted(digits, key=lambda d: (len(d), d))
    runs: list[list[str]] = []
    for value in ordered:
        if runs and _follows(runs[-1][-1], value):
            runs[-1].append(value)
        else:
            runs.append([value])
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]}..{run[-1]}"] if len(run) > 2 else run
    return parts, ordered


def read_item(line: str, at: int) -> tuple[list[str], int]:
    """The names that the item at index ``at`` stands for.

    Raises:
        SchemaTextError: It is no item, or stands for more than a million names.
    """
    found = _ITEM.match(line, at)
    if not found:
        name, at = read_name(line, at)
        return [name], at
    names = [found[1] + value + found[3] for part in found[2].split(", ") for value in _expand(part)]
    return names, found.end()


def _expand(part: str) -> list[str]:
    first, dots, last = part.partition("..")
    if not dots:
        return [first]
    one, other = _day(first), _day(last)
    if one and other:
        return [(one + timedelta(days=n)).strftime("%Y%m%d").zfill(8) for n in range((other - one).days + 1)]
    count = int(last) - int(first) + 1
    if not 0 < count <= MAX_EXPANSION or len(first) != len(last):
        raise SchemaTextError(f"a range of names that cannot be expanded: {part[:60]}")
    return [str(int(first) + n).zfill(len(first)) for n in range(count)]
