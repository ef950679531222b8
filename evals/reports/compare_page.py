"""A comparison as one self-contained HTML page."""

from __future__ import annotations

from quorum.evals.reports.compare_text import MEASURES, UNSCORED, notes, reading, result
from quorum.evals.reports.comparison import Comparison, Link
from quorum.evals.reports.templating import render


def page_of(comparison: Comparison, link: Link) -> str:
    """The page's HTML; ``link`` says where traces are found from it."""
    return render(
        "compare.html",
        found=comparison,
        link=link,
        notes=list(notes(comparison)),
        result=result(comparison),
        reading=reading(comparison),
        measure_head=MEASURES,
        unscored=UNSCORED,
    )
