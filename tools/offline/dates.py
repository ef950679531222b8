"""Periods in words: which days ``from February to May 2024`` or ``in 1980`` means."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tools.offline.cues import MONTHS

_YEAR = re.compile(r"(1[89]|20)\d\d")
_LATER = (["or", "after"], ["or", "later"], ["and", "after"], ["and", "later"])


@dataclass(frozen=True)
class Period:
    """Tokens ``start`` to ``end`` and the half-open range ``low <= time < high``; empty is open.

    ``low`` and ``high`` are ISO text, as coarse as what was said: ``2024``, ``2024-02`` or a day.
    """

    start: int
    end: int
    low: str
    high: str

    @property
    def years_only(self) -> bool:
        return max(len(self.low), len(self.high)) == 4

    def covers(self, shard: str) -> bool:
        """Whether a shard, named by its year, month or day, may hold part of the period."""
        match = re.search(r"((?:19|20)\d\d)_?(\d\d)?_?(\d\d)?", shard)
        if not match:
            return False
        first = "-".join(part for part in match.groups() if part)
        return (not self.low or following(first) > self.low) and (not self.high or first < self.high)

    def conditions(self, column: str, *, year: bool, numeric: bool) -> list[str]:
        """The period as conditions on a column of years, or of dates (ISO text or a date type)."""

        def say(bound: str) -> str:
            if year:
                return bound[:4] if numeric else f"'{bound[:4]}'"
            return f"'{bound + '-01-01'[: 10 - len(bound)] if len(bound) == 4 else (bound + '-01')[:10]}'"

        if year and self.low and self.high == following(self.low):
            return [f"{column} = {say(self.low)}"]
        bounds = [f"{column} >= {say(self.low)}"] if self.low else []
        return bounds + ([f"{column} < {say(self.high)}"] if self.high else [])


def following(bound: str) -> str:
    """The year, month or day right after the one that ``bound`` names; days end their month at 31."""
    year, month, day = (*map(int, bound.split("-")), 0, 0)[:3]
    if day and day < 31:
        return f"{year}-{month:02d}-{day + 1:02d}"
    if month:
        return f"{year + month // 12}-{month % 12 + 1:02d}" + ("-01" if day else "")
    return str(year + 1)


def find_period(words: list[str]) -> Period | None:
    """The first period that the words tell, or None; a lone year counts only after a word such as ``in``."""
    points = _points(words)
    if not points:
        return None
    start, end, low, high = points[0]
    lead = words[max(0, start - 1)]
    if len(points) > 1 and points[1][0] - end == 1 and words[start - 1] != "both":
        joint = words[end]
        if (
            joint in ("to", "until", "-")
            or lead in ("between", "from")
            or (joint == "or" and points[1][2] == high)
        ):
            end, high = points[1][1], points[1][3]
    begins = start - 1
    if lead == "after" or words[max(0, start - 2) : start] == ["later", "than"]:
        return Period(begins, end, high, "")
    if lead in ("before", "until") or words[max(0, start - 2) : start] in (
        ["prior", "to"],
        ["earlier", "than"],
    ):
        return Period(begins, end, "", low)
    if words[end : end + 2] in _LATER or (lead in ("since", "from") and high == following(low)):
        return Period(start, end + 2 * (words[end : end + 2] in _LATER), low, "")
    lone = len(low) == 4 and lead not in (
        "in",
        "during",
        "of",
        "year",
        "years",
        "on",
        "for",
        "between",
        "from",
    )
    return None if lone else Period(begins if lead in ("from", "between") else start, end, low, high)


def _points(words: list[str]) -> list[tuple[int, int, str, str]]:
    """Moments as ``(start, end, first, after)``; a month without its year borrows the next year said."""
    years = [place for place, word in enumerate(words) if _YEAR.fullmatch(word)]
    points, taken = [], set()
    for place, word in enumerate(words):
        year = next((y for y in years if y > place), None)
        if re.fullmatch(r"\d{4}-\d\d-\d\d", word):
            points.append((place, place + 1, word, following(word)))
        elif year is not None and (word in MONTHS or re.fullmatch(r"q[1-4]", word)):
            month = MONTHS.get(word) or 3 * int(word[1]) - 2
            last = month if word in MONTHS else month + 2
            end = year + 1 if not {*words[place + 1 : year]} - {"of", ","} else place + 1
            points.append((place, end, f"{words[year]}-{month:02d}", following(f"{words[year]}-{last:02d}")))
            taken.add(year)
    points += [(y, y + 1, words[y], following(words[y])) for y in years if y not in taken]
    return sorted(points)
