"""The plots of a report: small SVG pictures of its figures, each with words for those who do not see it.

The same evaluation gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from quorum.evals.records import Record
from quorum.evals.reports.evaluations import Opened
from quorum.evals.reports.format import amount, count, one_line, percent
from quorum.evals.reports.frame import Frame, answered, cost_of, tokens_of
from quorum.evals.reports.vega import (
    BAR,
    BLUE,
    GREEN,
    GREY,
    LABEL,
    LABELS,
    ORANGE,
    SOFT,
    WIDTH,
    Looks,
    Spec,
    draw,
    legend,
)

DATABASES = 24
"""Bars that fit on a plot; the databases with the most questions are drawn."""

BINS = 14

CAPTION = "Bars show EX over all questions asked for (after the name), lines the 95 % interval (Wilson)."
UNSURE = "No answer has a confidence and is known to be right or wrong."


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


Drawing: TypeAlias = tuple[Spec, str, str] | str
"""A specification, what it shows in words, and how to read it; or the reason why there is none."""


def plots_of(found: Opened) -> list[Plot]:
    """Draw the plots of one evaluation, in the order of reports.

    Raises:
        ConfigurationError: The extra ``plots`` is not installed.
    """
    return [plot_of(found, title) for title in CHARTS]


def plot_of(found: Opened, title: str) -> Plot:
    """Draw the plot of that title (a key of ``CHARTS``)."""
    return _plot(title, CHARTS[title](found))


def scatter_of(found: Sequence[Opened]) -> Plot:
    """Draw EX against cost of several evaluations."""
    return _plot("EX against cost", scatter(found))


def _plot(title: str, drawing: Drawing) -> Plot:
    if isinstance(drawing, str):
        return Plot(title, why=drawing)
    spec, alt, caption = drawing
    return Plot(title, f"{title}: {alt}", caption, draw(spec))


def _axis(field: str, title: str | None, kind: str = "quantitative", **values: Any) -> Spec:
    return {"field": field, "title": title, "type": kind, **values}


def _data(rows: Sequence[Mapping[str, Any]]) -> Spec:
    return {"data": {"name": "rows", "values": list(rows)}}


def _bars(rows: Sequence[Mapping[str, Any]], across: Spec, *layers: Spec, **more: Spec) -> Spec:
    """Return bars that lie, the first row on top, each with its ``label``."""
    places = _axis("row", None, "ordinal", axis={"labelExpr": LABELS, "ticks": False, "domain": False})
    numbered = [{"row": number, **row} for number, row in enumerate(rows)]
    layer = [{"mark": "bar", "encoding": more}, *layers]
    shape = {"width": WIDTH - 110, "height": {"step": BAR}}
    return _data(numbered) | shape | {"encoding": {"y": places, "x": across}, "layer": layer}


def by_group(group: str, why: str) -> Callable[[Opened], Drawing]:
    """Return what draws EX of each group."""

    def drawn(found: Opened) -> Drawing:
        parts = dict(found.frame.groups()).get(group, {}) if found.frame.measurable else {}
        scores = [(label, share) for label, part in parts.items() if (share := part.share("ex")) and share.n]
        chosen, caption = scores, CAPTION
        if group == "database":
            chosen = sorted(scores, key=lambda item: (-item[1].n, item[0]))[:DATABASES]
            chosen.sort(key=lambda item: (-(item[1].share or 0.0), -item[1].n, item[0]))
            if len(chosen) < len(scores):
                largest = f" The {len(chosen)} of {len(scores)} databases with the most questions"
                caption += f"{largest}; the table has all."
        rows = [
            {"label": f"{one_line(label, LABEL)} ({it.n})", "ex": it.share, "low": it.low, "high": it.high}
            for label, it in chosen
        ]
        interval = {"mark": "rule", "encoding": {"x": _axis("low", "EX"), "x2": {"field": "high"}}}
        spec = _bars(rows, _axis("ex", "EX", scale={"domain": [0, 1]}), interval)
        alt = ", ".join(f"{label} {percent(share.share)} of {share.n}" for label, share in chosen)
        return (spec, f"{alt}.", caption) if chosen else why

    return drawn


def reliability(found: Opened) -> Drawing:
    fit = found.calibration
    if fit is None:
        return UNSURE
    bins = [each for each in fit.bins if each.n]
    x = _axis("low", "confidence", bin="binned", scale={"domain": [0, 1]})
    edges = {"x": x, "x2": {"field": "high"}}
    dashed = {"strokeDash": [4, 3], "color": SOFT, "point": False}
    rate = _axis("accuracy", "share right", scale={"domain": [0, 1]})
    above: Spec = {
        "width": WIDTH,
        "height": 170,
        "layer": [
            {
                "data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]},
                "mark": {"type": "line", **dashed},
                "encoding": {"x": _axis("x", "confidence"), "y": _axis("y", "share right")},
            },
            {"mark": {"type": "bar", "opacity": 0.4}, "encoding": {**edges, "y": rate}},
            {"mark": "point", "encoding": {"x": _axis("confidence", "confidence"), "y": rate}},
        ],
    }
    numbers = {**edges, "y": _axis("n", "answers", axis={"tickCount": 3})}
    middle = {"x": _axis("middle", "confidence"), "y": _axis("n", "answers"), "text": {"field": "n"}}
    below: Spec = {
        "width": WIDTH,
        "height": 60,
        "layer": [
            {"mark": {"type": "bar", "color": GREY}, "encoding": numbers},
            {"mark": {"type": "text", "dy": -6}, "encoding": middle},
        ],
    }
    rows = [
        {name: getattr(each, name) for name in ("low", "high", "n", "confidence", "accuracy")}
        | {"middle": (each.low + each.high) / 2}
        for each in bins
    ]
    figures = (f"{percent(each.confidence)} confident, {percent(each.accuracy)} right" for each in bins)
    return (
        _data(rows) | {"vconcat": [above, below]},
        f"{count(fit.n, 'answer')}; {', '.join(figures)}.",
        "Above the dashed line answers are right more often than their confidence says, below it less "
        f"often; dots show the mean confidence. Brier {fit.brier:.3f}, calibration error {fit.ece:.3f}.",
    )


def risk_coverage(found: Opened) -> Drawing:
    fit = found.calibration
    if fit is None:
        return UNSURE
    overall = 1 - fit.accuracy
    best = {part / 100: max(0.0, part / 100 - fit.accuracy) / (part / 100) for part in range(1, 101)}
    lines = {
        "by confidence": (BLUE, [], {point.coverage: point.risk for point in fit.curve}),
        "in random order": (SOFT, [5, 4], {0.0: overall, 1.0: overall}),
        "best order": (GREEN, [1, 3], best),
    }
    rows = [
        {"coverage": x, "risk": y, "order": name} for name, (*_, own) in lines.items() for x, y in own.items()
    ]
    first = fit.curve[0]
    return (
        {
            **_data(rows),
            "width": WIDTH,
            "height": 190,
            "mark": {"type": "line", "point": False},
            "encoding": {
                "x": _axis(
                    "coverage", "coverage: share of the answers that are given", scale={"domain": [0, 1]}
                ),
                "y": _axis("risk", "risk: share of wrong ones"),
                **legend("order", {name: (colour, dash) for name, (colour, dash, _) in lines.items()}),
            },
        },
        f"the surest {percent(first.coverage)} of the answers are wrong in {percent(first.risk)}, "
        f"all of them in {percent(overall)}; area under the curve {fit.aurc:.3f}.",
        "If only the surest answers are given, how many of them are wrong. Area under the curve "
        f"{fit.aurc:.3f}; the best order has {fit.aurc_best:.3f}, a random one {overall:.3f}.",
    )


def histogram(value: Callable[[Record], float | None], title: str) -> Callable[[Opened], Drawing]:
    """Return what draws how many questions cost how much: right, wrong and not known ones are stacked."""

    def verdict(record: Record) -> str:
        if not answered(record):
            return "wrong"
        return {True: "right", False: "wrong", None: "not known"}[record.match]

    def drawn(found: Opened) -> Drawing:
        values = [(verdict(it), cost) for it in found.frame.records if (cost := value(it)) is not None]
        if not values:
            return "No question has a ledger."
        colours: Looks = {"right": (GREEN, []), "wrong": (ORANGE, []), "not known": (GREY, [])}
        kinds = {name: own for name in colours if (own := [cost for kind, cost in values if kind == name])}
        bins, logarithmic = edges([cost for _, cost in values])
        whole = [*range(int(bins[0] + 0.5), int(bins[-1] + 0.5))] if bins[0] % 1 == 0.5 else []
        rows = [
            {"low": low, "high": high, "kind": kind, "order": order, "questions": number}
            for order, (kind, own) in enumerate(kinds.items())
            for place, (low, high) in enumerate(pairwise(bins))
            if (number := sum(low <= cost and (cost < high or place == len(bins) - 2) for cost in own))
        ]
        scale = {"type": "log" if logarithmic else "linear", "nice": False}
        spec: Spec = {
            **_data(rows),
            "width": WIDTH,
            "height": 190,
            "mark": "bar",
            "encoding": {
                "x": _axis("low", title, bin="binned", scale=scale, axis={"values": whole} if whole else {}),
                "x2": {"field": "high"},
                "y": _axis("questions", "questions", axis={"tickMinStep": 1}),
                "order": {"field": "order"},
                "color": legend("kind", {it: colours[it] for it in kinds}, symbol="square")["color"],
            },
        }
        means = ", ".join(f"{kind} {amount(sum(own) / len(own))}" for kind, own in kinds.items())
        return spec, f"mean of {title}: {means}.", f"Means: {means}."

    return drawn


def edges(values: Sequence[float]) -> tuple[list[float], bool]:
    """Return borders of bins, and True if they are of equal ratio: one bin per number where there are few."""
    low, high = min(values), max(values)
    if all(value == int(value) for value in values) and high - low < 2 * BINS:
        return [low - 0.5 + step for step in range(int(high - low) + 2)], False
    if low > 0 and high / low > 10:
        ratio = (high / low) ** (1 / BINS)
        return [low * ratio**step for step in range(BINS)] + [high], True
    return [low + (high - low) * step / BINS for step in range(BINS)] + [high], False


def scatter(found: Sequence[Opened]) -> Drawing:
    """Return EX against dollars per question if all have a price, else against tokens."""
    unit = "dollars" if all(each.frame.cost("usd").total for each in found) else "tokens"
    points = [
        (each, share, cost)
        for each in found
        if (share := each.frame.share("ex")) and (cost := _mean_cost(each.frame, unit))
    ]
    if len(points) < 2:
        return "Fewer than two evaluations have both a score and a cost."
    rows = [
        {
            "cost": cost,
            "ex": share.share,
            "low": share.low,
            "high": share.high,
            "name": one_line(each.name, 32),
        }
        for each, share, cost in points
    ]
    costs = [cost for _, _, cost in points]
    scale = {"type": "log"} if max(costs) > 10 * min(costs) else {"zero": True}
    interval = {"mark": "rule", "encoding": {"y": _axis("low", "EX"), "y2": {"field": "high"}}}
    names = {
        "field": "name",
        "type": "nominal",
        "title": None,
        "sort": None,
        "legend": {"symbolType": "circle"},
    }
    figures = (f"{each.name} {percent(share.share)} at {amount(cost)}" for each, share, cost in points)
    left_out = [each.name for each in found if each not in [point[0] for point in points]]
    caption = "Up and to the left is better. Lines show the 95 % interval of EX (Wilson)."
    if left_out:
        caption += f" Not drawn, for want of a score or a cost: {', '.join(left_out)}."
    return (
        {
            **_data(rows),
            "width": WIDTH,
            "height": 220,
            "encoding": {
                "x": _axis("cost", f"{unit} per question (mean)", scale=scale),
                "y": _axis("ex", "EX"),
                "color": names,
            },
            "layer": [interval, {"mark": {"type": "point", "size": 60}}],
        },
        f"{', '.join(figures)} {unit} per question.",
        caption,
    )


def _mean_cost(frame: Frame, unit: str) -> float | None:
    if unit == "dollars":
        return frame.cost("usd").mean
    parts = [frame.cost(name).mean for name in ("input_tokens", "output_tokens")]
    return None if None in parts else sum(part or 0.0 for part in parts)


CHARTS: dict[str, Callable[[Opened], Drawing]] = {
    "EX by difficulty": by_group(
        "difficulty",
        "The suite grades no difficulty, or all questions have the same one, or none can be scored.",
    ),
    "EX by database": by_group("database", "There is one database only, or no question can be scored."),
    "Reliability of the confidence": reliability,
    "Risk by coverage": risk_coverage,
    "Tokens per question": histogram(lambda it: tokens_of(it.usage), "tokens per question, in and out"),
    "Model calls per question": histogram(lambda it: cost_of(it, "model_calls"), "model calls per question"),
}
"""Title, and what draws it or says why there is nothing to draw."""
