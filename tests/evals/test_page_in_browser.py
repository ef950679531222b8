"""Pages in a real browser: plots visible, nothing on the console, nothing asked for outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorum.evals.reports.evaluations import Opened
from quorum.evals.reports.plots import Plot
from quorum.evals.reports.report import write_page
from tests.browser import Browser

pytest.importorskip("vl_convert", reason="the extra quorum-sql[plots] is not installed")
pytest.importorskip("PIL", reason="Pillow is not installed; it comes with quorum-sql[dev]")


@pytest.fixture
def page(
    pictured_evaluation: Opened, pictured_plots: list[Plot], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    monkeypatch.setattr("quorum.evals.reports.report.plots_of", lambda summary: pictured_plots)
    write_page([pictured_evaluation], tmp_path / "page.html")
    return tmp_path / "page.html"


@pytest.mark.heavy
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (400, True)])
def test_a_report_is_seen_whole(browser: Browser, page: Path, width: int, dark: bool) -> None:
    """Its questions can be searched."""
    typed = "const it = document.querySelector('.search'); it.value = 'Q07'"
    search = f"{{ {typed}; it.dispatchEvent(new Event('input')) }}"
    visit = browser.visit(page, width=width, dark=dark, script=search)
    assert "q07" in visit.text.partition("each by itself")[2]
    assert "q08" not in visit.text.partition("each by itself")[2]
    assert visit.messages == []
    assert visit.requests == []
    assert visit.width == width  # nothing scrolls the page sideways
    assert visit.cut == [] or width > 420  # nor does a table on a phone
    assert len(visit.images) == 2
    for image in visit.images:
        assert image.visible, image.alt
        assert image.width > 0.75 * min(width, 600)
        assert 0 <= image.x <= width - image.width
        assert visit.colours(image) > 20, image.alt
