"""Empty figures in the style of reports; matplotlib (the extra ``plots``) is imported when one is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from quorum.knowledge.errors import missing_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10,
    "grid.alpha": 0.3,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "svg.hashsalt": "quorum",  # the same curves make the same file
}


@contextmanager
def empty_figure(style: Mapping[str, Any], size: tuple[float, float]) -> Iterator[Figure]:
    """A figure of a size in inches to draw on, in a style.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("plots", "Drawing plots and curves", needs="matplotlib") from error
    with rc_context(dict(style)):  # type: ignore[arg-type,unused-ignore]
        yield Figure(figsize=size, layout="constrained")
