"""The sections of a report's Markdown as HTML, so that page and Markdown say the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from quorum.evals.reports.markdown import SECTIONS
from quorum.evals.reports.summary import Summary

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markupsafe import Markup

_FOLDED = re.compile(r"<details><summary>(?P<title>[^<]*)</summary>\n\n(?P<text>.*)\n\n</details>", re.DOTALL)
"""What ``quorum.evals.reports.tables.folded`` makes."""


@dataclass(frozen=True)
class Section:
    """A heading and the HTML of what stands under it."""

    title: str
    body: Markup


def sections_of(summary: Summary) -> list[Section]:
    """Every section of the report that has something to say, one per heading."""
    found: list[list[str]] = []
    for section in SECTIONS:
        for piece in section(summary):
            if piece.startswith("### "):
                found.append([piece.removeprefix("### ")])
            else:
                found[-1].append(piece)
    return [Section(title, html_of(pieces)) for title, *pieces in found]


def html_of(pieces: Iterable[str]) -> Markup:
    """Pieces of Markdown as HTML: tables, paragraphs and folded parts; HTML in it stays text."""
    from markupsafe import Markup

    return Markup("\n".join(_html(pieces)))


def _html(pieces: Iterable[str]) -> Iterator[str]:
    for piece in pieces:
        if folded := _FOLDED.fullmatch(piece):
            title, inner = _reader().renderInline(folded["title"]), _reader().render(folded["text"])
            yield f"<details><summary>{title}</summary>{inner}</details>"
        else:
            yield _reader().render(piece)


@cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["image", "link", "autolink"])
    reader.add_render_rule("table_open", lambda *_: '<div class="wide"><table>')
    reader.add_render_rule("table_close", lambda *_: "</table></div>")
    return reader
