"""The report's page: one file that asks for nothing, holds everything, and warns before it counts."""

from __future__ import annotations

import base64
import re
import traceback
from pathlib import Path

import pytest

from quorum.evals.reports.evaluations import Opened
from quorum.evals.reports.plots import Plot
from quorum.evals.reports.report import notes, page_of, report
from quorum.evals.reports.templating import html_of
from tests.evals.conftest import HOSTILE
from tests.evals.evaluations import asked, opened, record, unanswered
from tests.pages import Page, alone

pytest.importorskip("vl_convert", reason="the extra quorum-sql[plots] is not installed")


ONE = Plot("One", alt="one: 1", caption="One.", svg=b"<svg xmlns='http://www.w3.org/2000/svg'/>")


@pytest.fixture
def html(pictured_evaluation: Opened, pictured_plots: list[Plot], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("quorum.evals.reports.report.plots_of", lambda found: pictured_plots)
    return page_of([pictured_evaluation], pictured_evaluation.folder)


def test_the_page_is_one_file_that_asks_for_nothing_and_escapes_what_others_say(html: str) -> None:
    page = alone(html)
    assert not re.search(r"src=[\"']http|<b>bank", html)
    assert HOSTILE in page.text


def test_the_page_has_every_plot_and_every_figure_of_the_markdown(
    pictured_evaluation: Opened, html: str
) -> None:
    page = Page(html)
    assert len(page.images) == 2
    for image in page.images:
        data = image["src"].removeprefix("data:image/svg+xml;base64,")
        assert b"<svg" in base64.b64decode(data, validate=True)
        assert re.search(r"\d", image["alt"])
    markdown = report([pictured_evaluation])
    figures = re.findall(r"[\d.,]+ ?%|\d[\d.,]{2,}", markdown)
    assert len(figures) > 60
    assert [figure for figure in figures if figure.strip(".,") not in page.text] == []
    assert all(heading in page.text for heading in re.findall(r"^### (.+)$", markdown, flags=re.MULTILINE))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages get the same small picture for every plot: drawing takes time."""
    plots = [ONE, Plot("Two", why="There is no reason.")]
    monkeypatch.setattr("quorum.evals.reports.report.plots_of", lambda found: plots)


@pytest.mark.usefixtures("undrawn")
def test_warnings_come_before_figures(tmp_path: Path) -> None:
    records = [record("a", demonstration=True), record("b", match=None, gold="fails")]
    found = opened(tmp_path / "run", records, [asked(id) for id in "abc"], shard="2/3")
    page = Page(page_of([found], tmp_path)).text
    for text in (page, report([found])):
        before, _, _ = text.partition("Figures")
        assert len(list(notes(found))) == 4
        assert all(note in before for note in notes(found))
    assert "Not drawn: Two. There is no reason." in page
    assert "not asked yet" in page


@pytest.mark.usefixtures("undrawn")
def test_of_a_traceback_the_last_line_is_shown(tmp_path: Path) -> None:
    try:
        raise KeyError("lost")
    except KeyError as error:
        message = "".join(traceback.format_exception(error))
    html = page_of([opened(tmp_path / "run", [unanswered("a", "fault", message=message)])], tmp_path)
    assert "fault: KeyError: &#39;lost&#39;" in html
    assert __file__ not in html


def test_markdown_of_sections_becomes_tables_and_no_other_html() -> None:
    hostile = "![x](http://outside.invalid/a.png) <https://outside.invalid>"
    html = str(html_of(["| a | b |\n| --- | --: |\n| <b>x</b> | 1 |", hostile]))
    assert html.count('<table class="stack">') == 1
    assert '<td data-is="a">&lt;b&gt;x&lt;/b&gt;</td>' in html
    assert "<img" not in html
    assert "<a " not in html
