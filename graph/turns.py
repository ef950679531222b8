"""The turns of a conversation: which stand alone, what the QuestionRewriter sees, and views of a result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from quorum.agents.prompting import show_row
from quorum.agents.rewriters import View
from quorum.graph.answer import Answer
from quorum.knowledge.errors import QuorumError
from quorum.knowledge.search.lexical import terms

TURNS = 6
"""Turns that are kept for the QuestionRewriter, the latest ones."""

HEAD_ROWS = 3
"""Rows that it sees of each; of the last turn it sees those that the answer shows."""

LEAST_WORDS = 7
"""A shorter turn may lean on the turn before, whatever it says."""


_BEGINS = re.compile(
    r"(?:in |for |of |from )?(?:how (?:many|much)|which|what|who|when|where|list|find|count)\b"
)
_ELLIPSIS = re.compile(
    r"^(?:how (?:many|much)|which) (?:am|is|are|was|were|do|does|did|has|have|had|can|could|will|would|of)\b"
    r"|\b(?:most|least|highest|lowest|best|worst|more|fewer|less|not)\W*$"
)
_EXISTS = re.compile(r"\b(is|are|was|were) there\b")
_REFERS = """
it its they them their theirs he him his she her hers that those these this same there then than such so
one ones both either neither again instead also too only else other others another rest remaining further
previous before above earlier former latter last result results answer row rows i we you my our your
"""


def stands_alone(turn: str, tables: Iterable[str]) -> bool:
    """True if a turn is plainly understood without those before it, so that no role need be asked.

    That is a question in English, of ``LEAST_WORDS`` words or more, that names a table, refers to nothing
    (``they``, ``instead``, ``the other``) and leaves nothing out (``Which has the most?``). In doubt it is
    False, which costs one call. ``How many orders were returned in May 2024?`` stands alone.
    """
    said = _EXISTS.sub(r"\1", " ".join(turn.casefold().split()))
    words = re.findall(r"[^\W_]+", said)
    if len(words) < LEAST_WORDS or not _BEGINS.match(said) or _ELLIPSIS.search(said):
        return False
    if not set(words).isdisjoint(_REFERS.split()):
        return False
    return not {term for table in tables for term in terms(table)}.isdisjoint(terms(turn))


_NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_CHART = re.compile(
    r"(?:(?:show|draw|plot) )?(?:(?:it|this|that|them|these) )?as (?:an? )?(bar|line|point)s?(?: chart)?"
)
_FIRST = re.compile(r"(?:show )?(?:only|just) the first (\w+)(?: rows?)?")


def plain_view(turn: str) -> View | None:
    """Return the view that a turn asks for in plain English; None where a role has to read it.

    ``Show it as bars``, ``only the first three``.
    """
    said = " ".join(turn.casefold().split()).strip(" .!?")
    if found := _CHART.fullmatch(said):
        return View.model_validate({"chart": found[1]})
    if found := _FIRST.fullmatch(said):
        rows = f"{_NUMBERS.index(found[1]) + 1}" if found[1] in _NUMBERS else found[1]
        return View(first=int(rows)) if re.fullmatch(r"[1-9][0-9]{0,5}", rows) else None
    return None


def _place(name: str, columns: Sequence[str]) -> int | None:
    return next((n for n, each in enumerate(columns) if each.casefold() == name.casefold()), None)


def view_of(answer: Answer, view: View) -> pa.Table | None:
    """Return the rows of a view of an answer's result; None where they need a query.

    That is so if a column is not there, more rows are asked for than there are of a result that was cut off,
    or the cut result would be sorted: its largest rows need not be among those that were kept.
    """
    if not answer.columns:
        return None
    try:
        table = answer.to_arrow()
    except QuorumError:  # its file is gone
        return None
    names = table.column_names
    shown = [_place(name, names) for name in view.columns] or [*range(table.num_columns)]
    by = _place(view.sort_by, names)
    if None in shown or (view.sort_by and by is None):
        return None
    if answer.truncated and (by is not None or (view.first or 0) > table.num_rows):
        return None
    if by is not None:
        import pyarrow.compute as pc

        try:
            order = "descending" if view.descending else "ascending"
            table = table.take(pc.sort_indices(table.column(by), sort_keys=[("", order)]))
        except pa.ArrowNotImplementedError:  # nested values have no order
            return None
    return table.select(shown).slice(0, view.first)


def describe(view: View) -> str:
    """Return a view in words: ``the result before: sorted by spent, the largest first; its first 3 rows``."""
    order = f", the {'largest' if view.descending else 'smallest'} first" if view.sort_by else ""
    parts = [
        f"sorted by {view.sort_by}{order}" if view.sort_by else "",
        f"its first {view.first} rows" if view.first else "",
        f"only {', '.join(view.columns)}" if view.columns else "",
        f"as a {view.chart} chart" if view.chart else "",
    ]
    return f"the result before: {'; '.join(filter(None, parts)) or 'as it is'}"


_NUMBER = re.compile(r"\d(?:[\d.,]*\d)?")


def supported(words: str, shown: str) -> str:
    """Return the sentences whose numbers all stand in what was shown: the others claim what no query did."""
    known = set(map(_number, _NUMBER.findall(shown)))
    sentences = re.split(r"(?<=[.!?])\s+", words.strip())
    return " ".join(each for each in sentences if known.issuperset(map(_number, _NUMBER.findall(each))))


def _number(text: str) -> str:
    plain = text.replace(",", "")
    whole, dot, rest = plain.partition(".")
    return f"{whole.lstrip('0') or '0'}{(dot + rest).rstrip('0').rstrip('.')}"


def conversation(turns: Sequence[Answer]) -> str:
    """Return the turns as the QuestionRewriter sees them: of all but the last the first few rows."""
    return "\n\n".join("\n".join(_lines(n, each, n == len(turns))) for n, each in enumerate(turns, 1))


def _lines(number: int, past: Answer, last: bool) -> Iterator[str]:
    yield f"Turn {number}: {past.turn or past.question}"
    if became := past.became or (past.turn and past.question != past.turn and past.question):
        yield f"It became: {became}"
    if past.words:
        yield f"Reply: {past.words}"
        if not last:
            return
    if past.status != "answered":
        yield f"No answer: {past.missing or past.status}"
    yield from (f"It assumes: {text}" for text in past.assumptions)
    yield from (f"It could also mean: {reading.says}" for reading in past.readings)
    yield from (f"The data shows: {text}" for text in past.doubts)
    if past.sql:
        yield f"Query: {past.sql}"
    if past.columns:
        rows = past.rows if last else past.rows[:HEAD_ROWS]
        cut = ", cut off: there are more" if past.truncated else ""
        yield f"Confidence: {100 * past.confidence:.0f} %; columns: {', '.join(past.columns)}"
        yield from map(show_row, rows)
        yield f"({len(rows)} of {past.row_count} rows{cut})"
