"""Pages of runs beside their traces, for reports that link to them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from quorum.knowledge.errors import QuorumError


def write_traces(runs: Iterable[tuple[str, Path]]) -> set[Path]:
    """Write the page of each run into its folder, unless one is there that is as new as its events.

    Runs that cannot be read are told on standard error, in one line.

    Args:
        runs: The question's id and the run's folder.

    Returns:
        The folders that have a page.
    """
    from quorum.evals.paths import write_text
    from quorum.evals.reports.format import count
    from quorum.evals.reports.templating import TRACE_PAGE
    from quorum.graph.runs import RunFolder
    from quorum.page import page_of
    from quorum.render import counting
    from quorum.report import report_of

    asked, written, lost = list(runs), set(), dict[str, str]()
    with counting("writing traces") as on_done:
        for number, (id, folder) in enumerate(asked, 1):
            page = folder / TRACE_PAGE
            try:
                if not _is_new(page):
                    write_text(page, page_of(report_of(RunFolder(folder)), charts=False))
                written.add(folder)
            except QuorumError as error:
                lost.setdefault(id, str(error))
            on_done(number, len(asked))
    if lost:
        ids = [*lost][:5]
        which = f"Question {ids[0]} has" if len(lost) == 1 else f"{count(len(lost), 'question')} have"
        others = f" ({', '.join(ids)}{', …' if len(lost) > len(ids) else ''})" if len(lost) > 1 else ""
        click.echo(f"{which} no trace to link to{others}. {lost[ids[0]]}", err=True)
    return written


def _is_new(page: Path) -> bool:
    events = page.with_name("events.jsonl")
    return page.is_file() and events.is_file() and page.stat().st_mtime_ns >= events.stat().st_mtime_ns
