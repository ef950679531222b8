"""A run as one self-contained HTML page: no script, no outside request, everything escaped.

What it shows comes from a database and from models, so the template escapes it all and the page
forbids itself any outside request with a content security policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from quorum.event_text import title_of
from quorum.report import Report
from quorum.text import cell, duration, spent

if TYPE_CHECKING:
    from jinja2 import Template

_PALETTE = 12  # colours for agents in the template's style sheet


@dataclass(frozen=True)
class Block:
    """A call on the chart of lanes: where it starts and how wide it is, in percent."""

    left: float
    width: float
    colour: int
    label: str


@dataclass(frozen=True)
class Lane:
    """A candidate's calls (or those all share) over the run's time."""

    name: str
    blocks: list[Block]


def page_of(report: Report) -> str:
    """The page's HTML."""
    return _template().render(report=report, lanes=_lanes(report), colours=_colours(report))


@cache
def _template() -> Template:
    from quorum.evals.reports.templating import environment

    made = environment(
        Path(__file__).parent / "templates",
        agent=title_of,
        cell=lambda value: cell(value, 300),
        duration=duration,
        spent=spent,
    )
    return made.get_template("trace.html")


def _colours(report: Report) -> dict[str, int]:
    """A colour number for each agent that made calls, in order of appearance."""
    entries = [entry for section in report.sections for entry in section.entries if entry.is_low_level]
    agents = dict.fromkeys(entry.step.agent for entry in entries)
    return {agent: number % _PALETTE for number, agent in enumerate(agents)}


def _lanes(report: Report) -> list[Lane]:
    colours = _colours(report)
    entries = [entry for section in report.sections for entry in section.entries]
    total = max([float(report.usage.get("seconds") or 0), *(entry.step.t for entry in entries)], default=0.0)
    if total <= 0:
        return []
    lanes: dict[str, list[Block]] = {}
    for entry in entries:
        blocks = lanes.setdefault(entry.step.candidate or "all", [])
        if entry.is_low_level:
            start = max(0.0, entry.step.t - entry.seconds)
            label = f"{entry.step.agent} · {duration(entry.seconds)} · {entry.step.gist}"
            width = max(0.25, 100 * entry.seconds / total)  # a hair, so that it can be seen
            blocks.append(Block(100 * start / total, width, colours[entry.step.agent], label))
    return [Lane(name, blocks) for name, blocks in lanes.items() if blocks]
