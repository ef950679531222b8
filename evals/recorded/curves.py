"""The weighted vote drawn: weights, error and regret over the questions, as in SSEV's Figures 15-20.

matplotlib (the extra ``plots``) is imported when something is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quorum.evals.recorded.online import DRAWN_EXPERT, OnlineWeights
from quorum.evals.reports.plots import STYLE, empty_figure
from quorum.knowledge.errors import QuorumError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWN = {
    "wma": ("WMA (weighted majority)", "#6aa5e0"),
    DRAWN_EXPERT: ("RWMA (expected)", "#d95f02"),
    "sql_majority": ("naive (majority of SQL)", "#7a7a7a"),
    "majority": ("majority of results", "#1b9e77"),
    "mbr": ("MBR (weighted)", "#d6569f"),
}
"""What the paper compares, and our own: label and colour."""

EXPERTS = ("#4c1d6b", "#b8860b", "#a5173c", "#2a7f9e", "#5d7a1f", "#8c564b", "#222222", "#c0559e")
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
            axes.set_xlabel("question, in the order of ids")
            axes.set_xlim(0, max(1, learned.questions))
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


def _weights(axes: Axes, learned: OnlineWeights) -> None:
    """Figures 15, 17, 19: how fast the weight goes to the stronger models."""
    for expert, colour in _coloured(learned):
        axes.step(
            range(learned.questions + 1), learned.shares(expert), where="post", color=colour, label=expert
        )
    even = 1 / len(learned.experts)
    axes.axhline(even, color="#7a7a7a", linestyle=":", label="unweighted vote")
    axes.set_title("Weights of the experts (WMA and RWMA, ε = √(ln N / t))")
    axes.set_ylabel("share of all weight")
    axes.set_ylim(0, 1)


def _error(axes: Axes, learned: OnlineWeights) -> None:
    """Figures 16, 18, 20: error rate so far, of the votes and of each expert."""
    for vote, (label, colour) in DRAWN.items():
        _line(axes, [each.mistakes / each.rounds for each in learned.bounds(vote)], label, colour)
    for expert, colour in _coloured(learned):
        lost = learned.experts[expert]
        rates = [sum(lost[:number]) / number for number in range(1, len(lost) + 1)]
        _line(axes, rates, f"{expert} alone", colour, "--")
    bounds = learned.bounds("wma")
    _bound(axes, [each.rwma / each.rounds for each in bounds], DRAWN_EXPERT, 1)
    _bound(axes, [each.wma / each.rounds for each in bounds], "wma", 1)
    axes.set_title("Error rate so far")
    axes.set_ylabel("mistakes / questions")
    axes.set_ylim(0, 1)


def _regret(axes: Axes, learned: OnlineWeights) -> None:
    """Figures 16, 18, 20: mistakes beyond those of the best expert so far, per question."""
    found = {vote: [each.regret or 0.0 for each in learned.bounds(vote)] for vote in DRAWN}
    for vote, (label, colour) in DRAWN.items():
        _line(axes, found[vote], label, colour)
    low, high = (edge(edge(regret) for regret in found.values()) for edge in (min, max))
    top = high + max(0.05, 0.2 * (high - low))
    bound = [(each.rwma - each.best) / each.rounds for each in learned.bounds(DRAWN_EXPERT)]
    _bound(axes, bound, DRAWN_EXPERT, top)
    axes.axhline(0, color="#222222", linewidth=0.8)
    axes.set_title("Average regret against the best expert so far")
    axes.set_ylabel("(mistakes - best expert's) / questions")
    axes.set_ylim(low - 0.05, top)


PLOTS: dict[str, Callable[[Axes, OnlineWeights], None]] = {
    "weights": _weights,
    "error": _error,
    "regret": _regret,
}


def _line(axes: Axes, values: Sequence[float], label: str, colour: str, style: str = "-") -> None:
    """The first line is wide, so that it stays visible under others."""
    width = 1.6 if axes.lines else 4.5
    axes.plot(range(1, len(values) + 1), values, style, color=colour, label=label, linewidth=width)


def _bound(axes: Axes, values: Sequence[float], vote: str, top: float) -> None:
    """A bound, if it is low enough to be visible."""
    if min(values) < top:
        _line(axes, values, f"bound of {DRAWN[vote][0].split()[0]}", DRAWN[vote][1], ":")


def _coloured(learned: OnlineWeights) -> Iterator[tuple[str, str]]:
    return ((expert, EXPERTS[n % len(EXPERTS)]) for n, expert in enumerate(learned.experts))
