"""Text for people: safe to print, short, with numbers as one reads them.

What comes from a database or a model may hold terminal escapes and bidirectional overrides; it
goes through ``printable`` before it reaches a terminal or a page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal

from quorum.evals.reports.format import count, dollars, one_line, printable
from quorum.tools.results.readable import readable, size_text

if TYPE_CHECKING:
    from quorum.graph.answer import Answer, AnswerCluster, AnswerReading

__all__ = [
    "agreement", "bars_of", "bytes_read", "cell", "cells", "clusters_of", "count", "dollars", "duration",
    "failures", "laid_out", "listed", "notices", "one_line", "printable", "readings_of", "remarks_of",
    "rows_note", "shown_rows", "spent", "status_of", "text_of", "trust",
]  # fmt: skip

LONG_LINE = 88  # characters of SQL
BAR = 40  # characters of the longest bar
SHOWN_ROWS = 20
MAX_COLUMNS = 14  # wider tables are unreadable
LOW, GOOD = 0.4, 0.75
"""Answers of a confidence up to ``LOW`` are mostly wrong; from ``GOOD`` on mostly right."""

Tone = Literal["plain", "good", "bad", "warn", "faint"]

DEMONSTRATION = "Demonstration: the rule-based offline model answered, not a language model."
STATUS: dict[str, tuple[str, Tone]] = {
    "answered": ("Answer", "good"),
    "unanswerable": ("The data cannot answer this", "warn"),
    "no_answer": ("No answer found", "warn"),
    "stopped": ("Stopped by a limit", "warn"),
    "failed": ("Failed", "bad"),
}
"""An answer's status in words, and its tone."""


def text_of(value: Any) -> str:
    """A field of an event as text; empty for none."""
    return "" if value is None else str(value)


_MISTAKABLE = re.compile(r'\s.*|.*\s|null|".*"|', re.DOTALL | re.IGNORECASE)
_PLAIN = re.compile(
    r"(?i:(?:^|.*[^a-z])(?:ids?|keys?|codes?|zip|postcode|sku|ean|isbn|phone|.+[^a-z](?:no|nr|number))[^a-z]*)"
    r"|.*[a-z]I[dD]", re.DOTALL
)  # fmt: skip
_YEAR = re.compile(r"year|yr", re.IGNORECASE)
_DECIMAL = re.compile(r"decimal\d*\(\d+, ([1-4])\)")
_MIDNIGHT = re.compile(r"(\d{4}-\d\d)-(\d\d)(?:[ T]00:00:00(?:\.0+)?(?:[+-]\d\d:\d\d|Z)?)?")
_DAY = re.compile(r"(?:day|date)[^a-z]*$", re.IGNORECASE)


def cell(value: Any, limit: int = 60) -> str:
    """A value of a result, by itself: text that could be taken for NULL or for another text is quoted.

    ``NULL`` for NULL, ``"NULL"`` for that text, ``""`` for the empty one, ``"north "`` for one with a blank.
    """
    if isinstance(value, str) and _MISTAKABLE.fullmatch(value):
        quoted = printable(json.dumps(value, ensure_ascii=False))
        return quoted if len(quoted) <= limit else f"{quoted[: limit - 1]}…"
    return one_line(readable(value), limit)


def cells(name: str, values: Sequence[Any], kind: str = "", limit: int = 60) -> list[str]:
    """A column's values as a table shows them.

    Numbers have commas, but not keys (``customer_id``, ``zip``) and years (``order_year``); decimals have the
    digits of their type (``3,444.00``). Moments that are all midnights are days, or months (``2024-01``)
    where all are the first of one.

    Args:
        name: The column's.
        kind: Its Arrow type (``Answer.types``), empty where that is not known.
        limit: Characters of a value.
    """
    known = [value for value in values if value is not None]
    if short := _days(name, known):
        return [cell(short.get(value), limit) for value in values]
    year = _YEAR.search(name) and all(isinstance(each, int) and 1000 <= each < 3000 for each in known)
    comma = "" if year or _PLAIN.fullmatch(name) else ","
    scale = _DECIMAL.fullmatch(kind)

    def shown(value: Any) -> str:
        if scale and value is not None:
            return format(Decimal(str(value)), f"{comma}.{scale[1]}f")
        text = cell(value, limit)
        number = isinstance(value, int | float) and not isinstance(value, bool) and "e" not in text
        return format(Decimal(text), f"{comma}f") if number else text

    return [shown(value) for value in values]


def _days(name: str, moments: Sequence[Any]) -> dict[str, str]:
    """Midnights as days or months; empty where some of ``moments`` is none."""
    found = {each: _MIDNIGHT.fullmatch(each) for each in moments if isinstance(each, str)}
    if not found or len(found) < len(set(map(str, moments))) or None in found.values():
        return {}
    firsts = all(day and day[2] == "01" for day in found.values())
    months = firsts and ("month" in name.lower() or (len(found) > 1 and not _DAY.search(name)))
    return {each: day[1] if months else each[:10] for each, day in found.items() if day}


def shown_rows(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], types: Sequence[str] = (), limit: int = 60
) -> list[tuple[str, ...]]:
    """Rows as tables show them, a column by ``cells`` each."""
    kinds = zip_longest(columns, types[: len(columns)], fillvalue="")
    shown = [cells(name, [row[n] for row in rows], kind, limit) for n, (name, kind) in enumerate(kinds)]
    return list(zip(*shown, strict=True))


def duration(seconds: float) -> str:
    """``0.42 s``, ``12.3 s``, ``4 min 05 s``."""
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"


def spent(usage: dict[str, Any]) -> str:
    """A usage (the ledger's fields) on one line."""
    cached = int(usage.get("cached_tokens") or 0)
    parts = [
        count(int(usage.get("model_calls") or 0), "model call"),
        f"{int(usage.get('input_tokens') or 0):,} tokens in" + (f" ({cached:,} cached)" if cached else ""),
        f"{int(usage.get('output_tokens') or 0):,} out",
        dollars(usage.get("usd", 0.0)),
        count(int(usage.get("queries") or 0), "database query", "database queries"),
        count(int(usage.get("rows") or 0), "row"),
    ]
    parts += bytes_read(usage)
    if usage.get("seconds") is not None:
        parts.append(duration(float(usage["seconds"])))
    return " · ".join(parts)


def bytes_read(usage: dict[str, Any]) -> list[str]:
    """Return what queries read, as far as a ledger knows: ``3 GiB read``, ``2.00 s of slots``."""
    told = ("{} read", usage.get("read_bytes")), ("about {} read (estimated)", usage.get("estimated_bytes"))
    slots = float(usage.get("slot_seconds") or 0)
    read = [words.format(size_text(int(size))) for words, size in told if size]
    return [*read, *([f"{duration(slots)} of slots"] if slots else [])]


def clusters_of(answer: Answer) -> list[AnswerCluster]:
    """Return the vote's clusters: the one that gave the answer first, then by share."""
    vote = answer.vote
    return sorted(
        vote.clusters if vote else [],
        key=lambda cluster: (not vote or vote.winner not in cluster.candidates, -cluster.share),
    )


def readings_of(answer: Answer) -> tuple[list[AnswerReading], list[str]]:
    """Return other readings of the question: those with a result, and sentences on the rest."""
    return [each for each in answer.readings if each.sql], [
        each.says for each in answer.readings if not each.sql
    ]


def agreement(answer: Answer) -> str:
    """Return ``2 of 3 candidates agree; 1 differs``, from an answer's vote and candidates."""
    cast = [each for each in answer.candidates if not each.superseded]
    total, vote, clusters = len(cast), answer.vote, clusters_of(answer)
    if answer.status == "unanswerable":
        saying = [each for each in cast if each.error_kind == "unanswerable"]
        verb = "says" if len(saying) == 1 else "say"
        return f"{len(saying)} of {count(total, 'candidate')} {verb} that the data cannot answer this"
    if not vote or not clusters:
        return f"none of {count(total, 'candidate')} has a result to vote with" if total else ""
    if vote.settled == "verified":
        return "a person verified the query"
    if vote.stopping == "first":
        nothing_open = vote.doubt == 0 and not (answer.demonstration or answer.readings)
        return "one query was enough" + ("; nothing else was open" if nothing_open else "")
    if total == 1:
        return "one query, no vote"
    sizes = [len(cluster.candidates) for cluster in clusters]
    differing, silent = sum(sizes[1:]), total - sum(sizes)
    parts = [
        f"{sizes[0]} of {count(total, 'candidate')} {'agrees' if sizes[0] == 1 else 'agree'}",
        f"{differing} {'differs' if differing == 1 else 'differ'}" if differing else "",
        f"{silent} did not vote" if silent > 0 else "",
        "a tie" if vote.tie else "",
    ]
    return "; ".join(filter(None, parts))


def is_verified(answer: Answer) -> bool:
    """Return True if there was no vote because a person has verified the query."""
    return answer.vote is not None and answer.vote.settled == "verified"


def trust(answer: Answer) -> tuple[str, Tone]:
    """Return the confidence in words, ``likely right (76 %)``, and its tone; ``doubtful`` after a warning."""
    if is_verified(answer):
        return "verified", "good"
    if answer.demonstration:  # the fit is of language models' votes
        return "not rated", "warn"
    if answer.doubts:
        return f"doubtful ({100 * answer.confidence:.0f} %)", "warn"
    low, high = answer.confidence <= LOW, answer.confidence >= GOOD
    word = "probably wrong" if low else "likely right" if high else "may be right"
    tone: Tone = "bad" if low else "good" if high else "warn"
    return f"{word} ({100 * min(answer.confidence, 0.99):.0f} %)", tone


def status_of(answer: Answer) -> tuple[str, Tone]:
    """Return the heading of an answer and its tone: an answer of low confidence looks low."""
    title, tone = STATUS[answer.status]
    if answer.status == "answered":
        _, tone = trust(answer)
        low = tone == "bad" or (answer.doubts and not is_verified(answer))
        if low and answer.demonstration:  # it has no confidence
            return f"{title} in doubt", tone
        return f"{title} of low confidence" if low else title, tone
    if answer.sql:
        title += {"no_answer": "; the best effort", "stopped": "; the best so far"}.get(answer.status, "")
    return f"{title} ({answer.stopped_by})" if answer.stopped_by else title, tone


def bars_of(answer: Answer) -> list[str]:
    """Return the rows as bars of the last column of numbers, a line each; empty where there is none."""
    columns = [*enumerate(zip(*answer.rows, strict=True))]
    fits = [n for n, column in columns if all(isinstance(v, int | float) and v >= 0 for v in column)]
    if not fits:
        return []
    by, texts = fits[-1], shown_rows(answer.columns, answer.rows, answer.types)
    labels = [" · ".join(each for n, each in enumerate(text) if n != by) for text in texts]
    width, most = max(map(len, labels)), max(columns[by][1]) or 1
    bars = ["█" * round(BAR * value / most) for value in columns[by][1]]
    return [f"{a:<{width}}  {b} {text[by]}" for a, b, text in zip(labels, bars, texts, strict=True)]


def laid_out(sql: str, dialect: str) -> str:
    """SQL of one long line laid out for people; other SQL as its author laid it out."""
    from quorum.tools.sql import KNOWN_DIALECTS
    from quorum.tools.sql.writing import format_sql

    one_long_line = len(sql) > LONG_LINE and "\n" not in sql.strip()
    return format_sql(sql, dialect) if one_long_line and dialect in KNOWN_DIALECTS else sql


KINDS = {"c": "candidate", "r": "reading", "p": "draft"}
"""Kinds by the first letter of an id: ``c2`` is candidate 2."""


def listed(names: list[str]) -> str:
    """``candidate 1``, ``candidates 1, 4``, ``candidates 1 to 3, 7``; ids of other kinds as they are."""
    runs: list[list[str]] = []
    for name in names:
        if runs and name == re.sub(r"\d+$", lambda number: str(int(number[0]) + 1), runs[-1][-1]):
            runs[-1].append(name)
        else:
            runs.append([name])
    text = ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)
    for letter, kind in KINDS.items():
        if names and all(re.fullmatch(rf"{letter}\d+", name) for name in names):
            return f"{kind}{'s' if len(names) > 1 else ''} {text.replace(letter, '')}"
    return text


def failures(answer: Answer) -> list[tuple[str, str]]:
    """Return why candidates have no result, each reason once: ``("c1 to c8", "The model refused.")``."""
    found: dict[str, list[str]] = {}
    for candidate in answer.candidates:
        if candidate.error or candidate.row_count is None:
            found.setdefault(candidate.error or "no result", []).append(candidate.id)
    return [(listed(names), error) for error, names in found.items()]


def notices(answer: Answer) -> list[str]:
    """Return an answer's warnings, without those that only repeat why a candidate failed."""
    repeated = () if answer.columns else tuple(each.error for each in answer.candidates if each.error)
    return [text for text in answer.warnings if not text.endswith(repeated)]


def remarks_of(answer: Answer) -> list[tuple[str, list[str], Tone]]:
    """Return all that is said beside an answer's query and rows: headings, their sentences, and the tone."""
    plain: Tone = "plain"
    said: list[tuple[str, list[str], Tone]] = [
        ("It assumes", answer.assumptions, plain),
        ("The data shows", answer.doubts, plain),
        ("The question could also mean", readings_of(answer)[1], plain),
        ("You chose", [answer.meant] if answer.meant else [], plain),
        ("Kept for later questions", [answer.convention] if answer.convention else [], plain),
        ("Shown as an example, for it resembles the question", answer.verified, plain),
        ("Documents shown to the model", answer.sources, plain),
        ("Read in each database", answer.parts, plain),
        ("The candidates disagree", answer.disagreement, "warn"),
        ("Warning", notices(answer), "warn"),
    ]
    return [each for each in said if each[1]]


def rows_note(answer: Answer | AnswerReading) -> str:
    """Return how many rows there are, how many are shown, and whether more were cut off."""
    total, shown = answer.row_count, len(answer.rows)
    text = count(total, "row")
    if shown < total:
        text = f"the first {min(shown, SHOWN_ROWS)} of {text}"
    if answer.truncated:
        text += "; cut off at the limit, there are more in the database"
    return text
