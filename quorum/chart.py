"""A chart of a result's rows: chosen by the columns, declared as Vega-Lite, drawn by vl-convert.

Nothing that a model writes decides on it, let alone draws it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import pyarrow as pa

from quorum.evals.reports.vega import BAR, LABEL, LABELS, SCHEMA, WIDTH, Spec, axis, draw
from quorum.text import cell, cells, count
from quorum.tools.results.values import plain_column

BARS, POINTS, LINES, PANELS = 24, 2_000, 8, 3
"""The most bars, points, lines and panels; the chart says which rows are left out."""

LETTERS = 52
"""Letters of labels that fit side by side below a chart."""

TIMES = {
    4: "utcFormat(datum.value, '%Y')",
    7: "utcFormat(datum.value, '%Y-%m')",
    10: "utcFormat(datum.value, '%Y-%m-%d')",
    0: "[utcFormat(datum.value, '%Y-%m-%d'), utcFormat(datum.value, '%H:%M')]",
}
"""Labels of moments by the length of their texts: years, months, days; else a day with the time below."""
QUARTERS = "utcFormat(datum.value, '%Y-Q%q')"

_MOMENT = re.compile(r"(\d{4})(?:-(?:Q([1-4])|(\d\d)(?:-(\d\d)(?:[ T](\d\d):(\d\d).*)?)?))?")
_PLACES = {"field": "row", "type": "ordinal", "title": None, "axis": {"labelExpr": LABELS, "ticks": False}}
_STEP = re.compile(r"(?:.*_)?(?:year|quarter|month|week|day|hour)(?:_(?:no|num|number))?", re.IGNORECASE)
_KEY = re.compile(r"(?:.*_)?(?:id|key|code)", re.IGNORECASE)

ColumnKind = Literal["number", "moment", "step", "label", "other"]
Mark = Literal["bar", "line", "point"]
MARKS: tuple[Mark, ...] = get_args(Mark)


@dataclass(frozen=True)
class ChartColumn:
    """A column as a chart sees it: numbers to draw, moments in time, steps of it (``month``), or labels."""

    name: str
    kind: ColumnKind
    values: list[Any]


@dataclass(frozen=True)
class Chart:
    """A chart of some rows.

    Attributes:
        mark: Bars by label, lines over time, or points by two numbers.
        across: The labels, moments or numbers along which the rows lie.
        measures: What is drawn of them, a panel each.
        series: Tells the lines of a panel apart; None where there is one.
        note: What is left out, in words.
    """

    mark: Mark
    across: ChartColumn
    measures: tuple[ChartColumn, ...]
    series: ChartColumn | None = None
    note: str = ""

    @property
    def alt(self) -> str:
        """Return in words what it shows."""
        names = ", ".join(cell(each.name, LABEL) for each in self.measures)
        by = f" and {cell(self.series.name, LABEL)}" if self.series else ""
        return f"{names} by {cell(self.across.name, LABEL)}{by}, {count(len(self.across.values), 'row')}"

    def spec(self) -> Spec:
        """Return its Vega-Lite specification with the rows. Columns go by their place: names may repeat."""
        across = [_moment(value) or value for value in self.across.values]
        columns = {"c0": [_iso(each) if isinstance(each, datetime) else each for each in across]}
        columns |= {f"c{n}": measure.values for n, measure in enumerate(self.measures, 1)}
        if self.series:
            columns["series"] = [cell(value, 200) for value in self.series.values]
        if self.mark == "bar" or self.across.kind == "label":
            columns |= {
                "row": [*range(len(across))],
                "label": [cell(each, LABEL) for each in self.across.values],
            }
        if self.mark == "bar":
            for n, measure in enumerate(self.measures, 1):
                columns[f"text{n}"] = cells(measure.name, measure.values, limit=16)
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        panel = self._bars if self.mark == "bar" else self._marks
        return {
            "$schema": SCHEMA,
            "description": self.alt,
            "data": {"name": "rows", "values": rows},
            "vconcat": [panel(f"{n}", measure) for n, measure in enumerate(self.measures, 1)],
        }

    def _bars(self, number: str, measure: ChartColumn) -> Spec:
        text = {"type": "text", "align": {"expr": f"datum.c{number} < 0 ? 'right' : 'left'"}, "dx": 3}
        below = any(isinstance(value, int | float) and value < 0 for value in measure.values)
        scale = {"zero": True, **({"padding": 60} if below else {})}  # room for the bars' numbers
        return {
            "width": WIDTH - 110,
            "height": {"step": BAR},
            "encoding": {"y": _PLACES, "x": {**_numbers(f"c{number}", measure), "scale": scale}},
            "layer": [{"mark": "bar"}, {"mark": text, "encoding": {"text": {"field": f"text{number}"}}}],
        }

    def _marks(self, number: str, measure: ChartColumn) -> Spec:
        encoding = {"x": self._along(), "y": _numbers(f"c{number}", measure)}
        if self.series:
            encoding["color"] = axis("series", cell(self.series.name, LABEL), "nominal")
        mark = {"type": self.mark, "point": True} if self.mark == "line" else self.mark
        return {"width": WIDTH, "height": 180, "mark": mark, "encoding": encoding}

    def _along(self) -> Spec:
        if self.across.kind == "number":
            return _numbers("c0", self.across)
        if self.across.kind == "label":
            return {**_PLACES, "title": cell(self.across.name, 2 * LABEL)}
        title = cell(self.across.name, 2 * LABEL)
        if self.across.kind == "step":
            return axis("c0", title, "ordinal")
        texts = [value for value in self.across.values if value is not None]
        ticks = sorted({moment.timestamp() for text in texts if (moment := _moment(text))})
        longest = max(map(len, texts))
        form = QUARTERS if any("Q" in text for text in texts) else TIMES.get(longest, TIMES[0])
        values = [1000 * ticks[n] for n in _apart(ticks, min(longest, 10))]
        labels = {"values": values, "labelExpr": form, "labelOverlap": False, "labelFlush": False}
        return axis("c0", title, "temporal", scale={"type": "utc"}, axis=labels)

    def spec_text(self) -> str:
        return json.dumps(self.spec(), ensure_ascii=False, indent=1) + "\n"


def _numbers(field: str, column: ChartColumn) -> Spec:
    return axis(field, cell(column.name, 2 * LABEL), scale={"zero": False})


def _apart(places: Sequence[float], letters: int) -> list[int]:
    """Return the indices of labels that fit on the axis without touching, from the first on."""
    room = max(places) - min(places)
    shown: list[int] = []
    for n, place in enumerate(places):
        if not shown or place - places[shown[-1]] >= room * (letters + 2) / LETTERS:
            shown.append(n)
    return shown


def picture(chart: Chart, form: str = "svg") -> bytes:
    """Return the chart as SVG, PNG or PDF.

    Raises:
        ConfigurationError: The extra ``plots`` is not installed.
    """
    return draw(chart.spec(), form)


def chart_of(table: pa.Table, mark: Mark | None = None) -> Chart | str:
    """Return the chart that a result has a shape for, or the reason why it has none.

    Args:
        mark: Of another kind than the rows' own.
    """
    if table.num_rows < 2:
        return "a chart needs two rows."
    columns = [_column(name, table.column(n).slice(0, POINTS)) for n, name in enumerate(table.column_names)]
    numbers = [column for column in columns if column.kind == "number"]
    times = [column for column in columns if column.kind in ("moment", "step")]
    labels = [column for column in columns if column.kind == "label"]
    if not numbers:
        return "no column holds numbers to draw."
    lines = _lines(times[0], labels) if len(times) == 1 else False
    if lines is not False and mark != "bar":
        return _cut(mark or "line", times[0], numbers, table.num_rows, POINTS, lines)
    if times or labels:
        return _cut(mark or "bar", _joined([*labels, *times]), numbers, table.num_rows, BARS)
    if len(numbers) > 1:
        most = BARS if mark == "bar" else POINTS
        return _cut(mark or "point", numbers[0], numbers[1:], table.num_rows, most)
    return "a single column of numbers says nothing of what they belong to."


def _column(name: str, values: pa.ChunkedArray) -> ChartColumn:
    plain = plain_column(values)
    known = [value for value in plain if value is not None]
    if known and all(isinstance(value, str) for value in known):
        moments = all(_moment(value) is not None for value in known)
        if moments:  # a month as 2024-01, a day as 2024-01-31: as tables show them
            short = cells(name, plain)
            plain = [None if value is None else text for value, text in zip(plain, short, strict=True)]
        return ChartColumn(name, "moment" if moments else "label", plain)
    if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        whole = all(isinstance(value, int) for value in known)
        kinds: tuple[tuple[bool, ColumnKind], ...] = (
            (whole and bool(_STEP.fullmatch(name)), "step"),
            (whole and bool(_KEY.fullmatch(name)), "label"),
        )
        return ChartColumn(name, next((found for holds, found in kinds if holds), "number"), plain)
    simple = known and not any(isinstance(value, list | dict) for value in known)
    return ChartColumn(name, "label" if simple else "other", plain)


def _moment(value: Any) -> datetime | None:
    """Return a year, quarter, month, day or minute as the time of its start; None if it is none."""
    found = _MOMENT.fullmatch(value) if isinstance(value, str) else None
    if not found:
        return None
    year, quarter, month, day, hour, minute = (int(part) if part else 0 for part in found.groups())
    try:
        return datetime(year, 3 * quarter - 2 if quarter else month or 1, day or 1, hour, minute, tzinfo=UTC)
    except ValueError:
        return None


def _iso(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}" if moment.hour == moment.minute == 0 else f"{moment:%Y-%m-%dT%H:%MZ}"


def _lines(time: ChartColumn, labels: Sequence[ChartColumn]) -> ChartColumn | Literal[False] | None:
    """Return the labels of several lines over ``time``, None for one line; False if neither fits the rows."""
    if len(set(time.values)) == len(time.values) and None not in time.values:
        return None
    if len(labels) != 1 or len(set(labels[0].values)) > LINES or None in time.values:
        return False
    pairs = set(zip(time.values, labels[0].values, strict=True))
    return labels[0] if len(pairs) == len(time.values) else False


def _joined(columns: Sequence[ChartColumn]) -> ChartColumn:
    if len(columns) == 1:
        return columns[0]
    rows = zip(*(column.values for column in columns), strict=True)
    texts = [" · ".join(map(cell, row)) for row in rows]
    return ChartColumn(", ".join(column.name for column in columns), "label", texts)


def _cut(
    mark: Mark,
    across: ChartColumn,
    measures: Sequence[ChartColumn],
    rows: int,
    most: int,
    series: ChartColumn | None = None,
) -> Chart:
    """Return the chart of the first rows and measures, which says what it leaves out."""

    def head(column: ChartColumn) -> ChartColumn:
        return replace(column, values=column.values[:most])

    notes = [f"the first {most:,} of {count(rows, 'row')}"] if rows > most else []
    if left := [column.name for column in measures[PANELS:]]:
        notes.append(f"not drawn: {', '.join(cell(name, LABEL) for name in left)}")
    drawn = tuple(map(head, measures[:PANELS]))
    return Chart(mark, head(across), drawn, head(series) if series else None, "; ".join(notes))
