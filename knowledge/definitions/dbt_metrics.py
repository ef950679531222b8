"""dbt's semantic models and metrics, as ``semantic_manifest.json`` (and ``manifest.json``) has them.

The form is that of dbt-semantic-interfaces (see docs.getdbt.com/reference/artifacts/sl-manifest).
Descriptions of models, entities and dimensions become those of tables and columns; a dimension that is
computed goes into its table's description. An entity that is ``foreign`` in one model and ``primary`` (or
else ``unique``) in one other relates the two. Simple, ratio, derived and cumulative metrics have formulas of
SQL over the models' columns and belong to the table of their first measure; so do measures that no metric
uses. A metric of other metrics has their formulas inside its own. A filter follows as ``FILTER (WHERE …)``;
what SQL has no word for, in a comment, as the file says it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from quorum.knowledge.definitions.descriptions import joined, listed
from quorum.knowledge.definitions.model import (
    DefinedMetric,
    DefinedTable,
    Definitions,
    Described,
    Relationship,
    column_in,
    endings,
    mapping,
    mappings,
    named,
    text,
)

MAX_FORMULA = 1_000
"""Characters up to which a formula has those of other metrics inside; in a longer one they are named."""

_AGGREGATES = {
    "average": "AVG({})",
    "count_distinct": "COUNT(DISTINCT {})",
    "sum_boolean": "SUM(CASE WHEN {} THEN 1 ELSE 0 END)",
}
_ATOM = re.compile(r"[\w.]+|\w+\([^()]*\)")
_PLACE = re.compile(r"{{\s*\w+\(\s*[\"']([^\"']+)[\"'][^{}]*}}")


def is_semantic_manifest(content: Mapping[str, Any]) -> bool:
    """True if a JSON object is dbt's semantic manifest."""
    return "semantic_models" in content and "metrics" in content and "nodes" not in content


def read_semantics(file: str, content: Mapping[str, Any]) -> Definitions:
    """Read the models and metrics of a manifest; a note names metrics that have no formula or no model."""
    models = {text(model["name"]): model for model in named(content, "semantic_models")}
    metrics: dict[str, list[DefinedMetric]] = {name: [] for name in ("", *models)}
    formulas = _Formulas(models, {text(metric["name"]): metric for metric in named(content, "metrics")})
    for home, metric in formulas.all():
        metrics[home if home in models else ""].append(metric)
    tables = [_table(model, tuple(metrics[name])) for name, model in models.items()]
    others = listed([metric.name for metric in metrics[""]])
    notes = (f"{file} has metrics that are not read, or of no semantic model: {others}.",) if others else ()
    shown = (each for each in tables if each.names and (each.description or each.columns or each.metrics))
    return Definitions(file, "dbt", tuple(shown), tuple(_relationships(models)), notes)


def _table(model: Mapping[str, Any], metrics: tuple[DefinedMetric, ...]) -> DefinedTable:
    about = Described(text(model.get("description")))
    for item in (*named(model, "entities"), *named(model, "dimensions")):
        about.add(text(item["name"]), _source(item), text(item.get("description")))
    return DefinedTable(_names(model), about.table, about.columns, metrics)


def _relationships(models: Mapping[str, dict[str, Any]]) -> Iterator[Relationship]:
    """Yield a relationship for each entity that is foreign here and the key of one other model."""
    keys: dict[tuple[str, str], list[tuple[dict[str, Any], str]]] = {}
    for model in models.values():
        for entity in named(model, "entities"):
            if column := column_in(_source(entity)):
                place = text(entity.get("type")).lower(), text(entity["name"])
                keys.setdefault(place, []).append((model, column))
    for (kind, name), places in keys.items():
        partners = keys.get(("primary", name)) or keys.get(("unique", name), [])
        if kind == "foreign" and len(partners) == 1:
            (there, partner), *_ = partners
            for here, column in places:
                if here is not there:
                    yield Relationship(_names(here), (column,), _names(there), (partner,))


def _names(model: Mapping[str, Any]) -> tuple[str, ...]:
    relation = mapping(model.get("node_relation"))
    return endings(text(relation.get(key)) for key in ("database", "schema_name", "alias"))


def _source(item: Mapping[str, Any]) -> str:
    """The expression behind an entity, a dimension or a measure: its own name where it has none."""
    return text(item.get("expr")) or text(item.get("name"))


class _Formulas:
    """The formulas of a project's metrics and measures, by name."""

    def __init__(
        self, models: Mapping[str, Mapping[str, Any]], metrics: Mapping[str, dict[str, Any]]
    ) -> None:
        self._metrics = metrics
        self._measures = {
            text(measure["name"]): (name, measure)
            for name, model in models.items()
            for measure in named(model, "measures")
        }
        self._tables = {name: next(reversed(_names(model)), "") for name, model in models.items()}
        self._known: dict[tuple[str, str], str] = {}
        self._homes: dict[str, str] = {}
        sources: dict[str, set[str]] = {}
        for model in models.values():
            for item in (*named(model, "entities"), *named(model, "dimensions")):
                sources.setdefault(text(item["name"]), set()).add(_source(item))
        self._sources = {name: found.pop() for name, found in sources.items() if len(found) == 1}

    def all(self) -> Iterator[tuple[str, DefinedMetric]]:
        """Yield metrics, and measures that no metric uses, each with the name of its model."""
        used = {_name(_parameters(metric).get("measure")) for metric in self._metrics.values()}
        for name, metric in self._metrics.items():
            if not _parameters(metric).get("is_private"):
                home, formula = self._home(name), self._metric(name, self._home(name))
                known = {"": formula} if formula != name else {}
                yield home, DefinedMetric(name, known, _told(metric) or self._meaning(metric))
        for name, (home, measure) in self._measures.items():
            if name not in used | self._metrics.keys():
                yield home, DefinedMetric(name, {"": self._measure(name, home)}, _told(measure))

    def _home(self, name: str) -> str:
        """The model of the first measure that a metric rests on; empty if there is none."""
        if name not in self._homes:
            self._homes[name] = ""  # of a metric that rests on itself
            given = _parameters(self._metrics.get(name, {}))
            measure, _ = self._measures.get(_name(given.get("measure")), ("", {}))
            aggregated = text(mapping(given.get("metric_aggregation_params")).get("semantic_model"))
            parts = [given.get("numerator"), given.get("denominator"), *mappings(given.get("metrics"))]
            parts.append(mapping(given.get("cumulative_type_params")).get("metric"))
            others = (self._home(part) for part in filter(None, map(_name, parts)))
            self._homes[name] = aggregated or measure or next(filter(None, others), "")
        return self._homes[name]

    def _meaning(self, metric: Mapping[str, Any]) -> str:
        """The description of the measure that a simple metric is."""
        measure = _name(_parameters(metric).get("measure")) if metric.get("type") == "simple" else ""
        return text(self._measures.get(measure, ("", {}))[1].get("description"))

    def _metric(self, name: str, home: str) -> str:
        """Return the formula of a metric beside the table of ``home``; its name if it has none."""
        if (name, home) not in self._known:
            self._known[name, home] = name  # of a metric that rests on itself
            metric = self._metrics.get(name, {})
            formula = _filtered(self._formula(metric, home), self._conditions(metric))
            self._known[name, home] = formula or name
        return self._known[name, home]

    def _measure(self, name: str, home: str) -> str:
        """The aggregate that a measure is."""
        model, measure = self._measures.get(name, ("", {}))
        return self._aggregate(measure, _source(measure), model, home) if measure else name

    def _aggregate(self, item: Mapping[str, Any], source: str, model: str, home: str) -> str:
        remarks = _said(item, "agg_params", "non_additive_dimension")
        if model != home and (table := self._tables.get(model)):
            remarks += [] if column_in(source) else [f"of {table}"]
            source = f"{table}.{source}" if column_in(source) else source
        kind = text(item.get("agg")).lower()
        return _remarked(_AGGREGATES.get(kind, f"{kind.upper()}({{}})").replace("{}", source), remarks)

    def _formula(self, metric: Mapping[str, Any], home: str) -> str:
        given, kind = _parameters(metric), text(metric.get("type")).lower()
        if kind == "ratio":
            return " / ".join(self._part(given.get(side), home) for side in ("numerator", "denominator"))
        if kind == "derived":
            parts = {text(part.get("alias")) or _name(part): part for part in mappings(given.get("metrics"))}
            formulas = {name: self._part(part, home) for name, part in parts.items()}
            written = text(given.get("expr"))
            whole = re.sub(r"\w+", lambda word: formulas.get(word[0], word[0]), written[:MAX_FORMULA])
            return written if max(len(written), len(whole)) > MAX_FORMULA else whole
        own = mapping(given.get("cumulative_type_params"))
        if aggregation := mapping(given.get("metric_aggregation_params")):
            source = text(given.get("expr")) or text(metric.get("name"))
            formula = self._aggregate(aggregation, source, text(aggregation.get("semantic_model")), home)
        elif name := _name(given.get("measure")):
            formula = _filtered(self._measure(name, home), self._conditions(mapping(given["measure"])))
        else:
            formula = self._part(own.get("metric"), home)
        period = _said(given | own, "window", "grain_to_date")
        return _remarked(formula, ["cumulative", *period] if kind == "cumulative" else [])

    def _part(self, given: Any, home: str) -> str:
        """A metric inside another."""
        if not (name := _name(given)):
            return ""
        formula = self._metric(name, home)
        formula = _filtered(name if len(formula) > MAX_FORMULA else formula, self._conditions(mapping(given)))
        formula = formula if _ATOM.fullmatch(formula) else f"({formula})"
        return _remarked(formula, _said(mapping(given), "offset_window", "offset_to_grain"))

    def _conditions(self, item: Mapping[str, Any]) -> str:
        """The filter of a metric or an input, with the columns that it means by its names."""
        given = mapping(item.get("filter"))
        written = [each.get("where_sql_template") for each in mappings(given.get("where_filters")) or [given]]
        found = filter(None, map(text, (*written, item.get("filter"))))
        return " AND ".join(_PLACE.sub(self._place, each) for each in found)

    def _place(self, found: re.Match[str]) -> str:
        """``customer__region`` is the region, by whichever way it is reached."""
        name = found[1].rpartition("__")[2]
        return self._sources.get(name, name)


def _told(item: Mapping[str, Any]) -> str:
    """The label, unless it repeats the name, and the description."""
    label, name = text(item.get("label")), text(item.get("name"))
    same = label.casefold() == name.replace("_", " ").casefold()
    return joined("" if same else label, text(item.get("description")))


def _parameters(metric: Mapping[str, Any]) -> dict[str, Any]:
    return mapping(metric.get("type_params"))


def _name(given: Any) -> str:
    return text(given) or text(mapping(given).get("name"))


def _said(item: Mapping[str, Any], *keys: str) -> list[str]:
    """Return what an item says under some keys: ``offset window: count 1, granularity month``."""
    found = []
    for key in keys:
        parts = (f"{name} {text(value)}" for name, value in mapping(item.get(key)).items() if text(value))
        said = text(item.get(key)) or ", ".join(parts)
        found += [f"{key.replace('_', ' ')}: {said}"] if said else []
    return found


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
