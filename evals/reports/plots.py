"""The plots of a report: small SVG pictures of its figures, each with words for those who do not see it.

The same evaluation gives the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorum.evals.reports.evaluations import Opened
from quorum.evals.reports.format import count, one_line, percent
from quorum.evals.reports.vega import BAR, LABEL, LABELS, SOFT, WIDTH, axis, draw, over

BARS = 24
"""Bars that fit on a plot; the groups with the most questions are drawn."""


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
    return [by_group(found), reliability(found)]


def by_group(found: Opened) -> Plot:
    """Draw EX by difficulty, else by the first group that tells questions apart, with intervals."""
    group, parts = next(found.frame.groups(), ("group", {})) if found.frame.measurable else ("group", {})
    title = f"EX by {group}"
    scores = [(label, mean) for label, part in parts.items() if (mean := part.mean("ex")).n]
    if not scores:
        return Plot(title, why="No group tells questions apart, or none can be scored.")
    chosen = sorted(sorted(scores, key=lambda item: -item[1].n)[:BARS], key=scores.index)
    caption = "Bars show EX over all questions asked for (after the name), lines the 95 % interval (Wilson)."
    if len(chosen) < len(scores):
        caption += f" The {len(chosen)} of {len(scores)} with the most questions; the table has all."
    rows = [
        {"row": number, "label": f"{one_line(label, LABEL)} ({it.n})"}
        | {"ex": it.mean, "low": it.low, "high": it.high}
        for number, (label, it) in enumerate(chosen)
    ]
    places = axis("row", None, "ordinal", axis={"labelExpr": LABELS, "ticks": False, "domain": False})
    interval = {"mark": "rule", "encoding": {"x": axis("low", "EX"), "x2": {"field": "high"}}}
    spec = over(
        rows,
        width=WIDTH - 110,
        height={"step": BAR},
        encoding={"y": places, "x": axis("ex", "EX", scale={"domain": [0, 1]})},
        layer=[{"mark": "bar"}, interval],
    )
    figures = ", ".join(f"{label} {percent(it.mean)} of {it.n}" for label, it in chosen)
    return Plot(title, f"{title}: {figures}.", caption, draw(spec))


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
    figures = ", ".join(
        f"{percent(it.confidence)} confident, {percent(it.accuracy)} right" for it in fit.bins
    )
    return Plot(
        title,
        f"{title}: {count(fit.n, 'answer')}; {figures}.",
        "Above the dashed line answers are right more often than their confidence says, below it less "
        f"often; dots show the mean confidence. Brier {fit.brier:.3f}.",
        draw(over([vars(each) for each in fit.bins], height=190, layer=[diagonal, bars, dots])),
    )
