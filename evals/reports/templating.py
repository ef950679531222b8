"""The pages' templates: everything escaped, a missing value fails, no page asks for anything outside itself.

What pages show comes from models, databases and benchmarks, so the templates escape it all, and the pages
forbid themselves scripts and outside requests with a content security policy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorum.evals.reports import format as shown

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def render(template: str, **values: Any) -> str:
    """The HTML of a page of ``evals/templates``."""
    return _environment().get_template(template).render(**values)


def environment(templates: Path, **filters: Callable[..., Any]) -> Environment:
    """Templates in a folder, with ``sql`` (highlighted), ``dollars``, ``printable`` and further filters."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= filters
    made.filters["dollars"] = shown.dollars
    made.filters["printable"] = lambda value: shown.printable(str(value))
    made.filters["sql"] = _highlighted
    return made


@cache
def _environment() -> Environment:
    from quorum.evals.reports.compare_text import figures, measured, option, titled
    from quorum.evals.reports.tables import clock, plus_minus

    return environment(
        Path(__file__).parent / "templates",
        amount=shown.amount,
        clock=clock,
        count=shown.count,
        figures=figures,
        gist=shown.gist,
        measured=measured,
        option=option,
        percent=shown.percent,
        plus_minus=plus_minus,
        titled=titled,
    )


def _highlighted(sql: str) -> Markup:
    """SQL with its tokens in spans; Pygments escapes the text."""
    from markupsafe import Markup
    from pygments import highlight
    from pygments.formatters.html import HtmlFormatter
    from pygments.lexers.sql import SqlLexer

    spans = highlight(shown.printable(sql), SqlLexer(stripnl=False), HtmlFormatter(nowrap=True))
    return Markup(spans)
