"""The plots of a report: what is drawn, what is said where nothing can be, and the same bytes each time."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from quorum.evals.reports.evaluations import Opened
from quorum.evals.reports.plots import Plot, by_group, plots_of, reliability, scatter_of
from quorum.evals.reports.vega import WIDTH
from tests.evals.evaluations import asked, opened, record, unanswered, usage
from tests.evals.pictured import pictured

pytest.importorskip("vl_convert", reason="the extra quorum-sql[plots] is not installed")


@pytest.fixture
def plots(pictured_plots: list[Plot]) -> dict[str, Plot]:
    return {plot.title: plot for plot in pictured_plots}


def texts(plot: Plot) -> list[str]:
    root = ElementTree.fromstring(plot.svg)
    return [item.text or "" for item in root.iter("{http://www.w3.org/2000/svg}text")]


def test_every_plot_is_an_svg_that_asks_for_nothing(plots: dict[str, Plot]) -> None:
    assert len(plots) == 3
    for plot in plots.values():
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


def test_the_same_evaluation_gives_the_same_bytes(
    pictured_evaluation: Opened, plots: dict[str, Plot]
) -> None:
    assert {plot.title: plot for plot in plots_of(pictured_evaluation)} == plots


def test_words_say_what_the_pictures_show(plots: dict[str, Plot]) -> None:
    words = {
        "EX by difficulty": ": easy 75.0 % of 8, medium 62.5 % of 8, hard 62.5 % of 8.",
        "EX by database": "shop 66.7 % of 12",
        "Reliability of the confidence": ": 21 answers; ",
    }
    for title, said in words.items():
        assert said in plots[title].alt
    assert {"easy (8)", "medium (8)", "hard (8)", "EX"} <= set(texts(plots["EX by difficulty"]))


def test_names_are_text_whatever_they_hold_and_long_ones_are_cut(tmp_path: Path) -> None:
    names = [r"$\frac{1}{$", "数据库", "<script>", "W" * 40, "x') || alert('y"]
    questions = [asked(f"q{n}", database=name) for n, name in enumerate(names)]
    plot = by_group(opened(tmp_path / "run", [record(it.id) for it in questions], questions), "database")
    assert set(texts(plot)) >= {f"{name} (1)" for name in names if len(name) < 26}
    assert any(text.startswith("WWW") and "…" in text for text in texts(plot))
    assert b"<script>" not in plot.svg


def test_what_has_no_data_is_a_sentence(tmp_path: Path) -> None:
    empty = opened(tmp_path / "run", [unanswered("a", "endpoint")])
    plots = {plot.title: plot for plot in plots_of(empty)}
    missing = {title for title, plot in plots.items() if not plot.svg}
    assert len(missing) == 3
    assert all(plots[title].why.endswith(".") for title in missing)
    unknown = opened(tmp_path / "unknown", [record("a", match=None, gold="missing")])
    assert not by_group(unknown, "database").svg
    assert not reliability(unknown).svg


def test_many_databases_show_the_largest(tmp_path: Path) -> None:
    questions = [asked(f"d{n}-{k}", database=f"d{n}") for n in range(30) for k in range(1 + n % 2)]
    plot = by_group(opened(tmp_path / "run", [record(it.id) for it in questions], questions), "database")
    assert "The 24 of 30 databases with the most questions" in plot.caption
    assert all(f"d{n} 100.0 % of 2" in plot.alt for n in range(1, 30, 2))


def test_the_scatter_takes_dollars_if_all_have_a_price_and_says_who_is_not_on_it(tmp_path: Path) -> None:
    cheap, dear = pictured(tmp_path / "cheap"), pictured(tmp_path / "dear", right=20, tokens=30_000)
    plot = scatter_of([cheap, dear])
    assert "cheap 66.7 % at 0.01, dear 83.3 % at 0.01 dollars per question" in plot.alt
    assert {"cheap", "dear", "dollars per question (mean)", "EX"} <= set(texts(plot))
    free = opened(tmp_path / "free", [record("q00", usage=usage(usd=0.0))])
    assert "tokens per question" in scatter_of([cheap, free]).alt
    blind = opened(tmp_path / "blind", [record("a", match=None, gold="missing")])
    assert "Fewer than two" in scatter_of([cheap, blind]).why
    assert "Not drawn, for want of a score or a cost: blind." in scatter_of([cheap, dear, blind]).caption
