"""Periods in words: which days ``from February to May 2024`` or ``in 1980`` means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta

from tools.offline.cues import MONTHS
from tools.offline.lexicon import word_set

_YEAR = re.compile(r"(1[89]|20)\d\d")
_LEADS = word_set("in during of year years on for between from")
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
        match = re.search(r"((?:19|20)\d\d)_?(0[1-9]|1[0-2])?_?(\d\d)?", shard)
        first = "-".join(part for part in match.groups() if part) if match else ""
        if not first or (len(first) == 10 and not _is_day(first)):
            return False
        return (not self.low or following(first) > self.low) and (not self.high or first < self.high)

    def conditions(self, column: str, *, year: bool, numeric: bool) -> list[str]:
        """The period as conditions on a column of years, or of dates (ISO text or a date type)."""

        def say(bound: str) -> str:
            if year:
                return bound[:4] if numeric else f"'{bound[:4]}'"
            return f"'{bound + '-01-01'[len(bound) - 4 :]}'"

        if year and self.low and self.high == following(self.low):
            return [f"{column} = {say(self.low)}"]
        bounds = [f"{column} >= {say(self.low)}"] if self.low else []
        return bounds + ([f"{column} < {say(self.high)}"] if self.high else [])


def following(bound: str) -> str:
    """The year, month or day right after the one that ``bound`` names.

    Raises:
        ValueError: There is no such day.
    """
    if len(bound) == 10:
        return str(date.fromisoformat(bound) + timedelta(days=1))
    year, month = int(bound[:4]), int(bound[5:] or 0)
    return f"{year + month // 12}-{month % 12 + 1:02d}" if month else str(year + 1)


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


def find_period(words: list[str]) -> Period | None:
    """The first period that the words tell, or None; a lone year counts only after a word such as ``in``."""
    points = _points(words)
    if not points:
        return None
    start, end, low, high = points[0]
    lead, two = words[start - 1] if start else "", words[max(0, start - 2) : start]
    if len(points) > 1 and points[1][0] == end + 1 and lead != "both":
        joint, (_, last, then, until) = words[end], points[1]
        if joint in ("to", "until") or lead in ("between", "from") or (joint == "or" and then == high):
            end, high = last, until
    later = words[end : end + 2] in _LATER
    if lead == "after" or two == ["later", "than"]:
        return Period(start - 1, end, high, "")
    if lead in ("before", "until") or two in (["prior", "to"], ["earlier", "than"]):
        return Period(start - 1, end, "", low)
    if later or (lead in ("since", "from") and high == following(low)):
        return Period(start, end + 2 * later, low, "")
    if len(low) == 4 and lead not in _LEADS:
        return None
    return Period(start - (lead in ("from", "between")), end, low, high)


def _points(words: list[str]) -> list[tuple[int, int, str, str]]:
    """Moments as ``(start, end, first, after)``; a month without its year borrows the next year said."""
    years = [place for place, word in enumerate(words) if _YEAR.fullmatch(word)]
    points, taken = [], set()
    for place, word in enumerate(words):
        year = next((y for y in years if y > place), None)
        if _is_day(word):
            points.append((place, place + 1, word, following(word)))
        elif year is not None and (word in MONTHS or re.fullmatch(r"q[1-4]", word)):
            month = MONTHS.get(word) or 3 * int(word[1]) - 2
            last = month if word in MONTHS else month + 2
            end = year + 1 if not {*words[place + 1 : year]} - {"of", ","} else place + 1
            points.append((place, end, f"{words[year]}-{month:02d}", following(f"{words[year]}-{last:02d}")))
            taken.add(year)
    points += [(y, y + 1, words[y], following(words[y])) for y in years if y not in taken]
    return sorted(points)
