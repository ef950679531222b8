"""A run as one self-contained HTML page: no outside request, no script but the search, all text escaped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import click
from jinja2 import Template

from quorum.evals.paths import write_text
from quorum.evals.reports.format import clock
from quorum.evals.reports.templating import TRACE_PAGE, environment
from quorum.event_text import link_to, title_of
from quorum.graph.runs import RunFolder
from quorum.graph.strategies import strategy_words
from quorum.knowledge.errors import QuorumError
from quorum.render import READ, counting
from quorum.report import Report, report_of
from quorum.text import (
    cell,
    count,
    duration,
    failures,
    is_verified,
    listed,
    readings_of,
    remarks_of,
    rows_note,
    shown_rows,
    spent,
    status_of,
    trust,
)
from quorum.tools.results.files import read_result
from quorum.tools.results.readable import size_text


@dataclass(frozen=True)
class Picture:
    """A chart of the answer's rows; without ``svg`` there is none, and the note may say why."""

    svg: bytes = b""
    alt: str = ""
    note: str = ""


def page_of(report: Report, *, charts: bool = True) -> str:
    """The page's HTML.

    Args:
        charts: Draw the answer's rows where they have a shape for it.
    """
    answer = report.answer
    shown: dict[str, Any] = {"report": report, "read": READ}
    if answer is None:
        status = "failed" if report.error else "exploration" if report.exploration else "unfinished"
        return _template().render(shown, status=status, tone="warn")
    status, tone = status_of(answer)
    return _template().render(
        shown,
        status=status,
        tone=tone,
        trusted=trust(answer),
        verified=is_verified(answer),
        rows_note=rows_note(answer),
        failures=failures(answer),
        remarks=remarks_of(answer),
        readings=readings_of(answer)[0],
        strategy=strategy_words(answer.vote.strategy) if answer.vote else "",
        chart=_chart(report, answer.result_file) if charts and answer.result_file else Picture(),
    )


def _chart(report: Report, result_file: str) -> Picture:
    from quorum.chart import chart_of, picture

    name = Path(result_file).name
    try:
        chart = chart_of(read_result(Path(report.folder) / "results" / name))  # a folder may have moved
        return Picture() if isinstance(chart, str) else Picture(picture(chart), chart.alt, chart.note)
    except QuorumError as error:
        return Picture(note=f"No chart: {error}")


@cache
def _template() -> Template:
    made = environment(
        Path(__file__).parent / "templates",
        agent=title_of,
        cell=cell,
        clock=clock,
        duration=duration,
        link_to=link_to,
        listed=listed,
        size_text=size_text,
        spent=spent,
    )
    made.globals["shown_rows"] = partial(shown_rows, limit=300)
    return made.get_template("trace.html")


def write_pages(runs: Iterable[tuple[str, Path]]) -> None:
    """Write the page of each run into its folder, unless one is there that is as new as its events.

    Standard error says in one line which runs cannot be read.

    Args:
        runs: The question's id and the run's folder.
    """
    asked, lost = list(runs), dict[str, str]()
    with counting("writing traces") as on_done:
        for number, (id, folder) in enumerate(asked, 1):
            page = folder / TRACE_PAGE
            try:
                if not _is_newest(page):
                    write_text(page, page_of(report_of(RunFolder(folder)), charts=False))
            except QuorumError as error:
                lost.setdefault(id, str(error))
            on_done(number, len(asked))
    if lost:
        ids = [*lost][:5]
        which = f"Question {ids[0]} has" if len(lost) == 1 else f"{count(len(lost), 'question')} have"
        others = f" ({', '.join(ids)}{', …' if len(lost) > len(ids) else ''})" if len(lost) > 1 else ""
        click.echo(f"{which} no trace to link to{others}. {lost[ids[0]]}", err=True)


def _is_newest(page: Path) -> bool:
    events = page.with_name("events.jsonl")
    return page.is_file() and events.is_file() and page.stat().st_mtime_ns >= events.stat().st_mtime_ns
