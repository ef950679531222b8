"""The plots of a report: small SVG pictures of its figures, each with words for those who do not see it.

The same evaluation gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quorum.evals.reports.evaluations import Opened
from quorum.evals.reports.format import amount, count, one_line, percent
from quorum.evals.reports.frame import Frame
from quorum.evals.reports.vega import BAR, LABEL, LABELS, SOFT, WIDTH, axis, draw, over

DATABASES = 24
"""Bars that fit on a plot; the databases with the most questions are drawn."""


@dataclass(frozen=True)
class Plot:
    """A picture, or the reason why there is none.

    Attributes:
        alt: What it shows, in words and figures.
        caption: How to read it.
        svg: An SVG document; empty if ``why`` says that there is nothing to draw.
    """

    title: str
    alt: str = ""
    caption: str = ""
    svg: bytes = b""
    why: str = ""


def plots_of(found: Opened) -> list[Plot]:
    """Draw the plots of one evaluation.

    Raises:
        ConfigurationError: The extra ``plots`` is not installed.
    """
    return [by_group(found, "difficulty"), by_group(found, "database"), reliability(found)]


def _plot(title: str, alt: str, caption: str, rows: Sequence[Mapping[str, Any]], **spec: Any) -> Plot:
    """Draw a specification over rows."""
    return Plot(title, f"{title}: {alt}.", caption, draw(over(rows, **spec)))


def by_group(found: Opened, group: str) -> Plot:
    """Draw EX of each group: bars that lie, each with its label and interval."""
    title = f"EX by {group}"
    parts = dict(found.frame.groups()).get(group, {}) if found.frame.measurable else {}
    scores = [(label, share) for label, part in parts.items() if (share := part.share("ex")) and share.n]
    if not scores:
        return Plot(title, why=f"All questions have the same {group}, or none can be scored.")
    chosen = scores
    caption = "Bars show EX over all questions asked for (after the name), lines the 95 % interval (Wilson)."
    if group == "database":
        chosen = sorted(scores, key=lambda item: (-item[1].n, item[0]))[:DATABASES]
        chosen.sort(key=lambda item: (-(item[1].share or 0.0), -item[1].n, item[0]))
        if len(chosen) < len(scores):
            caption += (
                f" The {len(chosen)} of {len(scores)} databases with the most questions; the table has all."
            )
    rows = [
        {
            "row": number,
            "label": f"{one_line(label, LABEL)} ({it.n})",
            "ex": it.share,
            "low": it.low,
            "high": it.high,
        }
        for number, (label, it) in enumerate(chosen)
    ]
    places = axis("row", None, "ordinal", axis={"labelExpr": LABELS, "ticks": False, "domain": False})
    interval = {"mark": "rule", "encoding": {"x": axis("low", "EX"), "x2": {"field": "high"}}}
    return _plot(
        title,
        ", ".join(f"{label} {percent(share.share)} of {share.n}" for label, share in chosen),
        caption,
        rows,
        width=WIDTH - 110,
        height={"step": BAR},
        encoding={"y": places, "x": axis("ex", "EX", scale={"domain": [0, 1]})},
        layer=[{"mark": "bar"}, interval],
    )


def reliability(found: Opened) -> Plot:
    """Draw the share of right answers by their confidence."""
    title, fit = "Reliability of the confidence", found.calibration
    if fit is None:
        return Plot(title, why="No answer has a confidence and is known to be right or wrong.")
    x = axis("low", "confidence", bin="binned", scale={"domain": [0, 1]})
    y = axis("accuracy", "share right", scale={"domain": [0, 1]})
    diagonal = {
        "data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]},
        "mark": {"type": "line", "strokeDash": [4, 3], "color": SOFT, "point": False},
        "encoding": {"x": axis("x", "confidence"), "y": axis("y", "share right")},
    }
    bars = {"mark": {"type": "bar", "opacity": 0.4}, "encoding": {"x": x, "x2": {"field": "high"}, "y": y}}
    dots = {"mark": "point", "encoding": {"x": axis("confidence", "confidence"), "y": y}}
    figures = (f"{percent(it.confidence)} confident, {percent(it.accuracy)} right" for it in fit.bins)
    return _plot(
        title,
        f"{count(fit.n, 'answer')}; {', '.join(figures)}",
        "Above the dashed line answers are right more often than their confidence says, below it less "
        f"often; dots show the mean confidence. Brier {fit.brier:.3f}.",
        [vars(each) for each in fit.bins],
        height=190,
        layer=[diagonal, bars, dots],
    )


def scatter_of(found: Sequence[Opened]) -> Plot:
    """Draw EX of several evaluations against dollars a question if all have a price, else against tokens."""
    title = "EX against cost"
    unit = "dollars" if all(each.frame.cost("usd").total for each in found) else "tokens"
    rows: list[dict[str, Any]] = [
        {"cost": cost, "ex": share.share, "low": share.low, "high": share.high, "name": each.name}
        for each in found
        if (share := each.frame.share("ex")) and (cost := _mean_cost(each.frame, unit))
    ]
    if len(rows) < 2:
        return Plot(title, why="Fewer than two evaluations have both a score and a cost.")
    costs, drawn = [row["cost"] for row in rows], [row["name"] for row in rows]
    caption = "Up and to the left is better. Lines show the 95 % interval of EX (Wilson)."
    if left_out := [each.name for each in found if each.name not in drawn]:
        caption += f" Not drawn, for want of a score or a cost: {', '.join(left_out)}."
    figures = (f"{row['name']} {percent(row['ex'])} at {amount(row['cost'])}" for row in rows)
    scale = {"type": "log"} if max(costs) > 10 * min(costs) else {"zero": True}
    interval = {"mark": "rule", "encoding": {"y": axis("low", "EX"), "y2": {"field": "high"}}}
    return _plot(
        title,
        f"{', '.join(figures)} {unit} per question",
        caption,
        [row | {"name": one_line(row["name"], 32)} for row in rows],
        height=220,
        encoding={
            "x": axis("cost", f"{unit} per question (mean)", scale=scale),
            "y": axis("ex", "EX"),
            "color": axis("name", None, "nominal", sort=None, legend={"symbolType": "circle"}),
        },
        layer=[interval, {"mark": {"type": "point", "size": 60}}],
    )


def _mean_cost(frame: Frame, unit: str) -> float | None:
    if unit == "dollars":
        return frame.cost("usd").mean
    parts = [frame.cost(name).mean for name in ("input_tokens", "output_tokens")]
    return None if None in parts else sum(part or 0.0 for part in parts)
