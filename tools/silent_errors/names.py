"""Groups by a name that several things share."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from quorum.tools.silent_errors.cores import Core, Source
from quorum.tools.silent_errors.evidence import by, counted, listed, many, named, number, scalar, value
from quorum.tools.silent_errors.query import Query
from quorum.tools.silent_errors.suspicion import Kind, Rows, Trial

_NAME = re.compile(r"(?i)_?(name|title|label)s?$")
_PARTS = re.compile(
    r"(?i)(first|last|middle|sur|family|given|full|user|display|stage|company|screen|nick|short|long)_?$"
)
"""What may stand before ``name`` in any table."""
_DIFFERENT = re.compile(r"(?i)\b(different|distinct|unique)\b.{0,20}\b(name|title)s?\b")
"""What a question says that is about names, not about those who have them."""
EXAMPLES = 3
LEAST_SHARE = 0.5
"""Share of a table's rows that a name must tell apart to be taken for the name of what the rows are."""


def trials(query: Query) -> Iterator[Trial]:
    """One for each source by whose names, not by whose key, a SELECT groups, counts or lists."""
    for core in query.cores:
        groups = core.groups or []
        grouped = {each.name.casefold() for each in groups if isinstance(each, exp.Column)}
        for source in core.sources:
            names = [each for each in groups if is_own_name(core, source, each)]
            key = core.key(source)
            if names and len(key) == 1 and key[0].name.casefold() not in grouped:
                yield _trial(query, core, source, names, key[0])
        for node in core.aggregates:
            name = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else None
            if not isinstance(node, exp.Count) or not isinstance(name, exp.Column):
                continue
            owner = core.owner(name)
            key = core.key(owner) if owner and is_own_name(core, owner, name) else []
            alone = len(key) == 1 and len(node.this.expressions) == 1
            if owner and alone and not _DIFFERENT.search(query.question):
                yield _trial(query, core, owner, [name], key[0], node.this)


def is_own_name(core: Core, source: Source, group: exp.Expr | None) -> bool:
    """Whether a group is by the name of what the source's rows are: ``country_name`` is that of no city."""
    if not isinstance(group, exp.Column) or source.table is None or core.owner(group) is not source:
        return False
    found = _NAME.search(group.name)
    if found is None:
        return False
    before = group.name[: found.start()].casefold().replace("_", "")
    table = source.table.name.casefold().replace("_", "")
    return not before or bool(_PARTS.search(before)) or before[:4] in table


def _trial(
    query: Query,
    core: Core,
    source: Source,
    names: list[exp.Expr],
    key: exp.Column,
    counted_by: exp.Expr | None = None,
) -> Trial:
    """Of groups, or with ``counted_by`` of an aggregate's DISTINCT."""
    things = exp.alias_(exp.Count(this=exp.Distinct(expressions=[key])), "things")
    columns = [exp.alias_(each.copy(), f"name_{place}") for place, each in enumerate(names)]
    inner = core.grouped([*columns, things]) if counted_by is None else core.rows([*columns, things])
    if counted_by is not None:
        inner.set("group", exp.Group(expressions=[each.copy() for each in [*(core.groups or []), *names]]))
    for clause in ("with_", "having"):  # what two things have together, HAVING may leave out
        inner.set(clause, None)
    whole = [scalar(shown, source.node) for shown in (_different(names), exp.Count(this=exp.Star()))]
    shown = [*(exp.column(each.alias) for each in columns), exp.column("things")]
    rows = exp.select(*shown, exp.alias_(counted(), "shared"), *whole).from_(inner.subquery("groups_so"))
    rows = rows.where(exp.column("things") > number(1), copy=False)
    order = by(exp.column("things"), query.dialect, down=True)
    evidence = core.within(rows.order_by(order, copy=False).limit(EXAMPLES, copy=False))

    def tell(found: Rows) -> str:
        *_, shared, different, total = found[0]
        if different < LEAST_SHARE * total:  # a kind or a part, no name
            return ""
        width = len(names)
        each = [f"{' '.join(map(value, row[:width]))} for {row[width]}" for row in found]
        stand = "stands" if shared == 1 else "stand"
        groups = many(shared, "group", "groups")
        return f"By {named(names)}, {groups} {stand} for several rows of {source.node.name}: {listed(each)}."

    def mend() -> exp.Expr:
        tree, (place,) = query.copy(counted_by or core.select.args["group"])
        if counted_by is None:
            place.append("expressions", key.copy())
        else:
            place.set("expressions", [key.copy()])
        return tree

    return Trial(Kind.SHARED_NAME, evidence, tell, mend)


def _different(names: list[exp.Expr]) -> exp.Expr:
    """How many values the names have; of several the one that tells most apart is the last, mostly."""
    bare = [exp.column(name.this.copy()) for name in names]
    return exp.Count(this=exp.Distinct(expressions=[bare[-1]]))
