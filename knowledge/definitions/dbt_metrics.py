"""dbt's semantic models and metrics, as ``semantic_manifest.json`` (and ``manifest.json``) has them.

The form is that of dbt-semantic-interfaces (see docs.getdbt.com/reference/artifacts/sl-manifest).
Descriptions of models, entities and dimensions become those of tables and columns; a dimension that is
computed goes into its table's description. An entity that is ``foreign`` in one model and ``primary`` (or
else ``unique``) in one other relates the two. Metrics have formulas of SQL over the models' columns
(``Formulas``: what MetricFlow would compute) and belong to the table of their first measure; so do measures
that no metric uses. A metric of other metrics has their formulas inside its own. A filter follows as
``FILTER (WHERE …)``; what SQL has no word for, in a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from quorum.knowledge.definitions.descriptions import joined, listed
from quorum.knowledge.definitions.model import (
    COLUMN,
    DefinedMetric,
    DefinedTable,
    Relationship,
    column_name,
    mapping,
    mappings,
    named,
    text,
)


@dataclass(frozen=True)
class Semantics:
    """Tables, relationships and notes of semantic models, as in ``Definitions``."""

    tables: tuple[DefinedTable, ...]
    relationships: tuple[Relationship, ...]
    notes: tuple[str, ...]


def is_semantic_manifest(content: Mapping[str, Any]) -> bool:
    """True if a JSON object is dbt's semantic manifest."""
    return "semantic_models" in content and "metrics" in content and "nodes" not in content


def read_semantics(file: str, content: Mapping[str, Any]) -> Semantics:
    """Read the models and metrics of a manifest; a note names metrics without a model."""
    models = {text(model["name"]): model for model in named(content, "semantic_models")}
    metrics: dict[str, list[DefinedMetric]] = {name: [] for name in models}
    homeless = []
    for name, metric in _metrics(content, models):
        if name in metrics:
            metrics[name].append(metric)
        else:
            homeless.append(metric.name)
    tables = [_table(model, tuple(metrics[name])) for name, model in models.items()]
    notes = [f"{file} has metrics of no semantic model: {listed(homeless)}."] if homeless else []
    return Semantics(tuple(filter(_tells, tables)), tuple(_relationships(models)), tuple(notes))


def _tells(table: DefinedTable) -> bool:
    return bool(table.names and (table.description or table.columns or table.metrics))


def _metrics(
    content: Mapping[str, Any], models: Mapping[str, dict[str, Any]]
) -> Iterator[tuple[str, DefinedMetric]]:
    """Yield metrics, and measures that no metric uses, each with the name of its model."""
    formulas = Formulas(models, {text(metric["name"]): metric for metric in named(content, "metrics")})
    for name, metric in formulas.metrics.items():
        if not mapping(metric.get("type_params")).get("is_private"):
            home, formula = formulas.home(name), formulas.metric(name)
            known = {"": formula} if formula != name else {}
            yield home, DefinedMetric(name, known, _told(metric) or formulas.meaning(name))
    for name, (home, measure) in formulas.measures.items():
        if name not in formulas.used | formulas.metrics.keys():
            yield home, DefinedMetric(name, {"": formulas.measure(name, home)}, _told(measure))


def _told(item: Mapping[str, Any]) -> str:
    """The label, unless it repeats the name, and the description."""
    label, name = text(item.get("label")), text(item.get("name"))
    same = label.casefold() == name.replace("_", " ").casefold()
    return joined("" if same else label, text(item.get("description")))


def _table(model: Mapping[str, Any], metrics: tuple[DefinedMetric, ...]) -> DefinedTable:
    columns: dict[str, str] = {}
    description = text(model.get("description"))
    for item in (*named(model, "entities"), *named(model, "dimensions")):
        said, source = text(item.get("description")), source_of(item)
        if COLUMN.fullmatch(source):
            key = column_name(source).casefold()
            columns |= {key: joined(columns.get(key, ""), said)} if said else {}
        else:
            meaning = f" ({said})" if said else ""
            description = joined(description, f"{text(item['name'])}{meaning} is {source}")
    return DefinedTable(_names(model), description, columns, metrics)


def _relationships(models: Mapping[str, dict[str, Any]]) -> Iterator[Relationship]:
    """Yield a relationship for each entity that is foreign here and the key of one other model."""
    keys: dict[tuple[str, str], list[tuple[dict[str, Any], str]]] = {}
    for model in models.values():
        for entity in named(model, "entities"):
            if COLUMN.fullmatch(source := source_of(entity)):
                place = text(entity.get("type")).lower(), text(entity["name"])
                keys.setdefault(place, []).append((model, column_name(source)))
    for (kind, name), places in keys.items():
        partners = keys.get(("primary", name)) or keys.get(("unique", name), [])
        if kind == "foreign" and len(partners) == 1:
            (there, partner), *_ = partners
            for here, column in places:
                if here is not there:
                    yield Relationship(_names(here), (column,), _names(there), (partner,))


def _names(model: Mapping[str, Any]) -> tuple[str, ...]:
    relation = mapping(model.get("node_relation"))
    keys = ("database", "schema_name", "alias")
    parts = [part for key in keys if (part := text(relation.get(key)))]
    return tuple(".".join(parts[i:]) for i in range(len(parts))) if text(relation.get("alias")) else ()


MAX_FORMULA = 1_000
"""Characters up to which a formula has those of other metrics inside; in a longer one they are named."""

_AGGREGATES = {
    "average": "AVG({})",
    "count_distinct": "COUNT(DISTINCT {})",
    "sum_boolean": "SUM(CASE WHEN {} THEN 1 ELSE 0 END)",
}
_ATOM = re.compile(r"[\w.]+|\w+\([^()]*\)")
_PLACE = re.compile(r"{{\s*\w+\(\s*[\"']([^\"']+)[\"'][^{}]*}}")


def source_of(item: Mapping[str, Any]) -> str:
    """The expression behind an entity, a dimension or a measure: its own name where it has none."""
    return text(item.get("expr")) or text(item.get("name"))


class Formulas:
    """The formulas of a project's metrics and measures.

    Attributes:
        metrics: By name.
        measures: By name, each with the name of its model.
        used: Names of measures that metrics use.
    """

    def __init__(
        self, models: Mapping[str, Mapping[str, Any]], metrics: Mapping[str, dict[str, Any]]
    ) -> None:
        self.metrics = metrics
        self.measures = {
            text(measure["name"]): (name, measure)
            for name, model in models.items()
            for measure in named(model, "measures")
        }
        self.used = {
            found for metric in metrics.values() for kind, found in _inputs(metric) if kind == "measure"
        }
        self._aliases = {
            name: text(mapping(model.get("node_relation")).get("alias")) for name, model in models.items()
        }
        self._known: dict[tuple[str, str], str] = {}
        self._homes: dict[str, str] = {}
        sources: dict[str, set[str]] = {}
        for model in models.values():
            for item in (*named(model, "entities"), *named(model, "dimensions")):
                sources.setdefault(text(item["name"]), set()).add(source_of(item))
        self._sources = {name: found.pop() for name, found in sources.items() if len(found) == 1}

    def home(self, name: str) -> str:
        """The model of the first measure that a metric rests on; empty if there is none."""
        if name not in self._homes:
            self._homes[name] = ""  # of a metric that rests on itself
            self._homes[name] = next(filter(None, self._sources_of(name)), "")
        return self._homes[name]

    def _sources_of(self, name: str) -> Iterator[str]:
        metric = self.metrics.get(name, {})
        yield text(_aggregation(metric).get("semantic_model"))
        for kind, found in _inputs(metric):
            yield self.home(found) if kind == "metric" else self.measures.get(found, ("", {}))[0]

    def meaning(self, name: str) -> str:
        """The description of the measure that a simple metric is."""
        metric = self.metrics[name]
        if metric.get("type") != "simple":
            return ""
        measure = _name(_parameters(metric).get("measure"))
        return text(self.measures.get(measure, ("", {}))[1].get("description"))

    def metric(self, name: str, home: str = "") -> str:
        """The formula of a metric beside the table of ``home``, its own model if none is named.

        Its name alone where it is unknown, rests on itself, or has grown too long to stand in another.
        """
        home = home or self.home(name)
        if (name, home) not in self._known:
            self._known[name, home] = name  # of a metric that rests on itself
            metric = self.metrics.get(name)
            if metric:
                formula = _filtered(self._formula(metric, home), self._conditions(metric))
                self._known[name, home] = formula or name
        return self._known[name, home]

    def measure(self, name: str, home: str) -> str:
        """The aggregate that a measure is."""
        model, measure = self.measures.get(name, ("", {}))
        if not measure:
            return name
        return self._aggregate(measure, source_of(measure), model, home)

    def _aggregate(self, item: Mapping[str, Any], source: str, model: str, home: str) -> str:
        remarks = []
        if model != home and (table := self._aliases.get(model)):
            remarks += [] if COLUMN.fullmatch(source) else [f"of {table}"]
            source = f"{table}.{source}" if COLUMN.fullmatch(source) else source
        kind = text(item.get("agg")).lower()
        formula = _AGGREGATES.get(kind, f"{kind.upper()}({{}})").replace("{}", source)
        if kind == "percentile":
            share = text(mapping(item.get("agg_params")).get("percentile"))
            formula = f"PERCENTILE_CONT({share}) WITHIN GROUP (ORDER BY {source})"
        if time := mapping(item.get("non_additive_dimension")):
            remarks.append(f"at the {text(time.get('window_choice'))} of {text(time.get('name'))} only")
        return _remarked(formula, remarks)

    def _formula(self, metric: dict[str, Any], home: str) -> str:
        given, kind = _parameters(metric), text(metric.get("type")).lower()
        if kind == "ratio":
            return " / ".join(self._part(given.get(side), home) for side in ("numerator", "denominator"))
        if kind == "derived":
            parts = {
                text(part.get("alias")) or text(part.get("name")): self._part(part, home)
                for part in mappings(given.get("metrics"))
            }
            written = text(given.get("expr"))
            whole = re.sub(r"\w+", lambda word: parts.get(word[0], word[0]), written[:MAX_FORMULA])
            return written if max(len(written), len(whole)) > MAX_FORMULA else whole
        if kind == "conversion":
            return self._conversion(mapping(given.get("conversion_type_params")), home)
        if aggregation := _aggregation(metric):
            source = text(aggregation.get("expr")) or source_of({**given, "name": metric.get("name")})
            formula = self._aggregate(aggregation, source, text(aggregation.get("semantic_model")), home)
        else:
            cumulated = mapping(given.get("cumulative_type_params")).get("metric")
            formula = self._input(given.get("measure"), home) or self._part(cumulated, home)
        return _remarked(formula, [_period(given)] if kind == "cumulative" else [])

    def _input(self, given: Any, home: str) -> str:
        name = _name(given)
        return _filtered(self.measure(name, home), self._conditions(mapping(given))) if name else ""

    def _part(self, given: Any, home: str) -> str:
        """A metric inside another."""
        name = _name(given)
        formula = self.metric(name, home)
        formula = _filtered(name if len(formula) > MAX_FORMULA else formula, self._conditions(mapping(given)))
        formula = formula if _ATOM.fullmatch(formula) else f"({formula})"
        offset, grain = (
            _window(mapping(given).get("offset_window")),
            text(mapping(given).get("offset_to_grain")),
        )
        earlier = [f"{offset} earlier"] if offset else [f"at the start of the {grain}"] if grain else []
        return _remarked(formula, earlier)

    def _conversion(self, given: Mapping[str, Any], home: str) -> str:
        sides = [
            self._input(given.get(f"{side}_measure"), home) or self._part(given.get(f"{side}_metric"), home)
            for side in ("conversion", "base")
        ]
        window = _window(given.get("window"))
        remark = f"converted by {text(given.get('entity'))}{f' within {window}' if window else ''}"
        rate = text(given.get("calculation")).lower() != "conversions"
        return _remarked(" / ".join(sides) if rate else sides[0], [remark])

    def _conditions(self, item: Mapping[str, Any]) -> str:
        """The filter of a metric or an input, with the columns that it means by its names."""
        given = mapping(item.get("filter"))
        found = mappings(given.get("where_filters")) or [given]
        written = [text(each.get("where_sql_template")) or "" for each in found]
        written += [text(item.get("filter"))]
        return " AND ".join(_PLACE.sub(self._place, each) for each in written if each)

    def _place(self, found: re.Match[str]) -> str:
        """``customer__region`` is the region, by whichever way it is reached."""
        name = found[1].rpartition("__")[2]
        return self._sources.get(name, name)


def _parameters(metric: Mapping[str, Any]) -> dict[str, Any]:
    return mapping(metric.get("type_params"))


def _aggregation(metric: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a metric without a measure aggregates (dbt 1.12 and newer)."""
    return mapping(_parameters(metric).get("metric_aggregation_params"))


def _name(given: Any) -> str:
    return text(given) or text(mapping(given).get("name"))


def _inputs(metric: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The measures and metrics that a metric uses, in their order, as (``measure`` or ``metric``, name)."""
    given = _parameters(metric)
    conversion = mapping(given.get("conversion_type_params"))
    cumulative = mapping(given.get("cumulative_type_params"))
    found: list[tuple[str, Any]] = [
        ("measure", given.get("measure")),
        ("metric", given.get("numerator")),
        ("metric", given.get("denominator")),
        *(("metric", each) for each in mappings(given.get("metrics"))),
        ("metric", cumulative.get("metric")),
        *(
            (kind, conversion.get(f"{side}_{kind}"))
            for side in ("base", "conversion")
            for kind in ("measure", "metric")
        ),
    ]
    yield from ((kind, name) for kind, each in found if (name := _name(each)))


def _window(given: Any) -> str:
    window = mapping(given)
    return f"{text(window.get('count'))} {text(window.get('granularity'))}" if window else ""


def _period(given: Mapping[str, Any]) -> str:
    own = mapping(given.get("cumulative_type_params"))
    window = _window(own.get("window")) or _window(given.get("window"))
    grain = text(own.get("grain_to_date")) or text(given.get("grain_to_date"))
    return f"cumulated over {window or (f'the {grain} to date' if grain else 'all time before')}"


def _filtered(formula: str, conditions: str) -> str:
    if not conditions:
        return formula
    aggregate = re.fullmatch(r"\w+\(.*\)", formula) and " FILTER " not in formula
    return (
        f"{formula} FILTER (WHERE {conditions})" if aggregate else _remarked(formula, [f"where {conditions}"])
    )


def _remarked(formula: str, remarks: list[str]) -> str:
    said = "; ".join(remark.replace("*/", "* /") for remark in remarks)
    return f"{formula} /* {said} */" if said and formula else formula
