"""The report's page and plots: one file that asks for nothing, holds everything, warns before it counts."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from quorum.evals.reports.evaluations import Opened
from quorum.evals.reports.plots import Plot, by_group, plots_of
from quorum.evals.reports.report import notes, page_of, report, write_page
from quorum.evals.reports.templating import html_of
from quorum.evals.reports.vega import WIDTH
from tests.browser import Browser
from tests.evals.evaluations import asked, opened, record, unanswered
from tests.pages import Page, alone

pytest.importorskip("vl_convert", reason="the extra quorum-sql[plots] is not installed")


HOSTILE = '<script>alert("x")</script><img src="http://outside.invalid/a.png">'


@pytest.fixture(scope="session")
def pictured_evaluation(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """24 questions of three difficulties and two databases, the first 16 of them right; the last three have
    no answer.
    """
    places = [
        {"difficulty": ("easy", "medium", "hard")[n % 3], "database": ("shop", "$x$ <b>bank</b>")[n % 2]}
        for n in range(24)
    ]
    answers = [
        record(
            f"q{n:02}",
            question=f"{HOSTILE} {n}?",
            match=n < 16,
            reason="" if n < 16 else f"a value differs {HOSTILE}",
            confidence=(97 - 4 * n) / 100,
            **places[n],
        )
        for n in range(21)
    ]
    lost = [
        unanswered("q21", "endpoint", message=HOSTILE),
        unanswered("q22", "syntax"),
        unanswered("q23", "syntax", gold="differs"),
    ]
    questions = [asked(f"q{n:02}", **place) for n, place in enumerate(places)]
    return opened(tmp_path_factory.mktemp("pictured") / "run", [*answers, *lost], questions)


@pytest.fixture(scope="session")
def pictured_plots(pictured_evaluation: Opened) -> list[Plot]:
    """All plots of it."""
    return plots_of(pictured_evaluation)


def test_the_page_is_one_file_that_has_all_of_the_markdown_asks_for_nothing_and_escapes_what_others_say(
    pictured_evaluation: Opened, pictured_plots: list[Plot], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorum.evals.reports.report.plots_of", lambda found: pictured_plots)
    html = page_of([pictured_evaluation], pictured_evaluation.folder)
    page = alone(html)
    assert not re.search(r"src=[\"']http|<b>bank", html)
    assert HOSTILE in page.text
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


def test_warnings_come_before_figures_and_of_a_traceback_the_last_line_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plots = [Plot("Two", why="There is no reason.")]
    monkeypatch.setattr("quorum.evals.reports.report.plots_of", lambda found: plots)
    traceback = "Traceback (most recent call last)\n  File it.py\nKeyError: 'lost'\n"
    records = [record("a", demonstration=True), record("b", match=None, gold="fails")]
    records += [unanswered("d", "fault", message=traceback)]
    found = opened(tmp_path / "run", records, [asked(id) for id in "abcd"], shard="2/3")
    page = Page(page_of([found], tmp_path)).text
    for text in (page, report([found])):
        before, _, _ = text.partition("Figures")
        assert len(list(notes(found))) == 5
        assert all(note in before for note in notes(found))
    assert "Not drawn: Two. There is no reason." in page
    assert "not asked yet" in page
    assert "fault: KeyError: 'lost'" in page
    assert "it.py" not in page


def test_markdown_of_sections_becomes_tables_and_no_other_html() -> None:
    hostile = "![x](http://outside.invalid/a.png) <https://outside.invalid>"
    html = str(html_of(["| a | b |\n| --- | --: |\n| <b>x</b> | 1 |", hostile]))
    assert html.count('<table class="stack">') == 1
    assert '<td data-is="a">&lt;b&gt;x&lt;/b&gt;</td>' in html
    assert "<img" not in html
    assert "<a " not in html


# Plots: what is drawn, what is said where nothing can be, and that a browser shows them.


def texts(plot: Plot) -> list[str]:
    root = ElementTree.fromstring(plot.svg)
    return [item.text or "" for item in root.iter("{http://www.w3.org/2000/svg}text")]


def test_every_plot_is_an_svg_that_asks_for_nothing_and_says_in_words_what_it_shows(
    pictured_evaluation: Opened, pictured_plots: list[Plot]
) -> None:
    assert plots_of(pictured_evaluation) == pictured_plots, "the same evaluation, the same bytes"
    for plot in pictured_plots:
        root = ElementTree.fromstring(plot.svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert float(root.attrib["width"]) < WIDTH + 120, "letters are readable on a phone"
        links = [
            value for item in root.iter() for name, value in item.attrib.items() if name.endswith("href")
        ]
        assert all(link.startswith("#") for link in links)
        assert not re.search(rb"url\((?!#)", plot.svg)
        assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 5
        assert plot.caption
        assert not plot.why
    grades, confidence = pictured_plots
    assert grades.alt == "EX by difficulty: easy 75.0 % of 8, medium 62.5 % of 8, hard 62.5 % of 8."
    assert {"easy (8)", "medium (8)", "hard (8)", "EX"} <= set(texts(grades))
    assert confidence.alt.startswith("Reliability of the confidence: 21 answers; ")


def test_names_are_text_long_ones_are_cut_and_many_groups_show_the_largest(tmp_path: Path) -> None:
    names = [r"$\frac{1}{$", "数据库", "<script>", "W" * 40, "x') || alert('y"]
    questions = [asked(f"q{n}", database=name) for n, name in enumerate(names)]
    plot = by_group(opened(tmp_path / "run", [record(it.id) for it in questions], questions))
    assert set(texts(plot)) >= {f"{name} (1)" for name in names if len(name) < 26}
    assert any(text.startswith("WWW") and "…" in text for text in texts(plot))
    assert b"<script>" not in plot.svg
    questions = [asked(f"d{n}-{k}", database=f"d{n}") for n in range(30) for k in range(1 + n % 2)]
    plot = by_group(opened(tmp_path / "many", [record(it.id) for it in questions], questions))
    assert "The 24 of 30 with the most questions" in plot.caption
    assert all(f"d{n} 100.0 % of 2" in plot.alt for n in range(1, 30, 2))


@pytest.mark.parametrize("lacking", [unanswered("a", "endpoint"), record("a", match=None, gold="missing")])
def test_what_has_no_data_is_a_sentence(tmp_path: Path, lacking: object) -> None:
    plots = plots_of(opened(tmp_path / "run", [lacking, record("b", match=None, gold="missing")]))
    assert [bool(plot.svg) for plot in plots] == [False, False]
    assert all(plot.why.endswith(".") for plot in plots)


@pytest.mark.heavy
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (400, True)])
def test_a_report_is_seen_whole_and_its_questions_can_be_searched(
    browser: Browser, pictured_evaluation: Opened, tmp_path: Path, width: int, dark: bool
) -> None:
    write_page([pictured_evaluation], tmp_path / "page.html")
    typed = "const it = document.querySelector('.search'); it.value = 'Q07'"
    search = f"{{ {typed}; it.dispatchEvent(new Event('input')) }}"
    visit = browser.visit(tmp_path / "page.html", width=width, dark=dark, script=search)
    listed = visit.text.partition("each by itself")[2]
    assert ("q07" in listed, "q08" in listed) == (True, False)
    assert (visit.messages, visit.requests, visit.width) == ([], [], width), "nothing scrolls sideways"
    assert visit.cut == [] or width > 420, "nor does a table on a phone"
    assert len(visit.images) == 2
    for image in visit.images:
        assert image["width"] > 0.75 * min(width, 600)
        assert 0 <= image["x"] <= width - image["width"]
        assert image["colours"] > 20, image["alt"]
