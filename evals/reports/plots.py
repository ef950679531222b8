"""The plots of a report: small SVG pictures of what a summary says.

matplotlib (the extra ``plots``) is imported when something is drawn, a ConfigurationError where it is not
installed. The same summary gives the same bytes.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quorum.evals.reports import charts
from quorum.evals.reports.charts import INK, Drawing
from quorum.evals.reports.figures import STYLE, empty_figure
from quorum.evals.reports.summary import Summary

LOOK = STYLE | {
    "axes.axisbelow": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.titlesize": 11,
    "legend.fontsize": 9.5,
    "savefig.transparent": True,  # the page gives the background, dark or light
    "svg.fonttype": "path",  # the same letters everywhere
    "text.parse_math": False,  # a database may be called $x$
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
}
WIDTH = 4.9  # inches: at this width letters stay readable on a phone


@dataclass(frozen=True)
class Plot:
    """A picture, or why there is none.

    Attributes:
        alt: What it shows, in words and figures, for those who do not see it.
        caption: How to read it.
        svg: An SVG document; empty if ``why`` says that there is nothing to draw.
    """

    title: str
    alt: str = ""
    caption: str = ""
    svg: bytes = b""
    why: str = ""


def plots_of(summary: Summary) -> list[Plot]:
    """The plots of one evaluation, in the order of reports."""
    return [plot_of(summary, title) for title in (*CHARTS, *(EXPERTS if summary.learned else ()))]


def plot_of(summary: Summary, title: str) -> Plot:
    """The plot of that title (a key of ``CHARTS`` or ``EXPERTS``)."""
    return _plot(title, (CHARTS | EXPERTS)[title](summary))


def scatter_of(summaries: Sequence[Summary]) -> Plot:
    """EX against cost of several evaluations."""
    return _plot("EX against cost", charts.scatter(summaries))


CHARTS: dict[str, Callable[[Summary], Drawing | str]] = {
    "EX by difficulty": charts.by_difficulty,
    "EX by database": charts.by_database,
    "Reliability of the confidence": charts.reliability,
    "Risk by coverage": charts.risk_coverage,
    "Tokens per question": charts.tokens,
    "Model calls per question": charts.calls,
    "What went wrong": charts.errors,
}
"""Title, and what draws it or says why there is nothing to draw."""

EXPERTS: dict[str, Callable[[Summary], Drawing | str]] = {
    "Weights of the experts": charts.weights,
    "Error rate of experts and votes": charts.error_rates,
    "Regret against the best expert": charts.regret,
}
"""The same, for evaluations with several experts (``Summary.learned``)."""


def _plot(title: str, drawing: Drawing | str) -> Plot:
    if isinstance(drawing, str):
        return Plot(title, why=drawing)
    written = io.BytesIO()
    with empty_figure(LOOK, (WIDTH, drawing.height)) as figure, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # names of databases; tables have them
        drawing.draw(figure)
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return Plot(title, f"{title}: {drawing.alt}", drawing.caption, written.getvalue())
