"""Semantic models of Apache Ossie, once Open Semantic Interchange (OSI), in YAML or JSON.

The form is that of github.com/apache/ossie, core-spec/spec.md and osi-schema.json, at the tag osi-0.1.1-rc1:
``version`` and a list ``semantic_model`` of models with ``datasets``, ``relationships`` and ``metrics``. The
drafts of 0.2 are read too: they add ``datatype``, and the later ones have one model at the root of the file.

- A dataset is the table that its ``source`` names. One that is a query is no table, and so is not read.
- A field that is a column's name describes that column; one that is computed is described in the table's
  description.
- A metric belongs to the table of the first dataset that its expression names, or of the only one that has a
  field it names. Datasets and fields become tables and columns in it.
- ``ai_context`` (instructions, synonyms, examples), ``custom_extensions`` and fields that the specification
  does not have follow the description of what they belong to, those of a relationship that of its first
  column; what a model says of itself, but for its extensions, is a note. Keys (``primary_key``,
  ``unique_keys``), ``datatype`` and the role ``dimension`` are left out, and so are values that are neither
  text nor a list of texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

from quorum.knowledge.definitions.descriptions import joined, listed
from quorum.knowledge.definitions.model import (
    DefinedMetric,
    DefinedTable,
    Definitions,
    Described,
    Relationship,
    column_in,
    column_name,
    mapping,
    mappings,
    named,
    table_names,
    text,
    texts,
)

KNOWN = ("0.1", "0.2")
"""The versions whose form is known, by their beginnings."""

_READ = {
    *("name", "description", "ai_context", "custom_extensions", "datasets", "relationships", "metrics"),
    *("source", "primary_key", "unique_keys", "fields", "expression", "dimension", "from", "to"),
    *("from_columns", "to_columns", "version", "dialects", "vendors", "datatype"),
}
_CONTEXT = {"instructions": "", "synonyms": "also called ", "examples": "asked for as "}
_DOTTED = re.compile(r"(?<![\w.\"'`])(\w+)\.(\w+)")
_YAML = re.compile(r"^semantic_model\s*:", re.MULTILINE)
_FLAT = (re.compile(r"^version\s*:\s*[\"']?0\.\d", re.MULTILINE), re.compile(r"^datasets\s*:", re.MULTILINE))


def looks_like_ossie(written: str) -> bool:
    """True if a YAML text has the keys of a semantic model at its root."""
    return bool(_YAML.search(written)) or all(key.search(written) for key in _FLAT)


def is_ossie(content: Mapping[str, Any]) -> bool:
    """True if the content of a file is a semantic model, of any version."""
    return bool(_models(content))


def read_ossie(file: str, content: Mapping[str, Any]) -> Definitions:
    """Read semantic models; a note says so if the version is not one of ``KNOWN``."""
    version, notes = text(content.get("version")), list[str]()
    if not version.startswith(tuple(f"{known}." for known in KNOWN)) and version not in KNOWN:
        known = " and ".join(KNOWN)
        notes.append(
            f"{file} is of OSI version {version or 'unknown'}, not {known}: it was read as far as it fits."
        )
    models = [_Model(model) for model in _models(content)]
    texts_of = [(model.name, _told({**model.content, "custom_extensions": None})) for model in models]
    homeless = [name for model in models for name in model.homeless]
    notes += [f"{file} has metrics of no dataset that is a table: {listed(homeless)}."] if homeless else []
    return Definitions(
        file,
        "OSI",
        tuple(table for model in models for table in model.tables),
        tuple(each for model in models for each in model.relationships),
        tuple(notes),
        tuple(f"{file}, model {name}: {said}" for name, said in texts_of if said),
    )


def _models(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The models: in a list or alone, and since 0.2 the whole file."""
    found = content.get("semantic_model")
    models = [found] if isinstance(found, dict) else mappings(found)
    flat = not models and not text(content.get("version")).startswith("0.1")
    models += [dict(content)] if flat and "version" in content else []
    return [model for model in models if isinstance(model.get("datasets"), list)]


class _Model:
    """One semantic model.

    Attributes:
        homeless: Names of the metrics that belong to no table.
    """

    def __init__(self, content: dict[str, Any]) -> None:
        self.content, self.name = content, text(content.get("name"))
        datasets = {_key(each["name"]): each for each in named(content, "datasets")}
        self._names = {name: table_names(text(each.get("source"))) for name, each in datasets.items()}
        self._sources = {
            name: {_key(item["name"]): _expression(item) for item in named(each, "fields")}
            for name, each in datasets.items()
        }
        self.homeless: list[str] = []
        metrics = self._metrics()
        related = mappings(content.get("relationships"))
        self.relationships = tuple(
            Relationship(*self._side(each, "from"), *self._side(each, "to")) for each in related
        )
        self.tables = tuple(
            self._table(name, each, related, metrics[name])
            for name, each in datasets.items()
            if self._names[name]
        )

    def _metrics(self) -> dict[str, list[DefinedMetric]]:
        found: dict[str, list[DefinedMetric]] = {name: [] for name in self._sources}
        for item in named(self.content, "metrics"):
            written = _expressions(item)
            home = self._home(" ".join(written.values()).casefold())
            if not self._names.get(home):
                self.homeless.append(text(item["name"]))
                continue
            expressions = {language: _DOTTED.sub(self._physical, each) for language, each in written.items()}
            found[home].append(DefinedMetric(text(item["name"]), expressions, _told(item)))
        return found

    def _home(self, written: str) -> str:
        """The dataset that expressions name first, or the only one that has a field they name."""
        words = [found[1] for found in _DOTTED.finditer(written)] + re.findall(r"\w+", written)
        first = next((word for word in words if word in self._sources), "")
        holders = {name for word in words for name, fields in self._sources.items() if word in fields}
        only = holders or set(self._sources)
        return first or (only.pop() if len(only) == 1 else "")

    def _physical(self, found: re.Match[str]) -> str:
        """``dataset.field`` as the table and the column behind them."""
        dataset = _key(found[1])
        names, source = self._names.get(dataset), self._sources.get(dataset, {}).get(_key(found[2]), "")
        return f"{names[-1]}.{source if column_in(source) else found[2]}" if names else found[0]

    def _table(
        self,
        name: str,
        dataset: Mapping[str, Any],
        related: Iterable[Mapping[str, Any]],
        metrics: Iterable[DefinedMetric],
    ) -> DefinedTable:
        about = Described(_told(dataset))
        for item in named(dataset, "fields"):
            about.add(text(item["name"]), _expression(item), _told(item))
        for each in related:
            _, columns = self._side(each, "from")
            if _key(each.get("from")) == name and columns:
                about.add_to_column(columns[0], _told(each))
        return DefinedTable(self._names[name], about.table, about.columns, tuple(metrics))

    def _side(self, item: Mapping[str, Any], side: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """A table's names and the columns of one side of a relationship: those of fields, or as written."""
        dataset = _key(item.get(side))
        sources = self._sources.get(dataset, {})
        columns = (
            column_in(sources.get(_key(c), "")) or column_name(c) for c in texts(item.get(f"{side}_columns"))
        )
        return self._names.get(dataset, ()), tuple(columns)


def _key(name: Any) -> str:
    """A name of a dataset or a field, as SQL compares them."""
    return text(name).casefold()


def _expressions(item: Mapping[str, Any]) -> dict[str, str]:
    """The expressions of a field or metric by dialect; one without a dialect has ""."""
    given = item.get("expression")
    found = {
        text(each.get("dialect")) or "ANSI_SQL": _as_written(each.get("expression"))
        for each in mappings(mapping(given).get("dialects"))
    }
    return found or ({"": _as_written(given)} if text(given) else {})


def _as_written(expression: Any) -> str:
    """Put an expression on one line, unless a comment in it would swallow the rest."""
    return expression.strip() if isinstance(expression, str) and "--" in expression else text(expression)


def _expression(item: Mapping[str, Any]) -> str:
    """A field's expression in standard SQL, else the first."""
    found = _expressions(item)
    return text(found.get("ANSI_SQL") or next(iter(found.values()), ""))


def _told(item: Mapping[str, Any]) -> str:
    """The description, the context for models, and what else is said in extensions and unknown fields."""
    context = item.get("ai_context")
    said = [("", item.get("description")), ("", None if isinstance(context, list) else context)]
    said += [(_CONTEXT.get(key, f"{text(key)}: "), value) for key, value in mapping(context).items()]
    said += [(f"{text(key)}: ", value) for key, value in item.items() if key not in _READ]
    extensions = mappings(item.get("custom_extensions"))
    said += [(f"{text(each.get('vendor_name'))}: ", each.get("data")) for each in extensions]
    parts = ((label, ", ".join(texts(value)) or text(value)) for label, value in said)
    return reduce(joined, (f"{label}{part}" for label, part in parts if part), "")
