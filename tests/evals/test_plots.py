"""The plots of a report: what is drawn, what is said where nothing can be, and the same bytes each time."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from quorum.evals.reports.charts import Drawing, scatter
from quorum.evals.reports.charts import edges as bin_edges
from quorum.evals.reports.figures import empty_figure
from quorum.evals.reports.plots import CHARTS, LOOK, WIDTH, Plot, plot_of, plots_of, scatter_of
from quorum.evals.reports.summary import Summary, summaries
from quorum.knowledge.errors import ConfigurationError
from tests.evals.evaluations import asked, manifest, record, unanswered, usage, write
from tests.evals.pictured import pictured

matplotlib = pytest.importorskip("matplotlib", reason="the extra quorum-sql[plots] is not installed")


@pytest.fixture
def summary(pictured_summary: Summary) -> Summary:
    return pictured_summary


@pytest.fixture
def plots(pictured_plots: list[Plot]) -> dict[str, Plot]:
    return {plot.title: plot for plot in pictured_plots}


def summary_of(folder: Path, *records: object, **values: object) -> Summary:
    made = manifest([asked(each.id) for each in records], **values)  # type: ignore[attr-defined]
    (found,) = summaries([write(folder, made, records)])  # type: ignore[arg-type]
    return found


@pytest.mark.heavy
def test_every_plot_is_an_svg_that_asks_for_nothing(plots: dict[str, Plot]) -> None:
    assert list(plots) == list(CHARTS)
    for plot in plots.values():
        root = ElementTree.fromstring(plot.svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        links = [
            value for item in root.iter() for name, value in item.attrib.items() if name.endswith("href")
        ]
        assert all(link.startswith("#") for link in links)
        assert not re.search(rb"url\((?!#)", plot.svg)
        assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 10
        assert not plot.why


def test_the_same_summary_gives_the_same_bytes(summary: Summary, plots: dict[str, Plot]) -> None:
    for title in ("EX by difficulty", "Tokens per question"):
        assert plot_of(summary, title) == plots[title]
        assert b"<dc:date>" not in plots[title].svg


def test_words_say_what_the_pictures_show(plots: dict[str, Plot]) -> None:
    assert plots["EX by difficulty"].alt == (
        "EX by difficulty: easy 75.0 % of 8, medium 62.5 % of 8, hard 62.5 % of 8."
    )
    assert "shop 66.7 % of 12" in plots["EX by database"].alt
    assert plots["Reliability of the confidence"].alt.startswith(
        "Reliability of the confidence: 21 answers; "
    )
    assert "the surest 4.8 % of the answers are wrong in 0.0 %, all of them in 23.8 %" in (
        plots["Risk by coverage"].alt
    )
    assert "right 2.88, wrong 3.00." in plots["Model calls per question"].alt
    assert "values differ 5, syntax 2, endpoint 1." in plots["What went wrong"].alt
    for plot in plots.values():
        assert plot.caption


def test_no_letter_is_cut_off(tmp_path: Path) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    wide = [asked(f"q{n}", database="W" * 40 + str(n), difficulty="M" * 40 + str(n % 2)) for n in range(3)]
    folder = write(tmp_path / "W" / ("W" * 60), manifest(wide), [record("q0"), unanswered("q1", "W" * 50)])
    (found,) = summaries([folder])
    both = [found, pictured(tmp_path / ("M" * 60))]
    for drawing in [*(make(found) for make in CHARTS.values()), scatter(both)]:
        assert isinstance(drawing, Drawing)
        with rc_context(LOOK):
            figure = Figure(figsize=(WIDTH, drawing.height), layout="constrained")
            drawing.draw(figure)
            figure.draw_without_rendering()
            box = figure.get_tightbbox()
        assert box.x0 >= -0.01, drawing.alt
        assert box.y0 >= -0.01, drawing.alt
        assert box.x1 <= WIDTH + 0.01, drawing.alt
        assert box.y1 <= drawing.height + 0.01, drawing.alt


def test_names_are_no_formulas_and_missing_letters_no_warnings(tmp_path: Path) -> None:
    questions = [asked("a", database=r"$\frac{1}{$"), asked("b", database="数据库")]
    folder = write(tmp_path / "run", manifest(questions), [record("a"), record("b", match=False)])
    (found,) = summaries([folder])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plot_of(found, "EX by database").svg


def test_what_has_no_data_is_a_sentence(tmp_path: Path) -> None:
    empty = summary_of(tmp_path / "run", unanswered("a", "endpoint"))
    plots = {plot.title: plot for plot in plots_of(empty)}
    missing = {title for title, plot in plots.items() if not plot.svg}
    assert missing == set(CHARTS) - {"What went wrong"}
    assert all(plots[title].why.endswith(".") for title in missing)
    good = summary_of(tmp_path / "good", record("a"))
    assert "No question" in plot_of(good, "What went wrong").why
    assert plot_of(good, "Tokens per question").svg


def test_without_gold_no_score_is_drawn(tmp_path: Path) -> None:
    found = summary_of(tmp_path / "run", record("a", match=None, gold="missing"))
    plots = {plot.title: plot for plot in plots_of(found)}
    assert not plots["EX by database"].svg
    assert not plots["Risk by coverage"].svg
    assert "not known" in plots["Tokens per question"].alt


def test_many_databases_show_the_largest(tmp_path: Path) -> None:
    questions = [asked(f"d{n}-{k}", database=f"d{n}") for n in range(30) for k in range(1 + n % 2)]
    folder = write(tmp_path / "run", manifest(questions), [record(each.id) for each in questions])
    (found,) = summaries([folder])
    plot = plot_of(found, "EX by database")
    assert "The 24 of 30 databases with the most questions" in plot.caption
    assert all(f"d{n} 100.0 % of 2" in plot.alt for n in range(1, 30, 2))


@pytest.mark.parametrize(
    ("values", "bins", "logarithmic"),
    [
        ([3.0, 3.0, 4.0, 7.0], 5, False),
        ([0.0], 1, False),
        ([100.0, 200.0, 900.0], 14, False),
        ([100.0, 200.0, 90_000.0], 14, True),
        ([0.0, 90_000.0], 14, False),
    ],
)
def test_bins_hold_every_value(values: list[float], bins: int, logarithmic: bool) -> None:
    edges, log = bin_edges(values)
    assert (len(edges) - 1, log) == (bins, logarithmic)
    assert edges == sorted(set(edges))
    assert edges[0] <= min(values)
    assert edges[-1] >= max(values)


def test_the_scatter_takes_dollars_where_all_have_a_price_and_else_tokens(tmp_path: Path) -> None:
    cheap, dear = pictured(tmp_path / "cheap"), pictured(tmp_path / "dear", right=20, tokens=30_000)
    plot = scatter_of([cheap, dear])
    assert "cheap 66.7 % at 0.01, dear 83.3 % at 0.01 dollars per question" in plot.alt
    assert plot.svg.startswith(b"<?xml")
    free = summary_of(tmp_path / "free", record("q00", usage=usage(usd=0.0)))
    assert "tokens per question" in scatter_of([cheap, free]).alt


def test_the_scatter_says_who_is_not_on_it(tmp_path: Path) -> None:
    one, two = pictured(tmp_path / "one"), pictured(tmp_path / "two")
    blind = summary_of(tmp_path / "blind", record("a", match=None, gold="missing"))
    assert "Fewer than two" in scatter_of([one, blind]).why
    assert "Not drawn, for want of a score or a cost: blind." in scatter_of([one, two, blind]).caption


def test_without_matplotlib_the_extra_is_named(summary: Summary, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigurationError, match="pip install 'matplotlib>="):
        plots_of(summary)


def test_one_block_has_one_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []

    @contextmanager
    def kept(*given: Any) -> Iterator[Any]:
        with empty_figure(*given) as figure:
            drawn.append(figure)
            yield figure

    monkeypatch.setattr("quorum.evals.reports.plots.empty_figure", kept)
    same = [record(f"q{n}", usage=usage(model_calls=1)) for n in range(3)]
    plot_of(summary_of(tmp_path / "one", *same), "Model calls per question")
    (axes,) = drawn[0].axes
    low, high = axes.get_xlim()
    shown = [label for label in axes.get_xticklabels() if low <= label.get_position()[0] <= high]
    assert [label.get_text() for label in shown] == ["1"]
