"""What questions cost, right and wrong ones apart, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorum.evals.reports.charts import BAR, GREEN, GREY, INK, LABEL, ORANGE, SOFT, Drawing
from quorum.evals.reports.format import amount, one_line
from quorum.evals.reports.summary import Line, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BINS = 14


def tokens(summary: Summary) -> Drawing | str:
    lines = [(line, float(line.tokens)) for line in summary.lines if line.tokens is not None]
    return _histogram(lines, "tokens per question, in and out")


def calls(summary: Summary) -> Drawing | str:
    lines = [(line, float(line.model_calls)) for line in summary.lines if line.model_calls is not None]
    return _histogram(lines, "model calls per question")


def _histogram(lines: Sequence[tuple[Line, float]], title: str) -> Drawing | str:
    """How many questions cost how much; right ones, wrong ones and those not known are stacked."""
    if not lines:
        return "No question has a ledger."
    kinds = {
        "right": (GREEN, [value for line, value in lines if line.right]),
        "wrong": (ORANGE, [value for line, value in lines if line.right is False]),
        "not known": (GREY, [value for line, value in lines if line.right is None]),
    }
    edges, logarithmic = _edges([value for _, value in lines])

    def draw(figure: Figure) -> None:
        from matplotlib.ticker import MaxNLocator

        axes = figure.subplots()
        drawn = [(name, colour, values) for name, (colour, values) in kinds.items() if values]
        axes.hist(
            [values for _, _, values in drawn],
            bins=edges,
            stacked=True,
            color=[colour for _, colour, _ in drawn],
            edgecolor="white",
            linewidth=0.5,
        )
        if logarithmic:
            axes.set_xscale("log")
        _plain_ticks(axes)
        axes.set_xlabel(title)
        axes.set_ylabel("questions")
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))
        axes.grid(visible=False, axis="x")
        _legend(figure, [(name, colour) for name, colour, _ in drawn])

    means = (f"{name} {amount(sum(v) / len(v))}" for name, (_, v) in kinds.items() if v)
    said = ", ".join(means)
    return Drawing(draw, alt=f"mean of {title}: {said}.", caption=f"Means: {said}.")


def _edges(values: Sequence[float]) -> tuple[list[float], bool]:
    """Borders of bins: one per number where there are few, else of equal width, or of equal ratio."""
    low, high = min(values), max(values)
    if all(value == int(value) for value in values) and high - low < 2 * BINS:
        return [low - 0.5 + step for step in range(int(high - low) + 2)], False
    if low > 0 and high / low > 10:
        ratio = (high / low) ** (1 / BINS)
        return [low * ratio**step for step in range(BINS)] + [high], True
    return [low + (high - low) * step / BINS for step in range(BINS)] + [high], False


def _plain_ticks(axes: Axes) -> None:
    """Numbers of the x axis as 1,000 and not as a power, and not too many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    if axes.get_xscale() == "log":
        low, high = axes.get_xlim()
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 300 else (1.0,)))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def errors(summary: Summary) -> Drawing | str:
    found = [(each.name, len(each.ids), ORANGE) for each in summary.wrong]
    found += [(each.name, len(each.ids), SOFT) for each in summary.unanswered]
    if not found:
        return "No question that was asked is known to be wrong or unanswered."
    found.sort(key=lambda item: item[1])

    def draw(figure: Figure) -> None:
        from matplotlib.ticker import MaxNLocator

        axes = figure.subplots()
        names = [one_line(name.replace("_", " "), LABEL) for name, _, _ in found]
        bars = axes.barh(
            range(len(found)), [n for _, n, _ in found], color=[colour for _, _, colour in found]
        )
        axes.set_yticks(range(len(found)), names)
        axes.bar_label(bars, padding=3, fontsize=9, color=INK)
        axes.margins(x=0.12)
        axes.set_xlabel("questions")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))
        axes.grid(visible=False, axis="y")
        _legend(figure, (("wrong answer", ORANGE), ("no answer", SOFT)))

    return Drawing(
        draw,
        alt=", ".join(f"{name.replace('_', ' ')} {n}" for name, n, _ in reversed(found)) + ".",
        caption="Each question that is not right stands in one category; the table says what they mean.",
        height=1.4 + BAR * len(found),
    )


def _legend(figure: Figure, entries: Sequence[tuple[str, str]]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=colour, label=name) for name, colour in entries]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
