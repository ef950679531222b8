"""dbt's semantic models and metrics, as ``semantic_manifest.json`` (and ``manifest.json``) has them.

The form is that of dbt-semantic-interfaces (see docs.getdbt.com/reference/artifacts/sl-manifest).
Descriptions of models, entities and dimensions become those of tables and columns; a dimension that is
computed is told in its table's description. An entity that is ``foreign`` in one model and ``primary`` (or
else ``unique``) in one other relates the two. Metrics have formulas of SQL over the models' columns
(``quorum.knowledge.dbt_formulas``) and stand at the table of their first measure; so do measures that no
metric uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from quorum.knowledge.dbt_formulas import Formulas, source_of
from quorum.knowledge.definitions import COLUMN, DefinedMetric, DefinedTable, Relationship, column_name
from quorum.knowledge.described import joined, listed
from quorum.knowledge.shapes import mapping, named, text


@dataclass(frozen=True)
class Semantics:
    """What semantic models and metrics define, as ``Definitions`` have it."""

    tables: tuple[DefinedTable, ...]
    relationships: tuple[Relationship, ...]
    notes: tuple[str, ...]


def is_semantic_manifest(content: Mapping[str, Any]) -> bool:
    """Whether a JSON object is dbt's semantic manifest."""
    return "semantic_models" in content and "metrics" in content and "nodes" not in content


def read_semantics(file: str, content: Mapping[str, Any]) -> Semantics:
    """What the models and metrics in a manifest define; a note names metrics that rest on no model."""
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
    """Metrics with the name of the model beside whose table they belong, and measures that none uses."""
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
    """Where an entity is foreign, and one other model has it as its key."""
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
