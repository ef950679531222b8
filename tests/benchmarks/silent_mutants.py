"""Wrong queries made from right ones: for each kind of silent error the ways in which one is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from quorum.knowledge.catalog import Catalog
from quorum.tools.silent_errors.cores import Core, Source, own_nodes
from quorum.tools.silent_errors.doubts import Kind, Query

Link = tuple[str, str, str, str]
"""A table and its column that refer to another table and its column; lower case."""
Edit = Callable[[exp.Expr], object]


@dataclass(frozen=True)
class Mutant:
    """A wrong query and the right one.

    Attributes:
        how: The error, in words.
        trap: The database on which the two differ: a name of ``silent_traps``; empty for the one as it is.
        question: Whether the question still asks for the right one.
    """

    kind: Kind
    how: str
    right: str
    wrong: str
    trap: str = ""
    question: bool = True


class Mutator:
    """Makes the mutants of one gold query."""

    def __init__(self, sql: str, catalog: Catalog, links: set[Link]) -> None:
        self.query = Query(sql, catalog)
        self.catalog = catalog
        self.links = sorted(links)

    def mutants(self) -> Iterator[Mutant]:
        """All of them; most change nothing in the result."""
        for core in self.query.cores:
            for make in MAKERS:
                yield from make(self, core)

    def sql(self, node: exp.Expr, edit: Edit) -> str:
        """The query with an edit of one of its nodes, in place."""
        tree, (found,) = self.query.copy(node)
        edit(found)
        return tree.sql(self.query.dialect)

    def mutant(
        self,
        kind: Kind,
        how: str,
        node: exp.Expr,
        wrong: Edit | None,
        right: Edit | None = None,
        trap: str = "",
        question: bool = True,
    ) -> Mutant:
        """A mutant by two edits of one node; None leaves it as it is."""
        texts = [self.sql(node, edit or (lambda _: None)) for edit in (right, wrong)]
        return Mutant(kind, how, texts[0], texts[1], trap, question)


def parsed(sql: str) -> exp.Expr:
    """An expression of SQLite."""
    from sqlglot import parse_one

    return parse_one(sql, dialect="sqlite")


def put(sql: str) -> Edit:
    """Replace a node; ``{0}`` stands for it."""
    return lambda node: node.replace(parsed(sql.format(node.sql("sqlite"))))


def add_condition(sql: str) -> Edit:
    """Add a condition to a SELECT."""
    return lambda select: select.where(parsed(sql), copy=False)  # type: ignore[attr-defined]


def named(source: Source) -> str:
    """How the query calls a source."""
    return source.name.sql("sqlite")


def fan_outs(self: Mutator, core: Core) -> Iterator[Mutant]:
    """DISTINCT dropped under a join; another child joined."""
    for node in core.aggregates:
        distinct = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else None
        source = core.owner(distinct) if isinstance(distinct, exp.Column) else None
        linked = any(distinct in pair for pair in core.links)
        if (
            len(core.sources) > 1
            and distinct is not None
            and source
            and (linked or distinct in core.key(source))
        ):
            yield self.mutant(
                Kind.FAN_OUT, "DISTINCT dropped", node.this, lambda d: d.replace(d.expressions[0].copy())
            )
    adding = [node for node in core.aggregates if isinstance(node, exp.Sum | exp.Avg | exp.Count)]
    adding = [node for node in adding if not isinstance(node.this, exp.Distinct)]
    stars = [node for node in adding if isinstance(node.this, exp.Star)]
    if not adding:
        return
    present = {source.table.name.lower() for source in core.sources if source.table}
    for source in core.sources:
        for child, own, parent, key in self.links if source.table else ():
            if parent != source.table.name.lower() or child in present:
                continue
            join = f'JOIN "{child}" AS joined ON joined."{own}" = {named(source)}."{key}"'

            def edit(
                select: exp.Expr,
                join: str = join,
                source: Source = source,
                key: str = key,
                stars: bool = bool(stars),
            ) -> None:
                _qualify(self, select)
                select.append("joins", parsed(f"SELECT 1 FROM x LEFT {join}").args["joins"][0])
                for star in [
                    n for n in own_nodes(select) if isinstance(n, exp.Count) and isinstance(n.this, exp.Star)
                ]:
                    star.set("this", parsed(f'{named(source)}."{key}"'))

            if stars and len(core.sources) == 1:
                plain = f"SELECT 1 FROM x LEFT {join}"
                yield self.mutant(
                    Kind.FAN_OUT,
                    "child joined, rows counted",
                    core.select,
                    lambda s, plain=plain: (
                        _qualify(self, s),
                        s.append("joins", parsed(plain).args["joins"][0]),
                    ),
                )
            if not stars or len(core.sources) == 1:
                yield self.mutant(
                    Kind.FAN_OUT, "child joined" + (", key counted" if stars else ""), core.select, edit
                )


def _qualify(self: Mutator, select: exp.Expr) -> None:
    """Say of each bare column whose it is, so that another table may be joined."""
    assert isinstance(select, exp.Select)
    core = Core(select, self.catalog)
    for column in list(core.columns(select)):
        owner = None if column.table else core.owner(column)
        if owner is not None:
            column.set("table", owner.name.copy())


def with_ties(select: exp.Expr) -> exp.Select | None:
    """``ORDER BY k LIMIT n`` as all rows whose rank is at most n."""
    order, limit = select.args.get("order"), select.args.get("limit")
    if not isinstance(select, exp.Select) or order is None or limit is None or select.args.get("distinct"):
        return None
    inner = select.copy()
    names = {item.alias.lower(): item.this for item in inner.expressions if isinstance(item, exp.Alias)}
    keys = []
    for key in order.copy().expressions:
        if isinstance(key.this, exp.Column) and key.this.name.lower() in names and not key.this.table:
            key.set("this", names[key.this.name.lower()].copy())
        keys.append(key)
    inner.set("order", None)
    inner.set("limit", None)
    outs = [f"out_{place}" for place in range(len(inner.expressions))]
    shown = [exp.alias_(item.unalias(), name) for item, name in zip(inner.expressions, outs, strict=True)]
    if any(item.is_star for item in inner.expressions):
        return None
    ranked = exp.Window(this=exp.Rank(), order=exp.Order(expressions=keys))
    with_ = inner.args.get("with_")
    inner.set("with_", None)
    inner.set("expressions", [*shown, exp.alias_(ranked, "place_")])
    made = (
        exp.select(*outs)
        .from_(inner.subquery("ranked"))
        .where(f"place_ <= {limit.expression.sql()}")
        .order_by("place_")
    )
    if with_:
        made.set("with_", with_.copy())
    return made


def cut_ties(self: Mutator, core: Core) -> Iterator[Mutant]:
    """LIMIT where all that share the place are wanted; row_number() for rank()."""
    select = core.select
    if self.query.tree is select and not select.args.get("offset"):
        for places in range(1, 9):
            limited = select.copy()
            if not limited.args.get("order") and core.groups and len(core.aggregates) == 1:
                shown = [place for place, item in enumerate(limited.expressions, 1) if item.find(exp.AggFunc)]
                if shown:
                    limited.set(
                        "order",
                        exp.Order(expressions=[exp.Ordered(this=core.aggregates[0].copy(), desc=True)]),
                    )
            limited.set("limit", exp.Limit(expression=exp.Literal.number(places)))
            ranked = with_ties(limited)
            how = "LIMIT" if select.args.get("limit") else "LIMIT added"
            for trap in ("", "ties") if ranked else ():
                yield Mutant(
                    Kind.CUT_TIES,
                    f"{how}{', ties made' if trap else ''}",
                    ranked.sql("sqlite"),
                    limited.sql("sqlite"),
                    trap,
                    question=False,
                )  # type: ignore[union-attr]
    elif (ranked := with_ties(select)) is not None:
        edit: Edit = lambda s: s.replace(ranked.copy())  # noqa: E731
        yield self.mutant(Kind.CUT_TIES, "LIMIT inside", select, None, edit, "ties", question=False)
    for node in own_nodes(select):
        if isinstance(node, exp.Rank | exp.DenseRank):
            for trap in ("", "ties"):
                yield self.mutant(
                    Kind.CUT_TIES, "ROW_NUMBER", node, put("ROW_NUMBER()"), None, trap, question=False
                )
        if isinstance(node, exp.RowNumber):
            yield self.mutant(Kind.CUT_TIES, "ROW_NUMBER", node, None, put("RANK()"), "ties", question=False)
        extreme = (
            not core.aggregates
            and isinstance(node, exp.EQ)
            and isinstance(node.expression, exp.Subquery)
            and node.expression.this
        )
        if isinstance(extreme, exp.Select) and isinstance(extreme.selects[0], exp.Max | exp.Min):
            down = isinstance(extreme.selects[0], exp.Max)

            def limited(found: exp.Expr, down: bool = down) -> None:
                key = found.this.copy()
                outer = found.find_ancestor(exp.Select)
                found.replace(exp.true())
                outer.set("order", exp.Order(expressions=[exp.Ordered(this=key, desc=down)]))  # type: ignore
                outer.limit(1, copy=False)  # type: ignore

            yield self.mutant(
                Kind.CUT_TIES, "extreme by LIMIT 1", node, limited, None, "ties", question=False
            )


def days(self: Mutator, core: Core) -> Iterator[Mutant]:
    """Bounds that are days over times."""
    import re

    kind, trap = Kind.CUT_DAY, "times"
    for node in core.conditions:
        between = isinstance(node, exp.Between)
        compares = isinstance(node, exp.LTE | exp.EQ | exp.GT)
        if (between or compares) and isinstance(node.this, exp.Column) and core.stored(node.this):
            column = node.this.sql("sqlite")
            texts = [
                each for each in (node.args.get("high"), node.args.get("expression")) if each is not None
            ]
            literal = [
                t for t in texts if isinstance(t, exp.Literal) and re.fullmatch(r"\d{4}-\d\d-\d\d", t.name)
            ]
            if literal or any(
                isinstance(t, exp.Anonymous | exp.Date | exp.TsOrDsToDate | exp.Cast) for t in texts
            ):
                yield self.mutant(
                    kind,
                    type(node).__name__,
                    node,
                    None,
                    lambda n, c=column: n.set("this", parsed(f"DATE({c})")),
                    trap,
                )
        year = (
            node.expression.name
            if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Literal)
            else ""
        )
        if (
            isinstance(node, exp.EQ)
            and re.fullmatch(r"(19|20)\d\d", year)
            and isinstance(node.this, exp.Func)
        ):
            found = list(node.this.find_all(exp.Column))
            if len(found) == 1 and core.stored(found[0]):
                column = found[0].sql("sqlite")
                yield self.mutant(
                    kind,
                    "year as BETWEEN",
                    node,
                    put(f"{column} BETWEEN '{year}-01-01' AND '{year}-12-31'"),
                    None,
                    trap,
                )
    for source in core.sources if len(core.sources) <= 3 else ():
        for column in source.table.columns if source.table else ():
            day = next((v[:10] for v in column.samples[1:2] if re.match(r"\d{4}-\d\d-\d\d", v)), "")
            name = f'{named(source)}."{column.name}"'
            if not day:
                continue
            for how, wrong, right in (
                (
                    "BETWEEN added",
                    f"{name} BETWEEN '1900-01-01' AND '{day}'",
                    f"DATE({name}) BETWEEN '1900-01-01' AND '{day}'",
                ),
                ("= added", f"{name} = '{day}'", f"DATE({name}) = '{day}'"),
                ("> added", f"{name} > '{day}'", f"DATE({name}) > '{day}'"),
            ):
                yield self.mutant(
                    kind, how, core.select, add_condition(wrong), add_condition(right), trap, question=False
                )
            break


def values(self: Mutator, core: Core) -> Iterator[Mutant]:
    """Literals in another case, or spelled otherwise."""
    kind = Kind.ABSENT_VALUE
    for node in own_nodes(core.select):
        literals = (
            node.expressions
            if isinstance(node, exp.In)
            else [node.expression]
            if isinstance(node, exp.EQ)
            else []
        )
        if not isinstance(node.this, exp.Column) or core.stored(node.this) is None:
            continue
        for literal in literals:
            if (
                not isinstance(literal, exp.Literal)
                or not literal.is_string
                or not any(map(str.isalpha, literal.name))
            ):
                continue
            text = literal.name
            changes = {
                "upper case": text.upper(),
                "lower case": text.lower(),
                "blank at the end": f"{text} ",
                "letter missing": text[:1] + text[2:] if len(text) > 4 else text,
                "letters swapped": text[:2] + text[3:4] + text[2:3] + text[4:] if len(text) > 4 else text,
                "plural": f"{text}s" if len(text) > 3 else text,
            }
            for how, changed in changes.items():
                if changed != text:
                    yield self.mutant(
                        kind, how, literal, lambda n, c=changed: n.replace(exp.Literal.string(c))
                    )


MAKERS = (fan_outs, cut_ties, days, values)
