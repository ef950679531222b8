"""ReFoRCE's steps in a few words: exploration, stages, draws (see ``quorum.steps``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from quorum.text import count, text_of

Event = dict[str, Any]
Tone = Literal["plain", "good", "bad", "warn", "faint"]
Gist = tuple[str, Tone]

AGENTS = {
    "table_linker": "TableLinker",
    "draft_linker": "DraftLinker",
    "format_writer": "FormatWriter",
    "column_explorer": "ColumnExplorer",
    "exploration_corrector": "ColumnExplorer",
    "self_checker": "SelfChecker",
    "cte_refiner": "CteRefiner",
}


def _schema_shown(e: Event) -> Gist:
    return f"{int(e.get('tokens') or 0):,} tokens of schema are shown", "plain"


def _format(e: Event) -> Gist:
    if e.get("error"):
        return f"no format: {text_of(e['error'])}", "warn"
    said = [text_of(e.get(part)) for part in ("header", "rows")]
    return f"expects {'; '.join(filter(None, said))}", "plain"


def _exploration(e: Event) -> Gist:
    return f"wants to run {count(len(e.get('queries') or []), 'query', 'queries')}", "plain"


def _finding(e: Event) -> Gist:
    corrected = " (corrected)" if e.get("corrected") else ""
    return f"learns{corrected}: {text_of(e.get('purpose'))}", "good"


def _correction(e: Event) -> Gist:
    later = len(e.get("later") or [])
    more = f", and {count(later, 'similar query', 'similar queries')} with it" if later else ""
    return f"corrects it{more}: {text_of(e.get('fault'))}", "warn"


def _given_up(e: Event) -> Gist:
    return f"gives a query up: {text_of(e.get('message'))}", "warn"


def _ended(e: Event) -> Gist:
    return f"ends early: {text_of(e.get('message'))}", "bad"


def _second_answer(e: Event) -> Gist:
    return f"looks again: {text_of(e.get('reasoning'))}", "plain"


def _unconfirmed(_: Event) -> Gist:
    return "no result came twice; it is treated as empty", "warn"


def _stage(e: Event) -> Gist:
    return f"ran stage {text_of(e.get('name'))}", "plain"


def _stage_review(e: Event) -> Gist:
    verdict = "accepts" if e.get("accept") else "rewrites"
    said = f"{verdict} stage {text_of(e.get('name'))}: {text_of(e.get('reasoning'))}"
    return said, "good" if e.get("accept") else "warn"


def _draw(e: Event) -> Gist:
    among = "the tied answers" if e.get("among") == "tied" else "all candidates"
    return f"draws {e.get('winner')} among {among}, seed {e.get('seed')}", "warn"


def _left_open(_: Event) -> Gist:
    return "leaves the tie open: random selection is off", "warn"


GISTS: dict[str, Callable[[Event], Gist]] = {
    "schema_shown": _schema_shown,
    "format": _format,
    "exploration": _exploration,
    "finding": _finding,
    "correction": _correction,
    "exploration_given_up": _given_up,
    "exploration_ended": _ended,
    "second_answer": _second_answer,
    "unconfirmed": _unconfirmed,
    "stage": _stage,
    "stage_review": _stage_review,
    "draw": _draw,
    "tie_left_open": _left_open,
}
