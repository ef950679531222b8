"""A chart of a result's rows: chosen by the columns, declared as Vega-Lite, drawn by matplotlib.

Nothing that a model writes decides on it, let alone draws it.
"""

from __future__ import annotations

import io
import json
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from quorum.evals.reports.charts import BAR, HUES, LABEL
from quorum.evals.reports.figures import empty_figure
from quorum.evals.reports.plots import LOOK, WIDTH
from quorum.text import cell, cells, count
from quorum.tools.results.values import plain_column

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

BARS, POINTS, LINES, PANELS = 24, 2_000, 8, 3
"""At most so many bars, points, lines and panels; rows that are left out are told."""

LETTERS = 52
"""Letters of labels that fit side by side below a chart."""

UNITS = ((1e12, " T"), (1e9, " bn"), (1e6, " M"))
"""How large numbers are shortened on an axis."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

_MOMENT = re.compile(r"(\d{4})(?:-(?:Q([1-4])|(\d\d)(?:-(\d\d)(?:[ T](\d\d):(\d\d).*)?)?))?")
_STEP = re.compile(r"(?:.*_)?(?:year|quarter|month|week|day|hour)(?:_(?:no|num|number))?", re.IGNORECASE)
_KEY = re.compile(r"(?:.*_)?(?:id|key|code)", re.IGNORECASE)

Kind = Literal["number", "moment", "step", "label", "other"]


@dataclass(frozen=True)
class Column:
    """A column as a chart sees it: numbers to draw, moments in time, steps of it (``month``), or labels."""

    name: str
    kind: Kind
    values: list[Any]


@dataclass(frozen=True)
class Chart:
    """What is drawn of some rows.

    Attributes:
        mark: Bars by label, lines over time, or points by two numbers.
        across: The labels, moments or numbers along which the rows lie.
        measures: What is drawn of them, a panel each.
        series: Tells the lines of a panel apart; None where there is one.
        note: What is left out, in words.
    """

    mark: Literal["bar", "line", "point"]
    across: Column
    measures: tuple[Column, ...]
    series: Column | None = None
    note: str = ""

    @property
    def alt(self) -> str:
        """What it shows, in words."""
        names = ", ".join(cell(each.name, LABEL) for each in self.measures)
        by = f" and {cell(self.series.name, LABEL)}" if self.series else ""
        return f"{names} by {cell(self.across.name, LABEL)}{by}, {count(len(self.across.values), 'row')}"

    def spec(self) -> dict[str, Any]:
        """Its Vega-Lite specification with the rows; columns go by their place, for names may repeat."""
        columns = [self.across, *self.measures, *([self.series] if self.series else [])]
        rows = zip(*(column.values for column in columns), strict=True)
        quarters = self.across.kind == "moment" and any("Q" in value for value in self.across.values)
        kinds = {
            "number": "quantitative", "moment": "ordinal" if quarters else "temporal", "step": "ordinal"
        }  # fmt: skip
        fields = {
            id(column): {"field": f"c{n}", "title": column.name, "type": kinds.get(column.kind, "nominal")}
            for n, column in enumerate(columns)
        }
        across = fields[id(self.across)] | ({"sort": None} if self.mark == "bar" else {})
        colour = {"color": fields[id(self.series)]} if self.series else {}
        axes = ("y", "x") if self.mark == "bar" else ("x", "y")
        return {
            "$schema": SCHEMA,
            "description": self.alt,
            "data": {"values": [{f"c{n}": value for n, value in enumerate(row)} for row in rows]},
            "vconcat": [
                {"mark": self.mark, "encoding": {axes[0]: across, axes[1]: fields[id(each)], **colour}}
                for each in self.measures
            ],
        }

    def spec_text(self) -> str:
        return json.dumps(self.spec(), ensure_ascii=False, indent=1) + "\n"


def chart_of(table: pa.Table) -> Chart | str:
    """The chart that a result has a shape for, or why it has none."""
    if table.num_rows < 2:
        return "a chart needs two rows."
    columns = [_column(name, table.column(n).slice(0, POINTS)) for n, name in enumerate(table.column_names)]
    numbers = [column for column in columns if column.kind == "number"]
    times = [column for column in columns if column.kind in ("moment", "step")]
    labels = [column for column in columns if column.kind == "label"]
    if not numbers:
        return "no column holds numbers to draw."
    if len(times) == 1 and (lines := _lines(times[0], labels)) is not False:
        return _cut("line", times[0], numbers, table.num_rows, POINTS, lines)
    if times or labels:
        return _cut("bar", _joined([*labels, *times]), numbers, table.num_rows, BARS)
    if len(numbers) > 1:
        return _cut("point", numbers[0], numbers[1:], table.num_rows, POINTS)
    return "a single column of numbers says nothing of what they belong to."


def _column(name: str, values: pa.ChunkedArray) -> Column:
    plain = plain_column(values)
    known = [value for value in plain if value is not None]
    if known and all(isinstance(value, str) for value in known):
        moments = all(_days(value) is not None for value in known)
        if moments:  # a month as 2024-01, a day as 2024-01-31: as tables show them
            short = cells(name, plain)
            plain = [None if value is None else text for value, text in zip(plain, short, strict=True)]
        return Column(name, "moment" if moments else "label", plain)
    if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        whole = all(isinstance(value, int) for value in known)
        kinds: tuple[tuple[bool, Kind], ...] = (
            (whole and bool(_STEP.fullmatch(name)), "step"),
            (whole and bool(_KEY.fullmatch(name)), "label"),
        )
        return Column(name, next((found for holds, found in kinds if holds), "number"), plain)
    simple = known and not any(isinstance(value, list | dict) for value in known)
    return Column(name, "label" if simple else "other", plain)


def _days(text: str) -> float | None:
    """A moment as days since the year 1; None for a text that is none."""
    found = _MOMENT.fullmatch(text)
    if not found:
        return None
    year, quarter, month, day, hour, minute = (int(part) if part else 0 for part in found.groups())
    try:
        start = date(year, 3 * quarter - 2 if quarter else month or 1, day or 1)
    except ValueError:
        return None
    return start.toordinal() + (60 * hour + minute) / 1440


def _lines(time: Column, labels: Sequence[Column]) -> Column | Literal[False] | None:
    """What tells lines over ``time`` apart, None for one line; False if neither makes a moment unique."""
    if len(set(time.values)) == len(time.values) and None not in time.values:
        return None
    if len(labels) != 1 or len(set(labels[0].values)) > LINES or None in time.values:
        return False
    pairs = set(zip(time.values, labels[0].values, strict=True))
    return labels[0] if len(pairs) == len(time.values) else False


def _joined(columns: Sequence[Column]) -> Column:
    if len(columns) == 1:
        return columns[0]
    rows = zip(*(column.values for column in columns), strict=True)
    texts = [" · ".join(map(cell, row)) for row in rows]
    return Column(", ".join(column.name for column in columns), "label", texts)


def _cut(
    mark: Literal["bar", "line", "point"],
    across: Column,
    measures: Sequence[Column],
    rows: int,
    most: int,
    series: Column | None = None,
) -> Chart:
    """The chart of the first rows and measures, which says what it leaves out."""

    def head(column: Column) -> Column:
        return Column(column.name, column.kind, column.values[:most])

    notes = [f"the first {most:,} of {count(rows, 'row')}"] if rows > most else []
    if left := [column.name for column in measures[PANELS:]]:
        notes.append(f"not drawn: {', '.join(cell(name, LABEL) for name in left)}")
    drawn = tuple(map(head, measures[:PANELS]))
    return Chart(mark, head(across), drawn, head(series) if series else None, "; ".join(notes))


def picture(chart: Chart, form: str = "svg") -> bytes:
    """The chart as SVG, PNG or PDF.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    bars = len(chart.across.values) if chart.mark == "bar" else 0
    panel = max(1.2, 0.5 + BAR * bars) if bars else 2.6
    written = io.BytesIO()
    size = (WIDTH, 0.3 + panel * len(chart.measures))
    with empty_figure(LOOK, size) as figure, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        panels = figure.subplots(len(chart.measures), 1, squeeze=False)[:, 0]
        for axes, measure in zip(panels, chart.measures, strict=True):
            (_draw_bars if bars else _draw_marks)(axes, chart, measure)
        transparent = {"transparent": form == "svg"}  # the page gives the background
        figure.savefig(written, format=form, metadata={"Date": None} if form == "svg" else {}, **transparent)
    return written.getvalue()


def _draw_bars(axes: Axes, chart: Chart, measure: Column) -> None:
    places = range(len(measure.values))
    drawn = axes.barh(
        places, [value or 0 for value in measure.values], color=HUES[0], alpha=0.75, height=0.72
    )
    axes.bar_label(drawn, cells(measure.name, measure.values, limit=16), padding=3, fontsize=9)
    axes.set_yticks(places, [cell(value, LABEL) for value in chart.across.values])
    axes.set_ylim(len(places) - 0.4, -0.6)
    axes.margins(x=0.15)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(cell(measure.name, 2 * LABEL))
    _few_numbers(axes.xaxis)


def _few_numbers(axis: Axis) -> None:
    """At most five numbers on an axis, short enough to stand beside each other: ``1.5 M``, ``2,000``."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    def short(value: float, _: object) -> str:
        unit, name = next((each for each in UNITS if abs(value) >= each[0]), (1, ""))
        return f"{value / unit:,.6g}{name}"

    axis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(short))


def _apart(places: Sequence[float], texts: Sequence[str]) -> list[int]:
    """Indices of the labels that fit on the axis without touching, from the first on."""
    room = max(places) - min(places)
    wide = max(max(map(len, text.split("\n"))) for text in texts) + 2
    kept: list[int] = []
    for n, place in enumerate(places):
        if not kept or place - places[kept[-1]] >= room * wide / LETTERS:
            kept.append(n)
    return kept


def _label(moment: Any) -> str:
    """A day, and below it the time to the minute."""
    return cell(moment).replace("T", " ").removesuffix(":00").replace(" ", "\n", 1)


def _draw_marks(axes: Axes, chart: Chart, measure: Column) -> None:
    over_time = chart.across.kind == "moment"
    places = [_days(value) if over_time and value else value for value in chart.across.values]
    groups = chart.series.values if chart.series else [None] * len(places)
    for number, group in enumerate(dict.fromkeys(groups)):
        rows = zip(groups, places, measure.values, strict=True)
        own = [(place, value) for name, place, value in rows if name == group and place is not None]
        if chart.mark == "line":
            own.sort(key=lambda point: point[0])
        across, up = [place for place, _ in own], [float("nan") if up is None else up for _, up in own]
        style = "-" if chart.mark == "line" else ""
        label = cell(group, LABEL) if chart.series else None
        axes.plot(across, up, "o", ls=style, markersize=3.5, color=HUES[number], label=label)
    if chart.mark == "line":
        moments = zip(places, chart.across.values, strict=True)
        texts = {float(place): _label(text) for place, text in moments if place is not None}
        ticks = sorted(texts)
        shown = [ticks[n] for n in _apart(ticks, [texts[place] for place in ticks])]
        axes.set_xticks(shown, [texts[place] for place in shown])
    else:
        _few_numbers(axes.xaxis)
    _few_numbers(axes.yaxis)
    if chart.series:
        axes.legend(title=cell(chart.series.name, LABEL), title_fontsize=9)
    axes.set_xlabel(cell(chart.across.name, 2 * LABEL))
    axes.set_ylabel(cell(measure.name, LABEL))
