"""The weighted vote drawn: weights, error and regret over the questions, as in SSEV's Figures 15-20.

matplotlib (the extra ``plots``) is imported when something is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quorum.evals.recorded.weights import DRAWN_EXPERT, DRAWN_ONCE, OnlineWeights
from quorum.evals.reports.figures import STYLE, empty_figure
from quorum.evals.reports.format import one_line
from quorum.knowledge.errors import QuorumError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWN = {
    "wma": ("WMA (weighted majority)", "#6aa5e0"),
    DRAWN_EXPERT: ("RWMA (expected)", "#d95f02"),
    DRAWN_ONCE: ("RWMA (drawn once)", "#f4b183"),
    "sql_majority": ("naive (majority of SQL)", "#7a7a7a"),
    "majority": ("majority of results", "#1b9e77"),
    "mbr": ("MBR (weighted)", "#d6569f"),
}
"""What the paper compares, and our own: label and colour."""

EXPERTS = ("#4c1d6b", "#b8860b", "#a5173c", "#2a7f9e", "#5d7a1f", "#8c564b", "#222222", "#c0559e")
LABEL = 26
"""Characters of an expert's name."""

FORMATS = ("svg", "png")
SIZE, DPI = (7.5, 4.4), 160  # inches, dots per inch of the PNG


def draw(learned: OnlineWeights, folder: Path) -> list[Path]:
    """Write ``weights``, ``error`` and ``regret`` as SVG and PNG; returns the files.

    Raises:
        ConfigurationError: matplotlib is not installed.
        QuorumError: The folder cannot be written to.
    """
    written = []
    for name, plot in PLOTS.items():
        with empty_figure(STYLE, SIZE) as figure:
            axes = figure.add_subplot()
            plot(axes, learned)
            axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
            for kind in FORMATS:
                path = folder / f"{name}.{kind}"
                try:
                    folder.mkdir(parents=True, exist_ok=True)
                    figure.savefig(path, dpi=DPI, metadata={"Date": None} if kind == "svg" else None)
                except OSError as error:
                    raise QuorumError(f"Cannot write {path}: {os.strerror(error.errno or 0)}.") from error
                written.append(path)
    return written


def weights(axes: Axes, learned: OnlineWeights) -> None:
    """Figures 15, 17, 19: how fast the weight goes to the stronger models."""
    for expert, colour in _coloured(learned):
        axes.step(
            range(learned.questions + 1),
            learned.shares(expert),
            where="post",
            color=colour,
            label=one_line(expert, LABEL),
        )
    even = 1 / len(learned.experts)
    axes.axhline(even, color="#7a7a7a", linestyle=":", label="unweighted vote")
    axes.set_title(f"Weights of the experts (WMA and RWMA, ε = √(ln N / {'T' if learned.rounds else 't'}))")
    axes.set_ylabel("share of all weight")
    axes.set_ylim(0, 1)
    _questions(axes, learned)


def error(axes: Axes, learned: OnlineWeights) -> None:
    """Figures 16, 18, 20: error rate so far, of the votes and of each expert."""
    for vote, (label, colour) in _drawn(learned).items():
        _line(axes, [each.mistakes / each.rounds for each in learned.bounds(vote)], label, colour)
    for expert, colour in _coloured(learned):
        lost = learned.experts[expert]
        rates = [sum(lost[:number]) / number for number in range(1, len(lost) + 1)]
        _line(axes, rates, f"{one_line(expert, LABEL)} alone", colour, "--")
    _bound(axes, learned, DRAWN_EXPERT, 0, 1)
    _bound(axes, learned, "wma", 0, 1)
    axes.set_title("Error rate so far")
    axes.set_ylabel("mistakes / questions")
    axes.set_ylim(0, 1)
    _questions(axes, learned)


def regret(axes: Axes, learned: OnlineWeights) -> None:
    """Figures 16, 18, 20: mistakes beyond those of the best expert so far, per question."""
    drawn = _drawn(learned)
    found = {vote: [each.regret or 0.0 for each in learned.bounds(vote)] for vote in drawn}
    for vote, (label, colour) in drawn.items():
        _line(axes, found[vote], label, colour)
    low, high = (edge(edge(each) for each in found.values()) for edge in (min, max))
    top = high + max(0.05, 0.2 * (high - low))
    _bound(axes, learned, DRAWN_EXPERT, 1, top)
    axes.axhline(0, color="#222222", linewidth=0.8)
    axes.set_title("Average regret against the best expert so far")
    axes.set_ylabel("(mistakes - best expert's) / questions")
    axes.set_ylim(low - 0.05, top)
    _questions(axes, learned)


PLOTS: dict[str, Callable[[Axes, OnlineWeights], None]] = {
    "weights": weights,
    "error": error,
    "regret": regret,
}


def _drawn(learned: OnlineWeights) -> dict[str, tuple[str, str]]:
    return {vote: look for vote, look in DRAWN.items() if vote in learned.votes}


def _questions(axes: Axes, learned: OnlineWeights) -> None:
    axes.set_xlabel("question, in the order of ids")
    axes.set_xlim(0, max(1, learned.questions))


def _line(axes: Axes, values: Sequence[float], label: str, colour: str, style: str = "-") -> None:
    """The first line is wide, so that it stays visible under others."""
    width = 1.6 if axes.lines else 4.5
    axes.plot(range(1, len(values) + 1), values, style, color=colour, label=label, linewidth=width)


def _bound(axes: Axes, learned: OnlineWeights, vote: str, less: int, top: float) -> None:
    """A vote's bound per question, ``less`` times the best expert's mistakes; if it holds and is visible."""
    bounds = learned.bounds(vote)
    limits = [each.wma if vote == "wma" else each.rwma for each in bounds]
    values = [(limit - less * it.best) / it.rounds for limit, it in zip(limits, bounds, strict=True)]
    if not learned.no_bound(vote) and min(values) < top:
        _line(axes, values, f"bound of {DRAWN[vote][0].split()[0]}", DRAWN[vote][1], ":")


def _coloured(learned: OnlineWeights) -> Iterator[tuple[str, str]]:
    return ((expert, EXPERTS[n % len(EXPERTS)]) for n, expert in enumerate(learned.experts))
