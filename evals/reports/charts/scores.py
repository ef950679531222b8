"""How many answers are right: by difficulty, by database, and against what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorum.evals.reports.charts import BAR, BLUE, HUES, INK, LABEL, MARKS, Drawing
from quorum.evals.reports.format import amount, one_line, percent
from quorum.evals.reports.scores import Score
from quorum.evals.reports.statistics import Share
from quorum.evals.reports.summary import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTION = (
    "Bars show EX over all questions asked for (their number stands behind the name), lines the 95 % "
    "interval (Wilson)."
)

DATABASES = 24
"""Bars that fit on a plot; the databases with the most questions are drawn."""


def by_difficulty(summary: Summary) -> Drawing | str:
    scores = _scored(summary.slices.get("difficulty", ()))
    if not scores:
        return "The suite grades no difficulty, or all questions have the same one, or none can be scored."
    return _bars(scores, CAPTION)


def by_database(summary: Summary) -> Drawing | str:
    scores = _scored(summary.slices.get("database", ()))
    if not scores:
        return "There is one database only, or no question can be scored."
    drawn = sorted(scores, key=lambda item: (-item[0].questions, item[0].label))[:DATABASES]
    drawn.sort(key=lambda item: (-(item[1].share or 0.0), -item[1].n, item[0].label))
    caption = CAPTION
    if len(drawn) < len(scores):
        caption += f" The {len(drawn)} of {len(scores)} databases with the most questions; the table has all."
    return _bars(drawn, caption)


def _scored(scores: Sequence[Score]) -> list[tuple[Score, Share]]:
    return [(score, score.ex) for score in scores if score.ex is not None and score.ex.n]


def _bars(scores: Sequence[tuple[Score, Share]], caption: str) -> Drawing:
    """EX of groups, the first on top."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for place, (_, share) in enumerate(scores):
            axes.barh(place, share.share or 0.0, color=BLUE, alpha=0.75, height=0.72)
            axes.errorbar(
                share.share or 0.0,
                place,
                xerr=_beside(share),
                color=INK,
                capsize=2.5,
                linewidth=1,
                fmt="none",
            )
        axes.set_yticks(
            range(len(scores)), [f"{one_line(s.label, LABEL)} ({share.n})" for s, share in scores]
        )
        axes.set_ylim(len(scores) - 0.4, -0.6)
        axes.set_xlim(0, 1)
        axes.set_xlabel("EX")
        axes.grid(visible=False, axis="y")

    said = ", ".join(f"{score.label} {percent(share.share)} of {share.n}" for score, share in scores)
    return Drawing(draw, alt=f"{said}.", caption=caption, height=1.0 + BAR * max(3, len(scores)))


def _beside(share: Share) -> list[list[float]]:
    """The interval as lengths below and above the share."""
    middle, low, high = (value or 0.0 for value in (share.share, share.low, share.high))
    return [[middle - low], [high - middle]]


def scatter(summaries: Sequence[Summary]) -> Drawing | str:
    """EX against dollars per question where all have a price, else against tokens."""
    priced = all(summary.cost("usd").total for summary in summaries)
    unit = "dollars" if priced else "tokens"
    found = [
        (each, share, cost)
        for each in summaries
        if (share := each.overall.ex) and (cost := _cost(each, unit))
    ]
    if len(found) < 2:
        return "Fewer than two evaluations have both a score and a cost."

    def draw(figure: Figure) -> None:
        from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

        axes = figure.subplots()
        for number, (summary, share, cost) in enumerate(found):
            axes.errorbar(
                cost,
                share.share or 0.0,
                yerr=_beside(share),
                fmt=MARKS[(number + number // len(HUES)) % len(MARKS)],
                color=HUES[number % len(HUES)],
                capsize=3,
                markersize=7,
                label=one_line(summary.name, 32),
            )
        costs = [cost for _, _, cost in found]
        if max(costs) > 10 * min(costs):
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        else:
            axes.set_xlim(0, max(costs) * 1.1)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: amount(value)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(f"{unit} per question (mean)")
        axes.set_ylabel("EX")
        axes.set_ylim(0, 1)
        figure.legend(loc="outside lower center", ncols=1)

    said = (f"{each.name} {percent(share.share)} at {amount(cost)}" for each, share, cost in found)
    absent = [each.name for each in summaries if each not in [drawn for drawn, _, _ in found]]
    lacking = f" Not drawn, for want of a score or a cost: {', '.join(absent)}." if absent else ""
    return Drawing(
        draw,
        alt=f"{', '.join(said)} {unit} per question.",
        caption="Up and to the left is better. Lines show the 95 % interval of EX (Wilson)." + lacking,
        height=3.3 + 0.2 * len(found),
    )


def _cost(summary: Summary, unit: str) -> float | None:
    if unit == "dollars":
        return summary.cost("usd").mean
    parts = [summary.cost(name).mean for name in ("input_tokens", "output_tokens")]
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
