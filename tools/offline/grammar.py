"""A small grammar of English questions: count, sum, average, the top of a list, groups, filters, a period."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cache

from quorum.tools.offline.schema import ShownColumn, ShownTable

_WORD = re.compile(r"""(?<!\w)(["'“‘])([^"“”]+?)["'”’](?!\w)|\d{4}-\d\d(?:-\d\d)?|\d+|\w+""")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = rf"(?i)\b({'|'.join(_MONTHS)})[a-z]*"
_DIGITS = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_FUNCTIONS = {
    "average": "AVG",
    "mean": "AVG",
    "total": "SUM",
    "sum": "SUM",
    "maximum": "MAX",
    "minimum": "MIN",
}
_EXTREMES = ("most", "highest", "largest", "greatest", "top", "least", "lowest", "smallest", "fewest")
_GROUPING = ("each", "every", "per", "by")
_SYNONYMS = {"earn": "amount", "revenu": "amount", "sal": "amount"}
_WORDS = """a an the of in on at to for from by with and or is are was were be do does did has have had that
who what which how many much number count list show give find there their its all each every per we you"""
_STOP = frozenset(_WORDS.split())
_SILENT = {*_STOP, *_FUNCTIONS, *_EXTREMES}
"""Words that name nothing."""
_POINT = re.compile("(?:19|20)[0-9]{2}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12][0-9]|3[01]))?)?")
_FOUR = 4  # words that name something together, at most
_GUESS = 0.1  # how well a name or a value fits that the schema does not show


@cache
def stems(name: str) -> tuple[str, ...]:
    """Return the crude stems of a name or a word: ``CustomerNames`` and ``customer_name`` have the same."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_|\W", " ", name).lower().split()
    cut = (re.sub("(?<=..)ies$", "y", part) for part in parts)
    cut = (re.sub("(?<=ss|sh|ch|.x)es$|(?<=[^sui])s$", "", part) for part in cut)
    cut = (re.sub("(?<=...)(?:ing|ed|e)$", "", part) for part in cut)
    return tuple(_SYNONYMS.get(part, part) for part in cut)


@dataclass(frozen=True)
class Hit:
    """The meaning of some words of a question: a table, one of its columns, or a ``value`` of that column."""

    at: int
    table: ShownTable
    column: ShownColumn | None = None
    value: str = ""
    score: float = 1.0


@dataclass
class ParsedQuestion:
    """A question as the grammar reads it.

    Attributes:
        hits: What its words name, in their order.
        unread: True if most words that could name something name nothing.
        seed: Of several tables that are equally near, it chooses the one that is meant.
        ignored: Words that could name something and name nothing that is in reach.
    """

    tables: list[ShownTable]
    words: list[str]
    seed: int = 0
    hits: list[Hit] = field(default_factory=list)
    unread: bool = False
    ignored: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        at = 0
        while at < len(self.words):
            width, hit = next(self._named(at), (1, None))
            if hit is not None:
                self.hits.append(hit)
            elif (word := self.words[at]).isalpha() and word.lower() not in _SILENT:
                self.ignored.append(word)
            at += width
        self.unread = all(hit.score == _GUESS for hit in self.hits) or len(self.ignored) > 2 * len(self.hits)
        if self.hits:
            reached, hits = self.paths(self.main), [self._nearest(hit) for hit in self.hits]
            self.hits = [hit for hit in hits if id(hit.table) in reached]
            self.ignored += [self.words[hit.at] for hit in hits if id(hit.table) not in reached]

    @property
    def left_out(self) -> list[str]:
        """Return the words that the query goes without, those too that name what it does not use."""
        query = self.sql() if self.hits else ""
        named = {self.words[hit.at]: (hit.column or hit.table).name for hit in self.hits}
        named |= {word: f"{_FUNCTIONS[word.lower()]}(" for word in self.words if word.lower() in _FUNCTIONS}
        named |= {word: word for word in self.words if word.isdigit()}
        return [*self.ignored, *(word for word, used in named.items() if used not in query)]

    @property
    def main(self) -> ShownTable:
        """Return the table that is asked about: the first one named, else that of the first column."""
        return next((hit.table for hit in self.hits if not hit.column), self.hits[0].table)

    def _named(self, at: int) -> Iterator[tuple[int, Hit]]:
        """Yield the number of words from here that name something, the most first, and their meaning."""
        for width in range(min(_FOUR, len(self.words) - at), 0, -1):
            window = self.words[at : at + width]
            quoted = any(word.startswith("'") for word in window)
            if (width == 1 or not quoted) and (found := self._all(at, " ".join(window))):
                yield width, max(found, key=lambda hit: hit.score)

    def _all(self, at: int, text: str) -> list[Hit]:
        """Return all meanings of the words: names, values in quotes or among the samples, unknown names."""
        quoted = text.startswith("'")
        value, words = text.removeprefix("'"), set(stems(text))
        first = text.split()[0].lower()
        function = first in _FUNCTIONS and self.words[at - 1].lower() not in _FUNCTIONS
        if not quoted and (not words or text.lower() in _STOP or text.isdigit() or function):
            return []
        found = []
        for table in self.tables:
            own = set(stems(re.sub(r"\d", "", table.name)))
            if not quoted and words == own:
                found.append(Hit(at, table, score=1.2))
            for column in table.columns:
                name = set(stems(column.name)) - {"total"}
                if value.casefold() in map(str.casefold, column.samples) and not column.number:
                    found.append(Hit(at, table, column, value, 1.1 if quoted else 0.9))
                if not quoted and name and words - {"total"} in (name, own | name):
                    found.append(Hit(at, table, column, score=1.0))
                elif not quoted and len(words) == 1 and words < name and not words & own:
                    found.append(Hit(at, table, column, score=0.6))
        single = len(text.split()) == 1
        if not found and (quoted or (at > 0 and single and text[0].isupper())):
            return [Hit(at, self.tables[0], _label(self.tables[0]), value, _GUESS)]
        if not found and single and "_" in text:  # a column, taken as written
            column = ShownColumn(text, "NUMERIC", key=False, to="", samples=[])
            return [Hit(at, self.tables[0], column, score=_GUESS)]
        return found

    def _nearest(self, hit: Hit) -> Hit:
        """Return the hit in the table that is meant: the main one, or the nearest to it by keys."""
        if not hit.column:
            return hit
        text = hit.value or " ".join(self.words[hit.at : hit.at + _FOUR])
        if hit.score == _GUESS:
            return replace(hit, table=self.main, column=_label(self.main) if hit.value else hit.column)
        paths = self.paths(self.main)
        alike = [
            each
            for width in range(_FOUR, 0, -1)
            for each in self._all(hit.at, f"'{text}" if hit.value else " ".join(text.split()[:width]))
            if each.score >= min(hit.score, 1.0) and each.column and id(each.table) in paths
        ]
        least = min((len(paths[id(each.table)]) for each in alike), default=0)
        near = {id(each.table): each for each in reversed(alike) if len(paths[id(each.table)]) == least}
        return list(reversed(near.values()))[self.seed % len(near)] if near else hit

    def paths(self, start: ShownTable) -> dict[int, list[tuple[ShownTable, str]]]:
        """Return the shortest chain of tables from ``start``, with conditions, by id of the last table."""
        paths: dict[int, list[tuple[ShownTable, str]]] = {}
        queue: list[tuple[ShownTable, list[tuple[ShownTable, str]]]] = [(start, [])]
        for table, path in queue:
            if id(table) not in paths:
                paths[id(table)] = path
                queue += [(other, [*path, (other, on)]) for other, on in self._joined(table)]
        return paths

    def _joined(self, table: ShownTable) -> Iterator[tuple[ShownTable, str]]:
        for one, other in (
            (a, b) for a in self.tables for b in self.tables if table in (a, b) and a is not b
        ):
            for column in one.columns:
                far, _, key = column.to.rpartition(".")
                if far in other.members:
                    on = f"{one.name}.{column.name} = {other.name}.{key}"
                    yield (other if table is one else one), on

    def sql(self) -> str:
        """Return the query, one clause a line."""
        return _Query(self).text()


def read(tables: list[ShownTable], question: str, seed: int = 0) -> ParsedQuestion:
    """Read a question by the grammar."""
    question = re.sub(r"(?i)(\bthe )?(\btotal )?\bnumbers? of\b|\bcount( of)?\b", "how many", question)
    day = "(?: ([0-9]{1,2})(?:st|nd|rd|th)?,?)?"
    question = re.sub(rf"{_MONTH}{day} (?:of )?([0-9]{{4}})\b", _iso, question)
    question = re.sub(rf"{_MONTH}{day}(?= (?:to|and) ([0-9]{{4}})-)", _iso, question)
    words = [f"'{found[2]}" if found[1] else found[0] for found in _WORD.finditer(question)]
    digits = {word: str(number) for number, word in enumerate(_DIGITS, 2)}
    return ParsedQuestion(tables, [digits.get(word.lower(), word) for word in words], seed)


def _iso(match: re.Match[str]) -> str:
    day = f"-{match[2]:0>2}" if match[2] else ""
    return f"{match[3]}-{_MONTHS.index(match[1].lower()) + 1:02d}{day}"


class _Query:
    """The clauses of a question's query."""

    def __init__(self, reading: ParsedQuestion) -> None:
        self.reading, self.words = reading, [word.lower() for word in reading.words]
        self.used: list[ShownTable] = [reading.main]
        self.items, self.groups, self.where = list[str](), list[str](), list[str]()
        self.order = self.limit = ""
        self.listed: list[tuple[ShownTable, ShownColumn]] = []
        self.measured: tuple[ShownTable, ShownColumn] | None = None
        top = next((word for word in self.words if word in _EXTREMES), "")
        for hit in reading.hits:
            self._add(hit, grouping=not top)
        aggregates = any("(" in item for item in self.items)
        if not top and "how many" in " ".join(self.words) and not aggregates:
            self.items.append("COUNT(*) AS count")
        elif top and not self.items:
            self._rank("" if top in ("least", "lowest", "smallest", "fewest") else " DESC")
        elif not aggregates and self.groups and self.measured:
            self.items.append(f"SUM({self._ref(*self.measured)}) AS sum")
        listed = self.listed or [(reading.main, _label(reading.main))]
        self.items = self.items or [self._ref(*each) for each in listed]
        tables = ([self.measured[0]] if self.measured else []) + self.used
        dates = [(table, column) for table in tables for column in table.columns if column.dated]
        if (period := _period(self.words)) and dates:
            self.where += [f"{self._ref(*dates[0])} {sign} '{point}'" for sign, point in period]

    def _ref(self, table: ShownTable, column: ShownColumn) -> str:
        self.used.append(table)
        return f"{table.name}.{column.name}"

    def _comes_after(self, at: int, *wanted: str) -> bool:
        """Return True if one of the words comes before this one; articles and numbers may be between them."""
        words = self.words
        while at > 0 and words[at - 1] in ("the", "of", "a", "different", "all"):
            at -= 1
        placed = at > 1 and words[at - 1] == "by" and words[at - 2].endswith(("ed", "en"))  # "placed by"
        return at > 0 and words[at - 1] in wanted and not placed

    def _add(self, hit: Hit, *, grouping: bool) -> None:
        """Add the meaning of some words to its clause."""
        table, column = hit.table, hit.column
        if column and hit.value:
            literal = hit.value.lower().replace("'", "''")
            self.where.append(f"LOWER({self._ref(table, column)}) = '{literal}'")
        elif grouping and self._comes_after(hit.at, *_GROUPING):
            label = column or _label(table)
            keys = [each for each in table.columns if each.key and not column]
            self.groups += dict.fromkeys(self._ref(table, each) for each in [*keys[:1], label])
            self.items.append(self._ref(table, label))
        elif column and column.number and self._comes_after(hit.at, *_FUNCTIONS):
            function = _FUNCTIONS[next(word for word in self.words[hit.at - 1 :: -1] if word in _FUNCTIONS)]
            self.items.append(f"{function}({self._ref(table, column)}) AS {function.lower()}")
        elif column:
            self.listed.append((table, column))
            self.measured = (table, column) if column.number else self.measured

    def _rank(self, direction: str) -> None:
        """Make it the top of a list, by a measure or by a count."""
        main = self.reading.main
        self.limit = next((word for word in self.words if word.isdigit() and len(word) < _FOUR), "1")
        self.items.append(self._ref(main, _label(main)))
        self.order = self._ref(*self.measured) if self.measured else "COUNT(*)"
        if self.measured is None or self.measured[0] is not main:
            self.used += [hit.table for hit in self.reading.hits]
            keys = [column for column in main.columns if column.key]
            self.groups = list(dict.fromkeys([*(self._ref(main, key) for key in keys[:1]), *self.items]))
            self.order = f"SUM({self.order})" if self.measured else self.order
        self.order += direction

    def text(self) -> str:
        """Return the query. Its tables are joined along the shortest paths of keys, if they are in reach."""
        paths = self.reading.paths(self.used[0])
        joins = {id(table): (table, on) for each in self.used for table, on in paths.get(id(each), [])}
        joined = (f"JOIN {table.source} ON {on}" for table, on in joins.values())
        clauses = {
            "SELECT": ", ".join(dict.fromkeys(self.items)),
            "FROM": "\n".join([self.used[0].source, *joined]),
            "WHERE": " AND ".join(dict.fromkeys(self.where)),
            "GROUP BY": ", ".join(self.groups),
            "ORDER BY": self.order,
            "LIMIT": self.limit,
        }
        return "\n".join(f"{keyword} {text}" for keyword, text in clauses.items() if text)


def _label(table: ShownTable) -> ShownColumn:
    """Return the column by which people know a row: a name or a title, else the key, else the first."""
    named = [column for column in table.columns if {"nam", "titl"} & {*stems(column.name)}]
    return [*named, *(column for column in table.columns if column.key), *table.columns][0]


def _period(words: list[str]) -> list[tuple[str, str]]:
    """Return ``in 2024``, ``from 2024-02 to 2024-05``, ``before``, ``after`` as comparisons with days."""
    places = [at for at, word in enumerate(words) if _POINT.fullmatch(word)]
    if not places or places[0] == 0:
        return []
    low, high = words[places[0]], _following(words[places[-1]])
    lead = words[places[0] - 1]
    first = f"{low}{'-01-01'[len(low) - _FOUR :]}"
    last = f"{high}{'-01-01'[len(high) - _FOUR :]}"
    if lead == "before":
        return [("<", first)]
    return [(">=", last)] if lead == "after" else [(">=", first), ("<", last)]


def _following(point: str) -> str:
    """Return the year, month or day after the one that ``point`` names."""
    if day := point[8:]:
        return (date(int(point[:4]), int(point[5:7]), 1) + timedelta(days=int(day))).isoformat()
    year, month = int(point[:4]), int(point[5:] or 12)
    return f"{year + month // 12}-{month % 12 + 1:02d}"[: len(point)]
