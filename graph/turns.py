"""The turns of a conversation: which stand alone, what the QuestionRewriter sees, and views of a result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypedDict

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

MAX_SQL = 3_000
"""Characters of each query that it sees."""

LEAST_WORDS = 7
"""A shorter turn may lean on the turn before, whatever it says."""


class Past(TypedDict):
    """A turn that was answered; ``remarks`` are what the answer says beside its rows."""

    turn: str
    became: str
    sql: str
    columns: list[str]
    rows: list[str]
    row_count: int
    truncated: bool
    remarks: list[str]


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
_SORT = re.compile(r"(?:sort|order)(?: (?:it|this|them|these))? by (.+?)(?:,? (ascending|descending))?")


def plain_view(turn: str, columns: Sequence[str]) -> View | None:
    """Return the view that a turn asks for in plain English; None where a role has to read it.

    ``Show it as bars``, ``only the first three``, ``sort by spent, descending``.
    """
    said = " ".join(turn.casefold().split()).strip(" .!?")
    if found := _CHART.fullmatch(said):
        return View.model_validate({"chart": found[1]})
    if found := _FIRST.fullmatch(said):
        rows = f"{_NUMBERS.index(found[1]) + 1}" if found[1] in _NUMBERS else found[1]
        return View(first=int(rows)) if re.fullmatch(r"[1-9][0-9]{0,5}", rows) else None
    if (found := _SORT.fullmatch(said)) and _place(found[1].replace(" ", "_"), columns) is not None:
        return View(sort_by=found[1].replace(" ", "_"), descending=found[2] == "descending")
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


def past_of(answer: Answer) -> Past:
    """Return what is kept of a turn."""
    remarks = [
        f"No answer: {answer.missing or answer.status}" if answer.status != "answered" else "",
        answer.words or answer.summary,
        *(f"It assumes: {text}" for text in answer.assumptions),
        *(f"It could also mean: {reading.says}" for reading in answer.readings),
        *(f"The data shows: {text}" for text in answer.doubts),
        f"The person chose: {answer.meant}" if answer.meant else "",
        f"Confidence: {100 * answer.confidence:.0f} %" if answer.confidence else "",
    ]
    return Past(
        turn=answer.turn or answer.question,
        became=answer.became or answer.question,
        sql="" if answer.words else answer.sql[:MAX_SQL],
        columns=answer.columns,
        rows=[show_row(row) for row in answer.rows],
        row_count=answer.row_count,
        truncated=answer.truncated,
        remarks=[text for text in remarks if text],
    )


def conversation(turns: Sequence[Past]) -> str:
    """Return the turns as the QuestionRewriter sees them: of all but the last the first few rows."""
    return "\n\n".join("\n".join(_lines(n, past, n == len(turns))) for n, past in enumerate(turns, 1))


def _lines(number: int, past: Past, last: bool) -> Iterable[str]:
    yield f"Turn {number}: {past['turn']}"
    if past["became"] != past["turn"]:
        yield f"It became: {past['became']}"
    yield from past["remarks"]
    if past["sql"]:
        yield f"Query: {past['sql']}"
    if not past["columns"]:
        return
    rows = past["rows"] if last else past["rows"][:HEAD_ROWS]
    cut = ", cut off: there are more" if past["truncated"] else ""
    yield f"Result: {past['row_count']} rows{cut}; columns: {', '.join(past['columns'])}"
    yield from rows
    if len(rows) < past["row_count"]:
        yield f"({len(rows)} of {past['row_count']} rows shown)"
