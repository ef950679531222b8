"""The plots of a report: small SVG pictures of what a summary says.

matplotlib (the extra ``plots``) is imported when something is drawn. The same summary gives the same bytes.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorum.evals.recorded.curves import STYLE
from quorum.evals.reports.charts import INK, Drawing, confidence, costs, scores
from quorum.evals.reports.summary import Summary
from quorum.knowledge.errors import missing_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    """The plots of one evaluation, in the order of reports.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    return [plot_of(summary, title) for title in CHARTS]


def plot_of(summary: Summary, title: str) -> Plot:
    """The plot of that title (a key of ``CHARTS``).

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    return _plot(title, CHARTS[title](summary))


def scatter_of(summaries: Sequence[Summary]) -> Plot:
    """EX against cost of several evaluations.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    return _plot("EX against cost", scores.scatter(summaries))


CHARTS: dict[str, Callable[[Summary], Drawing | str]] = {
    "EX by difficulty": scores.by_difficulty,
    "EX by database": scores.by_database,
    "Reliability of the confidence": confidence.reliability,
    "Risk by coverage": confidence.risk_coverage,
    "Tokens per question": costs.tokens,
    "Model calls per question": costs.calls,
    "What went wrong": costs.errors,
}
"""Title, and what draws it or says why there is nothing to draw."""


def _plot(title: str, drawing: Drawing | str) -> Plot:
    if isinstance(drawing, str):
        return Plot(title, why=drawing)
    return Plot(title, alt=f"{title}: {drawing.alt}", caption=drawing.caption, svg=_svg(drawing))


def _svg(drawing: Drawing) -> bytes:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("plots", "Drawing the page's plots", needs="matplotlib") from error
    with rc_context(LOOK), warnings.catch_warnings():  # type: ignore[arg-type,unused-ignore]
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # names of databases; tables have them
        figure = Figure(figsize=(WIDTH, drawing.height), layout="constrained")
        drawing.draw(figure)
        return _saved(figure)


def _saved(figure: Figure) -> bytes:
    written = io.BytesIO()
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return written.getvalue()
