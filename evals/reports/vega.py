"""Pictures from Vega-Lite specifications; vl-convert (the extra ``plots``) is imported when one is drawn.

A specification gives its data under the name ``rows``. Where labels may repeat, ``LABELS`` shows each row's
``label`` on an axis that has the rows' numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from quorum.knowledge.errors import missing_extra

Spec: TypeAlias = dict[str, Any]
Looks: TypeAlias = Mapping[str, tuple[str, Sequence[int]]]
"""The colour and dashes of each value of a field."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
INK, SOFT = "#1d2125", "#7b848d"
BLUE, GREEN, ORANGE, GREY = "#4e79a7", "#4b9a56", "#e2893a", "#b0b5ba"
HUES = (BLUE, ORANGE, GREEN, "#b07aa1", "#c9a227", "#e15759", "#5bb3b0", "#9c755f")

WIDTH = 350
"""Of a panel, in pixels: with its labels about 420, so letters stay readable on a phone."""

BAR = 20
"""Height of a bar with its gap, in pixels."""

LABEL = 26
"""Characters of a name on an axis."""

LABELS = "data('rows')[datum.value].label"
_SHORT = (
    "abs(datum.value) >= 1e12 ? format(datum.value / 1e12, ',.6~r') + ' T'"
    " : abs(datum.value) >= 1e9 ? format(datum.value / 1e9, ',.6~r') + ' bn'"
    " : abs(datum.value) >= 1e6 ? format(datum.value / 1e6, ',.6~r') + ' M'"
    " : format(datum.value, ',.6~r')"
)
"""Numbers of an axis, short enough to fit next to each other: ``1.5 M``, ``2,000``."""

_CONFIG = {
    "background": None,  # the page gives it, dark or light
    "view": {"stroke": None},
    "axis": {
        "domainColor": SOFT, "gridOpacity": 0.4, "labelColor": INK, "labelLimit": 190, "labelOverlap": True,
        "labelSeparation": 4, "tickColor": SOFT, "tickCount": 5, "titleColor": INK,
        "titleFontWeight": "normal", "titleLimit": WIDTH,
    },
    "axisQuantitative": {"labelExpr": _SHORT},
    "axisX": {"labelAngle": 0},
    "axisYPoint": {"grid": False},
    "axisYBand": {"grid": False},
    "legend": {"columns": 2, "labelColor": INK, "labelLimit": 230, "orient": "bottom", "symbolType": "stroke",
               "titleColor": INK, "titleFontWeight": "normal"},
    "line": {"point": {"size": 14}},
    "mark": {"color": BLUE},
    "point": {"filled": True, "opacity": 1, "size": 26},
    "range": {"category": list(HUES)},
    "text": {"color": INK},
}  # fmt: skip


def over(rows: Iterable[Mapping[str, Any]], **spec: Any) -> Spec:
    """Return the specification of a panel that shows rows."""
    return {"data": {"name": "rows", "values": list(rows)}, "width": WIDTH, **spec}


def axis(field: str, title: str | None, kind: str = "quantitative", **more: Any) -> Spec:
    """Return a channel that shows a field along an axis."""
    return {"field": field, "title": title, "type": kind, **more}


def legend(field: str, looks: Looks, symbol: str = "stroke") -> Spec:
    """Return the channels that give each value of a field its colour and dashes, with one legend below."""
    scale = {"domain": list(looks), "range": [colour for colour, _ in looks.values()]}
    dashes = {"domain": list(looks), "range": [list(dash) or [1, 0] for _, dash in looks.values()]}
    named: Spec = {"field": field, "type": "nominal", "title": None, "legend": {"symbolType": symbol}}
    return {"color": {**named, "scale": scale}, "strokeDash": {**named, "scale": dashes}}


def styled(spec: Mapping[str, Any]) -> Spec:
    """Return a specification with the look of all of Quorum's charts."""
    return {"$schema": SCHEMA, **spec, "config": _CONFIG}


def draw(spec: Mapping[str, Any], form: str = "svg") -> bytes:
    """Draw a specification as ``svg``, ``png`` or ``pdf``. The same one gives the same SVG and PNG.

    Raises:
        ConfigurationError: The extra ``plots`` is not installed.
    """
    try:
        import vl_convert
    except ImportError as error:
        raise missing_extra("plots", "Drawing charts", needs="vl_convert") from error
    given = styled(spec)
    asks_for_nothing: dict[str, Any] = {"allowed_base_urls": []}
    if form == "svg":
        return str(vl_convert.vegalite_to_svg(given, **asks_for_nothing)).encode()
    given["background"] = "white"
    if form == "png":
        return bytes(vl_convert.vegalite_to_png(given, scale=2, **asks_for_nothing))
    return bytes(vl_convert.vegalite_to_pdf(given, **asks_for_nothing))
