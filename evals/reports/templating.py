"""Pages from templates and from Markdown: everything escaped, a missing value fails, and no page asks for
anything outside itself.

What pages show comes from models, databases and benchmarks, so the templates escape it all, and a content
security policy forbids the pages outside requests and every script but ``search.js``, named by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorum.evals.reports import format as shown

if TYPE_CHECKING:
    from jinja2 import Environment
    from markdown_it import MarkdownIt
    from markupsafe import Markup

_OWN = Path(__file__).parent / "templates"
_HEADING = re.compile("##+ (.+)")

TRACE_PAGE = "trace.html"
"""The page of a run, in the run's folder, if somebody has written it."""


def render(template: str, **values: Any) -> str:
    """Return the HTML of a page of ``evals/templates``."""
    return _environment().get_template(template).render(**values)


def environment(templates: Path, **filters: Callable[..., Any]) -> Environment:
    """Return the templates of a folder; they may extend ``base.html``. Filters besides ``sql`` are given."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    made = Environment(
        loader=FileSystemLoader([templates, _OWN]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= filters
    made.filters["dollars"], made.filters["count"] = shown.dollars, shown.count
    made.filters["printable"] = lambda value: shown.printable(str(value))
    made.filters["sql"] = _highlighted
    script = (_OWN / "search.js").read_text(encoding="utf-8")
    digest = hashlib.sha256(script.encode()).digest()
    made.globals["search"], made.globals["search_hash"] = Markup(script), base64.b64encode(digest).decode()
    made.globals["data_uri"] = data_uri
    return made


def data_uri(svg: bytes) -> str:
    """Return the address of a picture within the page."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


@cache
def _environment() -> Environment:
    filters = (shown.amount, shown.clock, shown.gist)
    return environment(_OWN, **{each.__name__: each for each in filters})


def _highlighted(sql: str) -> Markup:
    """Return SQL with its tokens in spans; Pygments escapes the text."""
    from markupsafe import Markup
    from pygments import highlight
    from pygments.formatters.html import HtmlFormatter
    from pygments.lexers.sql import SqlLexer

    spans = highlight(shown.printable(sql), SqlLexer(stripnl=False), HtmlFormatter(nowrap=True))
    return Markup(spans)


def sections_of(pieces: Iterable[str]) -> list[tuple[str, Markup]]:
    """Return pieces of Markdown, the first of them a heading, as sections: their titles and HTML."""
    found: list[list[str]] = []
    for piece in pieces:
        if heading := _HEADING.fullmatch(piece):
            found.append([heading[1]])
        else:
            found[-1].append(piece)
    return [(title, html_of(own)) for title, *own in found]


def html_of(pieces: Iterable[str]) -> Markup:
    """Return pieces of Markdown as HTML: tables and paragraphs; HTML in it stays text."""
    from markupsafe import Markup

    return Markup("\n".join(map(_rendered, pieces)))


def _rendered(text: str) -> str:
    """Return Markdown as HTML; each cell of a table has its column's name, which a narrow screen shows."""
    reader = _reader()
    tokens, names, place = reader.parse(text), list[str](), 0
    for token, following in pairwise(tokens):
        if token.type == "table_open":
            names = []
        elif token.type == "th_open":
            names.append(following.content)
        elif token.type == "tr_open":
            place = 0
        elif token.type == "td_open":
            token.attrSet("data-is", names[place].replace("\\", ""))
            place += 1
    return str(reader.renderer.render(tokens, reader.options, {}))


@cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["image", "link", "autolink"])
    reader.add_render_rule("table_open", lambda *_: '<div class="wide"><table class="stack">')
    reader.add_render_rule("table_close", lambda *_: "</table></div>")
    return reader
