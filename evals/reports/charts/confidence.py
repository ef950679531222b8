"""Whether confidence says how often answers are right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorum.evals.reports.charts import BLUE, GREEN, GREY, INK, SOFT, Drawing
from quorum.evals.reports.format import count, percent
from quorum.evals.reports.summary import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NONE = "No answer has a confidence and is known to be right or wrong."


def reliability(summary: Summary) -> Drawing | str:
    found = summary.calibration
    if found is None:
        return NONE
    bins = [each for each in found.bins if each.n]
    said = ", ".join(f"{percent(each.confidence)} confident, {percent(each.accuracy)} right" for each in bins)

    def draw(figure: Figure) -> None:
        axes, counts = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        axes.plot((0, 1), (0, 1), "--", color=SOFT, linewidth=1.2)
        for each in bins:
            axes.bar(
                each.low,
                each.accuracy,
                each.high - each.low,
                align="edge",
                color=BLUE,
                alpha=0.35,
                edgecolor=BLUE,
            )
        points = [(each.confidence, each.accuracy) for each in bins]
        axes.plot(*zip(*points, strict=True), "o", color=BLUE, markersize=5)
        axes.set_ylabel("share right")
        axes.set_ylim(0, 1.02)
        bars = counts.bar(
            [each.low for each in bins],
            [each.n for each in bins],
            0.1,
            align="edge",
            color=GREY,
            edgecolor=SOFT,
        )
        counts.bar_label(bars, fontsize=8, padding=1, color=INK)
        counts.margins(y=0.35)
        counts.set_ylabel("answers")
        counts.set_xlabel("confidence")
        counts.set_xlim(0, 1)

    return Drawing(
        draw,
        alt=f"{count(found.n, 'answer')}; {said}.",
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
        return NONE
    points = [(point.coverage, point.risk) for point in found.curve]
    overall = 1 - found.accuracy

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot(
            *zip(*points, strict=True), "o-", color=BLUE, markersize=3, linewidth=1.8, label="by confidence"
        )
        axes.axhline(overall, linestyle="--", color=SOFT, label="in random order")
        best = [(part / 100, max(0.0, part / 100 - found.accuracy) / (part / 100)) for part in range(1, 101)]
        axes.plot(*zip(*best, strict=True), ":", color=GREEN, linewidth=1.8, label="best order")
        axes.set_xlabel("coverage: share of the answers that are given")
        axes.set_ylabel("risk: share of wrong ones")
        axes.set_xlim(0, 1.02)
        axes.set_ylim(-0.02, min(1.02, max(risk for _, risk in [*points, (1, overall)]) * 1.25 + 0.05))
        figure.legend(loc="outside lower center", ncols=3)

    least = points[0]
    return Drawing(
        draw,
        alt=(
            f"the surest {percent(least[0])} of the answers are wrong in {percent(least[1])}, "
            f"all of them in {percent(overall)}; area under the curve {found.aurc:.3f}."
        ),
        caption=(
            "If only the surest answers are given, how many of them are wrong. "
            f"Area under the curve {found.aurc:.3f}; the best order has {found.aurc_best:.3f}, "
            f"a random one {overall:.3f}."
        ),
    )
