"""What the plots of a report show: each function makes a ``Drawing``, or says why there is none."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from quorum.evals.recorded import curves
from quorum.evals.recorded.weights import BOUNDED, OnlineWeights
from quorum.evals.reports.format import amount, count, one_line, percent
from quorum.evals.reports.scores import Score
from quorum.evals.reports.statistics import Share
from quorum.evals.reports.summary import Line, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

INK, SOFT = "#1d2125", "#7b848d"
BLUE, GREEN, ORANGE, GREY = "#4e79a7", "#4b9a56", "#e2893a", "#b0b5ba"
HUES = (BLUE, ORANGE, GREEN, "#b07aa1", "#c9a227", "#e15759", "#5bb3b0", "#9c755f")
MARKS = "osD^vP*X"

BAR = 0.27
"""Height of a bar that lies, in inches."""

LABEL = 26
"""Characters of a name on an axis."""

DATABASES = 24
"""Bars that fit on a plot; the databases with the most questions are drawn."""

BINS = 14

CAPTION = (
    "Bars show EX over all questions asked for (their number stands behind the name), lines the 95 % "
    "interval (Wilson)."
)
UNSURE = "No answer has a confidence and is known to be right or wrong."


@dataclass(frozen=True)
class Drawing:
    """A plot to be drawn.

    Attributes:
        draw: Onto an empty figure.
        alt: What it shows, in words and figures.
        caption: How to read it.
        height: Of the figure, in inches.
    """

    draw: Callable[[Figure], None]
    alt: str
    caption: str
    height: float = 3.4


def by_difficulty(summary: Summary) -> Drawing | str:
    scores = _scored(summary, "difficulty")
    if not scores:
        return "The suite grades no difficulty, or all questions have the same one, or none can be scored."
    return _bars(scores, CAPTION)


def by_database(summary: Summary) -> Drawing | str:
    scores = _scored(summary, "database")
    if not scores:
        return "There is one database only, or no question can be scored."
    drawn = sorted(scores, key=lambda item: (-item[0].questions, item[0].label))[:DATABASES]
    drawn.sort(key=lambda item: (-(item[1].share or 0.0), -item[1].n, item[0].label))
    caption = CAPTION
    if len(drawn) < len(scores):
        caption += f" The {len(drawn)} of {len(scores)} databases with the most questions; the table has all."
    return _bars(drawn, caption)


def _scored(summary: Summary, part: str) -> list[tuple[Score, Share]]:
    groups = summary.slices.get(part, ())
    return [(score, score.ex) for score in groups if score.ex is not None and score.ex.n]


def _bars(scores: Sequence[tuple[Score, Share]], caption: str) -> Drawing:
    """EX of groups, the first on top."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for place, (_, it) in enumerate(scores):
            share = it.share or 0.0
            axes.barh(place, share, color=BLUE, alpha=0.75, height=0.72)
            axes.errorbar(share, place, xerr=_beside(it), color=INK, capsize=2.5, linewidth=1, fmt="none")
        axes.set_yticks(
            range(len(scores)), [f"{one_line(score.label, LABEL)} ({share.n})" for score, share in scores]
        )
        axes.set_ylim(len(scores) - 0.4, -0.6)
        axes.set_xlim(0, 1)
        axes.set_xlabel("EX")
        axes.grid(visible=False, axis="y")

    figures = ", ".join(f"{score.label} {percent(share.share)} of {share.n}" for score, share in scores)
    return Drawing(draw, alt=f"{figures}.", caption=caption, height=1.0 + BAR * max(3, len(scores)))


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
        else:
            axes.set_xlim(0, max(costs) * 1.1)
        _ticks(axes.xaxis, amount, powers=(1.0, 2.0, 5.0), integer=False)
        axes.set_xlabel(f"{unit} per question (mean)")
        axes.set_ylabel("EX")
        axes.set_ylim(0, 1)
        figure.legend(loc="outside lower center", ncols=1)

    figures = (f"{each.name} {percent(share.share)} at {amount(cost)}" for each, share, cost in found)
    absent = [each.name for each in summaries if each not in [drawn for drawn, _, _ in found]]
    lacking = f" Not drawn, for want of a score or a cost: {', '.join(absent)}." if absent else ""
    return Drawing(
        draw,
        alt=f"{', '.join(figures)} {unit} per question.",
        caption="Up and to the left is better. Lines show the 95 % interval of EX (Wilson)." + lacking,
        height=3.3 + 0.2 * len(found),
    )


def _cost(summary: Summary, unit: str) -> float | None:
    if unit == "dollars":
        return summary.cost("usd").mean
    parts = [summary.cost(name).mean for name in ("input_tokens", "output_tokens")]
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def reliability(summary: Summary) -> Drawing | str:
    found = summary.calibration
    if found is None:
        return UNSURE
    bins = [each for each in found.bins if each.n]
    figures = (f"{percent(each.confidence)} confident, {percent(each.accuracy)} right" for each in bins)

    def draw(figure: Figure) -> None:
        axes, counts = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        axes.plot((0, 1), (0, 1), "--", color=SOFT, linewidth=1.2)
        lows, rights = [each.low for each in bins], [each.accuracy for each in bins]
        widths = [each.high - each.low for each in bins]
        axes.bar(lows, rights, widths, align="edge", color=BLUE, alpha=0.35, edgecolor=BLUE)
        axes.plot([each.confidence for each in bins], rights, "o", color=BLUE, markersize=5)
        axes.set_ylabel("share right")
        axes.set_ylim(0, 1.02)
        bars = counts.bar(lows, [each.n for each in bins], 0.1, align="edge", color=GREY, edgecolor=SOFT)
        counts.bar_label(bars, fontsize=8, padding=1, color=INK)
        counts.margins(y=0.35)
        counts.set_ylabel("answers")
        counts.set_xlabel("confidence")
        counts.set_xlim(0, 1)

    return Drawing(
        draw,
        alt=f"{count(found.n, 'answer')}; {', '.join(figures)}.",
        caption=(
            "Above the dashed line answers are right more often than their confidence says, below it less "
            f"often; dots stand at the mean confidence. Brier {found.brier:.3f}, calibration error "
            f"{found.ece:.3f}."
        ),
        height=3.9,
    )


def risk_coverage(summary: Summary) -> Drawing | str:
    found = summary.calibration
    if found is None:
        return UNSURE
    points = [(point.coverage, point.risk) for point in found.curve]
    overall = 1 - found.accuracy

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        shares, risks = zip(*points, strict=True)
        axes.plot(shares, risks, "o-", color=BLUE, markersize=3, linewidth=1.8, label="by confidence")
        axes.axhline(overall, linestyle="--", color=SOFT, label="in random order")
        best = [(part / 100, max(0.0, part / 100 - found.accuracy) / (part / 100)) for part in range(1, 101)]
        axes.plot(*zip(*best, strict=True), ":", color=GREEN, linewidth=1.8, label="best order")
        axes.set_xlabel("coverage: share of the answers that are given")
        axes.set_ylabel("risk: share of wrong ones")
        axes.set_xlim(0, 1.02)
        axes.set_ylim(-0.02, min(1.02, max(*risks, overall) * 1.25 + 0.05))
        figure.legend(loc="outside lower center", ncols=3)

    return Drawing(
        draw,
        alt=(
            f"the surest {percent(points[0][0])} of the answers are wrong in {percent(points[0][1])}, "
            f"all of them in {percent(overall)}; area under the curve {found.aurc:.3f}."
        ),
        caption=(
            "If only the surest answers are given, how many of them are wrong. "
            f"Area under the curve {found.aurc:.3f}; the best order has {found.aurc_best:.3f}, "
            f"a random one {overall:.3f}."
        ),
    )


def tokens(summary: Summary) -> Drawing | str:
    lines = [(line, float(line.tokens)) for line in summary.lines if line.tokens is not None]
    return _histogram(lines, "tokens per question, in and out")


def calls(summary: Summary) -> Drawing | str:
    lines = [(line, float(line.model_calls)) for line in summary.lines if line.model_calls is not None]
    return _histogram(lines, "model calls per question")


Kind: TypeAlias = tuple[str, str, list[float]]  # name, colour, values


def _histogram(lines: Sequence[tuple[Line, float]], title: str) -> Drawing | str:
    """How many questions cost how much; right ones, wrong ones and those not known are stacked."""
    if not lines:
        return "No question has a ledger."
    kinds: list[Kind] = [
        ("right", GREEN, [value for line, value in lines if line.right]),
        ("wrong", ORANGE, [value for line, value in lines if line.right is False]),
        ("not known", GREY, [value for line, value in lines if line.right is None]),
    ]
    drawn = [kind for kind in kinds if kind[2]]
    bins, logarithmic = edges([value for _, value in lines])

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        names, colours, values = zip(*drawn, strict=True)
        axes.hist(values, bins=bins, stacked=True, color=colours, edgecolor="white", linewidth=0.5)
        if logarithmic:
            axes.set_xscale("log")
        low, high = axes.get_xlim()
        _ticks(axes.xaxis, "{:,.0f}".format, powers=(1.0, 2.0, 5.0) if high < 300 * low else (1.0,))
        axes.set_xlabel(title)
        axes.set_ylabel("questions")
        _ticks(axes.yaxis)
        axes.grid(visible=False, axis="x")
        _legend(figure, zip(names, colours, strict=True))

    means = ", ".join(f"{name} {amount(sum(values) / len(values))}" for name, _, values in drawn)
    return Drawing(draw, alt=f"mean of {title}: {means}.", caption=f"Means: {means}.")


def edges(values: Sequence[float]) -> tuple[list[float], bool]:
    """Borders of bins: one per number where there are few, else of equal width, or of equal ratio."""
    low, high = min(values), max(values)
    if all(value == int(value) for value in values) and high - low < 2 * BINS:
        return [low - 0.5 + step for step in range(int(high - low) + 2)], False
    if low > 0 and high / low > 10:
        ratio = (high / low) ** (1 / BINS)
        return [low * ratio**step for step in range(BINS)] + [high], True
    return [low + (high - low) * step / BINS for step in range(BINS)] + [high], False


def errors(summary: Summary) -> Drawing | str:
    found = [(each.name, len(each.ids), ORANGE) for each in summary.wrong]
    found += [(each.name, len(each.ids), SOFT) for each in summary.unanswered]
    if not found:
        return "No question that was asked is known to be wrong or unanswered."
    found.sort(key=lambda item: item[1])
    names = [name.replace("_", " ") for name, _, _ in found]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        places, colours = range(len(found)), [colour for _, _, colour in found]
        bars = axes.barh(places, [number for _, number, _ in found], color=colours)
        axes.set_yticks(places, [one_line(name, LABEL) for name in names])
        axes.bar_label(bars, padding=3, fontsize=9, color=INK)
        axes.margins(x=0.12)
        axes.set_xlabel("questions")
        _ticks(axes.xaxis)
        axes.grid(visible=False, axis="y")
        _legend(figure, (("wrong answer", ORANGE), ("no answer", SOFT)))

    figures = [f"{name} {number}" for name, (_, number, _) in zip(names, found, strict=True)]
    return Drawing(
        draw,
        alt=", ".join(reversed(figures)) + ".",
        caption="Each question that is not right stands in one category; the table says what they mean.",
        height=1.4 + BAR * len(found),
    )


def weights(summary: Summary) -> Drawing | str:
    learned = summary.learned["gold"]
    figures = {name: f"{weight:.3g}" for name, weight in learned.weights.items()}
    return _learned(learned, curves.weights, figures)


def error_rates(summary: Summary) -> Drawing | str:
    learned = summary.learned["gold"]
    lost = learned.experts | learned.votes
    return _learned(learned, curves.error, {name: percent(1 - learned.ex(own)) for name, own in lost.items()})


def regret(summary: Summary) -> Drawing | str:
    learned = summary.learned["gold"]
    figures = {vote: f"{learned.bounds(vote)[-1].regret:.3f}" for vote in learned.votes}
    return _learned(learned, curves.regret, figures)


def _learned(
    learned: OnlineWeights, plot: Callable[[Axes, OnlineWeights], None], figures: Mapping[str, str]
) -> Drawing:
    """A curve over the questions (``quorum.evals.recorded.curves``), with its figures at the end."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        plot(axes, learned)
        axes.set_title("")
        figure.legend(loc="outside lower center", ncols=1)

    told = ", ".join(f"{name} {each}" for name, each in figures.items())
    entries = len(learned.experts) + len(learned.votes) + len(BOUNDED)
    caption = f"After each question, by gold. {(inspect.getdoc(plot) or '').partition(': ')[2].capitalize()}"
    return Drawing(draw, f"after the last question {told}.", caption, 3.0 + 0.2 * entries)


def _ticks(
    axis: Axis,
    shown: Callable[[float], str] | None = None,
    *,
    powers: Sequence[float] = (1.0,),
    integer: bool = True,
) -> None:
    """A few round numbers on an axis.

    Args:
        shown: How a number is written; matplotlib's way if None.
        powers: Of each power of ten on a logarithmic axis.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    if axis.get_scale() == "log":
        axis.set_major_locator(LogLocator(subs=powers))
        axis.set_minor_formatter(NullFormatter())
    else:
        steps = [1, 2, 5, 10] if integer else None
        axis.set_major_locator(MaxNLocator(nbins=6, integer=integer, steps=steps, min_n_ticks=1))
    if shown:
        axis.set_major_formatter(FuncFormatter(lambda value, _: shown(value)))


def _legend(figure: Figure, entries: Iterable[tuple[str, str]]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=colour, label=name) for name, colour in entries]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
