"""Pages in a real browser: plots visible, nothing on the console, nothing asked for outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from quorum.evals.reports.evaluations import Opened
from quorum.evals.reports.plots import Plot
from quorum.evals.reports.report import write_page
from tests.browser import Browser

pytest.importorskip("vl_convert", reason="the extra quorum-sql[plots] is not installed")
pytest.importorskip("PIL", reason="Pillow is not installed; it comes with quorum-sql[dev]")

ONE_PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="
WHITE = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='90' height='40'/%3E"

Write = Callable[[str], Path]


@pytest.fixture
def html(tmp_path: Path) -> Write:
    """Writes a page with this body."""

    def made(body: str) -> Path:
        page = tmp_path / "page.html"
        page.write_text(f"<!doctype html><html><body>{body}</body></html>")
        return page

    return made


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
    visit = browser.visit(page, width=width, dark=dark)
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


def test_questions_can_be_searched(browser: Browser, page: Path) -> None:
    typed = "const it = document.querySelector('.search'); it.value = 'Q07'"
    search = f"{{ {typed}; it.dispatchEvent(new Event('input')) }}"
    text = browser.visit(page, script=search).text
    assert "q07" in text.partition("each by itself")[2]
    assert "q08" not in text.partition("each by itself")[2]


def test_whatever_is_wrong_with_a_page_is_seen(browser: Browser, html: Write) -> None:
    """The checks above can fail: broken, hidden or blank images, requests, messages, too much width."""
    images = (
        '<img src="data:image/svg+xml;base64,AAAA" alt="broken" width="90" height="40">'
        f'<img src="{ONE_PIXEL}" style="display: none"><img src="{WHITE}" alt="blank">'
    )
    broken, hidden, blank = (visit := browser.visit(html(images))).images
    assert (broken.alt, broken.natural, broken.visible) == ("broken", 0, False)
    assert (hidden.natural, hidden.visible) == (1, False)
    assert (blank.visible, visit.colours(blank)) == (True, 1)

    outside = '<img src="http://outside.invalid/a.png"><img src="near.png"><div style="width: 3000px">a</div>'
    visit = browser.visit(html(outside))
    assert "http://outside.invalid/a.png" in visit.requests
    assert any(request.endswith("/near.png") for request in visit.requests)
    assert any("ERR_NAME_NOT_RESOLVED" in message for message in visit.messages)
    assert visit.width >= 3000

    policy = "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'\">"
    visit = browser.visit(html(f'{policy}<img src="http://outside.invalid/a.png">'))
    assert any("Content Security Policy" in message for message in visit.messages)
    visit = browser.visit(html("<script>console.error('so', 1); console.log('x'); missing();</script>"))
    assert visit.messages[:2] == ["error: so 1", "log: x"]
    assert "ReferenceError: missing is not defined" in visit.messages[2]
