"""A report on evaluations as one self-contained HTML page with plots, for people."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from quorum.evals.paths import write_text
from quorum.evals.reports.format import count
from quorum.evals.reports.plots import Plot, plots_of, scatter_of
from quorum.evals.reports.scores import WHY
from quorum.evals.reports.sections import SECTIONS
from quorum.evals.reports.side_by_side import side_by_side
from quorum.evals.reports.summary import Line, Summary
from quorum.evals.reports.templating import Section, render, sections_of

TRACE_PAGE = "trace.html"
"""The page of a run, in the run's folder, where someone has written it."""


@dataclass(frozen=True)
class Chapter:
    """An evaluation on the page; ``flags`` are what a reader must know before the figures."""

    summary: Summary
    anchor: str
    flags: list[str]
    plots: list[Plot]
    sections: list[Section]


def write_page(summaries: Sequence[Summary], path: Path) -> None:
    """Write the report on ``summaries``, at least one, to ``path``.

    Raises:
        ConfigurationError: matplotlib is not installed, or the file cannot be written.
    """
    write_text(path, page_of(summaries, path.parent))


def page_of(summaries: Sequence[Summary], folder: Path) -> str:
    """The page's HTML.

    Args:
        folder: Where the page will lie; links to traces are relative to it.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    chapters = [
        Chapter(
            each,
            f"e{number}",
            list(flags(each)),
            plots_of(each),
            sections_of(piece for section in SECTIONS for piece in section(each)),
        )
        for number, each in enumerate(summaries, 1)
    ]
    return render(
        "report.html",
        chapters=chapters,
        beside=sections_of(side_by_side(summaries)) if len(summaries) > 1 else [],
        scatter=scatter_of(summaries) if len(summaries) > 1 else None,
        unlike=len({(each.suite, each.rules) for each in summaries}) > 1,
        link=lambda summary, line: _link(summary, line, folder),
    )


def flags(summary: Summary) -> Iterator[str]:
    """What a reader must know before the figures, most important first."""
    recorded = summary.overall.recorded
    if summary.demonstration:
        yield (
            f"Demonstration: the rule-based offline model took part in {summary.demonstration:,} of "
            f"{count(recorded, 'record')}. It is no language model, and these figures say nothing of one."
        )
    yield from summary.notes
    for group in summary.gold:
        if group.scored:  # of the others a note says that they cannot be scored
            listed = ", ".join(group.ids[:5]) + (" …" if len(group.ids) > 5 else "")
            asked = count(len(group.ids), "question")
            yield f"The gold of {asked} could not be used ({WHY[group.state]}): {listed}."
    yield from summary.missing


def _link(summary: Summary, line: Line, folder: Path) -> str:
    """The page of a question's run, relative to ``folder``; empty where there is none."""
    run = summary.run_of(line)
    return relative_link(run / TRACE_PAGE, folder) if run and (run / TRACE_PAGE).is_file() else ""


def relative_link(target: Path, folder: Path) -> str:
    """An address of ``target`` for a page in ``folder``."""
    return quote(Path(os.path.relpath(target, folder)).as_posix())
