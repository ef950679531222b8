"""Charts: which one a result has a shape for, what it declares, and that it is drawn."""

from __future__ import annotations

import datetime as dt
import json
import re
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from quorum.chart import BARS, MARKS, POINTS, Mark, chart_of, picture

pytest.importorskip("vl_convert", reason="the extra quorum-sql[plots] is not installed")

DAYS = [dt.date(2024, 1, 1) + dt.timedelta(days=9 * n) for n in range(10)]
CHANNELS = {"day": [day for day in DAYS for _ in "abc"], "channel": list("abc") * 10, "n": list(range(30))}

SHAPES: list[tuple[dict[str, Any], str, str, list[str], str]] = [
    ({"n": [3, 1], "channel": ["app", "web"]}, "bar", "channel", ["n"], ""),
    ({"customer_id": [7, 9], "total": [1.5, -2.0]}, "bar", "customer_id", ["total"], ""),
    ({"flag": [True, False], "n": [3, 1]}, "bar", "flag", ["n"], ""),
    ({"a": ["x", "x"], "b": ["y", "z"], "n": [1, 2]}, "bar", "a, b", ["n"], ""),
    ({"month": ["2024-01", "2024-02"], "n": [1, None]}, "line", "month", ["n"], ""),
    ({"quarter": ["2024-Q1", "2024-Q2"], "n": [1, 2]}, "line", "quarter", ["n"], ""),
    ({"at": [dt.datetime(2024, 1, 1, 6), dt.datetime(2024, 1, 2)], "n": [1, 2]}, "line", "at", ["n"], ""),
    ({"order_year": [2023, 2024], "n": [1, 2]}, "line", "order_year", ["n"], ""),
    (CHANNELS, "line", "day", ["n"], "channel"),
    ({"year": [2023, 2023], "month": [1, 2], "n": [1, 2]}, "bar", "year, month", ["n"], ""),
    ({"day": [*DAYS, DAYS[0]], "n": range(11)}, "bar", "day", ["n"], ""),  # a moment comes twice
    ({"price": [1.0, 2.0], "rating": [3, 4]}, "point", "price", ["rating"], ""),
    ({"code": ["2024-13", "2024-99"], "n": [1, 2]}, "bar", "code", ["n"], ""),  # no month
    ({"n": [0.1, float("nan")], "x": ["a", "b"]}, "bar", "x", ["n"], ""),
]


def test_a_result_has_the_chart_of_its_shape_and_it_is_drawn(subtests: pytest.Subtests) -> None:
    for columns, mark, across, measures, series in SHAPES:
        with subtests.test(across, mark=mark):
            chart = chart_of(pa.table(columns))
            assert (chart.mark, chart.across.name) == (mark, across)
            assert [each.name for each in chart.measures] == measures
            assert (chart.series.name if chart.series else "") == series
            assert chart.note == ""
            assert picture(chart) == picture(chart)  # the same rows make the same file
            spec = json.loads(chart.spec_text(), parse_constant=pytest.fail)
            assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")


@pytest.mark.parametrize("shape", [SHAPES[n] for n in (0, 1, 3, 4, 8, 9, 11)])
@pytest.mark.parametrize("mark", MARKS)
def test_a_chart_may_be_of_another_kind(
    shape: tuple[dict[str, Any], str, str, list[str], str], mark: Mark
) -> None:
    columns, own, across, measures, series = shape
    chart = chart_of(pa.table(columns), mark)
    assert (chart.mark, [each.name for each in chart.measures]) == (mark, measures)
    assert chart.across.name == across if mark == own or not series else "day" in chart.across.name
    drawn = picture(chart).decode()
    assert drawn.count("<path") > len(chart.across.values)  # a mark for each row
    labels = [str(value) for value in chart.across.values if chart.across.kind == "label"]
    assert all(f">{label}<" in drawn for label in labels)


NONE: list[tuple[dict[str, Any], str]] = [
    ({}, "two rows"),
    ({"n": [1], "x": ["a"]}, "two rows"),
    ({"x": ["a", "b"], "n": pa.array([None, None], pa.int64())}, "no column holds numbers"),
    ({"n": [1, 2], "x": [[1], [2]]}, "a single column of numbers"),
]


def test_a_result_without_such_a_shape_has_none() -> None:
    for columns, why in NONE:
        found = chart_of(pa.table(columns))
        assert why in found


def test_what_is_left_out_is_said() -> None:
    many = {"x": [f"x{n}" for n in range(300)], **{name: range(300) for name in ("n", "m", "o", "p", "q")}}
    chart = chart_of(pa.table(many))
    assert len(chart.across.values) == BARS
    assert chart.note == "the first 24 of 300 rows; not drawn: p, q"
    points = chart_of(pa.table({"a": [0.5 * n for n in range(5_000)], "b": range(5_000)}))
    assert len(points.measures[0].values) == POINTS
    assert points.note == "the first 2,000 of 5,000 rows"


def test_a_year_is_no_moment() -> None:
    chart = chart_of(pa.table({"order_year": [2023, 2024], "n": [1, 2]}))
    assert chart.spec()["vconcat"][0]["encoding"]["x"]["type"] == "ordinal"


def test_labels_are_text_whatever_they_hold() -> None:
    chart = chart_of(pa.table({"x": ["$\\frac$ <script>", "\x1b[31m\u202e 日本"], "n": [1, 2]}))
    svg = picture(chart).decode()
    assert "<script>" not in svg
    assert not re.search("[\x1b\u202e]", svg)


MONTHS = [dt.datetime(2022 + n // 12, n % 12 + 1, 1) for n in range(30)]
AXES: list[dict[str, Any]] = [
    {"date_trunc": MONTHS, "revenue": [1_234_567 * n for n in range(30)]},
    {"day": [dt.date(2024, 1, 1) + dt.timedelta(days=n * n) for n in range(20)], "n": range(20)},
    {"at": [dt.datetime(2024, 1, 1, 6) + dt.timedelta(hours=7 * n) for n in range(40)], "n": range(40)},
    {"city": ["a", "b"], "revenue": [1_200_000_000, 3_444_000_000]},
    {"price": [1_000_000, 9_999_999], "n": [1, 2]},
]


def axis(svg: bytes) -> list[tuple[float, str]]:
    """The places and texts of the labels below the lowest panel."""
    found: list[tuple[float, str]] = []
    last = re.search(r'role-axis-label.*?</g><g class="mark-rule role-axis-domain', svg.decode())
    for group in re.finditer(
        r'<text text-anchor="(\w+)" transform="translate\(([-\d.]+),[^>]*>(.*?)</text>', last[0]
    ):
        text = re.sub(r"<[^>]*>", " ", group[3]).split()[0]
        width = 5.6 * len(text)  # of its letters, at 10 pixels
        shift = {"start": 0.5, "middle": 0, "end": -0.5}[group[1]]
        found.append((float(group[2]) + shift * width, text))
    return sorted(found)


@pytest.mark.parametrize("columns", AXES)
def test_labels_of_an_axis_do_not_touch(columns: dict[str, Any]) -> None:
    chart = chart_of(pa.table(columns))
    labels = axis(picture(chart))
    assert len(labels) > 1
    for (left, one), (right, other) in pairwise(labels):
        assert right - left > 2.8 * (len(one) + len(other)) + 2, labels
    assert not any("…" in text for _, text in labels)
    if "date_trunc" in columns:
        assert (chart.across.values[0], labels[0][1]) == ("2022-01", "2022-01")
