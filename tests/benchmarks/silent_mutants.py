"""Wrong queries made from right ones: for each kind of silent error the ways in which one is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from quorum.knowledge.catalog import Catalog
from quorum.tools.silent_errors.cores import Core, Source, own_nodes
from quorum.tools.silent_errors.query import Query
from quorum.tools.silent_errors.suspicion import Kind

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
        yield from texts(self)

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


def lost_rows(self: Mutator, core: Core) -> Iterator[Mutant]:
    """LEFT JOIN made inner; rows that refer to nothing; a parent joined for nothing."""
    for join in core.joins:
        if join.side == "LEFT":
            yield self.mutant(Kind.LOST_ROWS, "LEFT dropped", join, lambda j: j.set("side", None))
    for join in core.joins if not any(join.side for join in core.joins) else ():
        joined = next(each for each in core.sources if each.join is join)
        for one, other in core.links if join.args.get("on") or join.args.get("using") else ():
            for own, far in ((one, other), (other, one)):
                child, parent = core.stored(own), core.stored(far)
                if child is None or parent is None or joined not in (child[0], parent[0]):
                    continue
                if core.sources.index(child[0]) + core.sources.index(parent[0]) >= 2 * core.sources.index(
                    joined
                ):
                    continue  # the other one comes later
                names = (child[0].table.name, child[1].name, parent[0].table.name, parent[1].name)  # type: ignore[union-attr]
                per_parent = any(
                    group == own or parent[0] in (core.owners(group) or [parent[0]])
                    for group in core.groups or ()
                )
                if tuple(map(str.lower, names)) in self.links and not per_parent:

                    def outer(
                        select: exp.Expr,
                        join: exp.Join = join,
                        right: bool = joined is child[0],
                        parent: tuple[Source, object] = parent,
                    ) -> None:
                        found = next(each for each in select.args["joins"] if each == join)
                        found.set("side", "RIGHT" if right else "LEFT")
                        found.set("kind", None)
                        lost = {parent[0].name.name.lower()}
                        for later in select.args["joins"][select.args["joins"].index(found) + 1 :]:
                            if lost & {column.table.lower() for column in later.find_all(exp.Column)}:
                                later.set("side", "LEFT")
                                later.set("kind", None)
                                lost.add(later.alias_or_name.lower())

                    yield self.mutant(Kind.LOST_ROWS, "dangling rows", core.select, None, outer, "dangling")
    if len(core.sources) == 1 and core.sources[0].table:
        source = core.sources[0]
        for child, own, parent, key in self.links:
            if child != source.table.name.lower() or parent == child:
                continue
            join = f'SELECT 1 FROM x JOIN "{parent}" AS joined ON joined."{key}" = {named(source)}."{own}"'
            yield self.mutant(
                Kind.LOST_ROWS,
                "parent joined",
                core.select,
                lambda s, join=join: (_qualify(self, s), s.append("joins", parsed(join).args["joins"][0])),
                None,
                "dangling",
            )


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


def _inner(subquery: exp.Expr) -> exp.Select | None:
    query = subquery.this if isinstance(subquery, exp.Subquery) else subquery
    plain = isinstance(query, exp.Select) and len(query.selects) == 1 and not query.selects[0].is_star
    return query if plain and not query.args.get("group") else None


def null_values(self: Mutator, core: Core) -> Iterator[Mutant]:
    """NOT IN over NULLs; <> that drops NULLs; AVG and COUNT that skip them; NULL as the least."""
    kind, trap = Kind.NULLS, "nulls"
    for node in own_nodes(core.select):
        inner = _inner(node.args["query"]) if isinstance(node, exp.In) and node.args.get("query") else None
        if isinstance(node, exp.In) and inner is not None:
            negated = isinstance(node.parent, exp.Not)

            def not_in(found: exp.Expr, right: bool, negated: bool = negated) -> None:
                select = found.args["query"]
                select = select.this if isinstance(select, exp.Subquery) else select
                if right:
                    select.where(
                        exp.Not(this=exp.Is(this=select.selects[0].unalias().copy(), expression=exp.Null())),
                        copy=False,
                    )
                if not negated:
                    found.replace(exp.Not(this=found.copy()))

            yield self.mutant(
                kind,
                "NOT IN",
                node,
                lambda n, f=not_in: f(n, False),
                lambda n, f=not_in: f(n, True),
                trap,
                negated,
            )
        if (
            isinstance(node, exp.EQ | exp.NEQ)
            and isinstance(node.this, exp.Column)
            and isinstance(node.expression, exp.Literal)
        ):
            if core.stored(node.this) is None or not _filters(core, node):
                continue
            column, literal = node.this.sql("sqlite"), node.expression.sql("sqlite")
            yield self.mutant(
                kind,
                "<>",
                node,
                put(f"{column} <> {literal}"),
                put(f"({column} <> {literal} OR {column} IS NULL)"),
                trap,
                isinstance(node, exp.NEQ),
            )
    for node in core.aggregates:
        stored = core.stored(node.this) if isinstance(node.this, exp.Column) else None
        if isinstance(node, exp.Avg) and stored and not stored[0].optional:
            yield self.mutant(
                kind, "AVG", node, None, put(f"AVG(COALESCE({node.this.sql('sqlite')}, 0))"), trap
            )
        one = core.sources[0] if len(core.sources) == 1 else None
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star) and one and one.table:
            names = [c.name for c in one.table.columns if c.name not in one.table.primary_key][1:3]
            for name in names:
                yield self.mutant(
                    kind, "COUNT(column)", node, put(f'COUNT({named(one)}."{name}")'), None, trap
                )
    yield from _added_nulls(self, core)
    order = core.select.args.get("order")
    if order and core.select.args.get("limit") and isinstance(order.expressions[0].this, exp.Column):
        key = order.expressions[0].this
        if core.stored(key) and not order.expressions[0].args.get("desc") and not core.groups:
            yield self.mutant(
                kind,
                "least is NULL",
                core.select,
                None,
                add_condition(f"{key.sql('sqlite')} IS NOT NULL"),
                trap,
            )


def _added_nulls(self: Mutator, core: Core) -> Iterator[Mutant]:
    """NOT IN for EXCEPT and for things without a child; the least of a column that has NULLs."""
    kind, trap, select = Kind.NULLS, "nulls", core.select
    parent = select.parent
    if isinstance(parent, exp.Except) and parent.this is select and parent.parent is None:
        other = _inner(parent.expression)
        if other is not None and len(select.selects) == 1:
            column, its = select.selects[0].unalias().sql("sqlite"), other.selects[0].unalias().copy()
            loose, strict = select.copy(), other.copy()
            strict.where(exp.Not(this=exp.Is(this=its, expression=exp.Null())), copy=False)
            texts = [
                loose.where(f"NOT {column} IN ({each.sql('sqlite')})", dialect="sqlite").sql("sqlite")
                for each in (strict, other)
            ]
            yield Mutant(kind, "NOT IN for EXCEPT", *texts, trap=trap)
    if len(core.sources) > 1 or not core.sources[0].table:
        return
    source = core.sources[0]
    for child, own, table, key in self.links:
        if table == source.table.name.lower():
            part = f'NOT {named(source)}."{key}" IN (SELECT "{own}" FROM "{child}"'
            yield self.mutant(
                kind,
                "NOT IN added",
                select,
                add_condition(f"{part})"),
                add_condition(f'{part} WHERE "{own}" IS NOT NULL)'),
                trap,
                question=False,
            )
    plain = not (core.groups or core.aggregates or select.args.get("limit") or select.args.get("distinct"))
    for column in source.table.columns if plain and select.parent is None else ():
        if (
            any(t in column.type.upper() for t in ("INT", "REAL", "DEC", "NUM", "FLOAT"))
            and column.name not in source.table.primary_key
        ):
            name = f'{named(source)}."{column.name}"'

            def least(found: exp.Expr, name: str = name) -> None:
                found.set(
                    "order",
                    exp.Order(expressions=[parsed(f"SELECT 1 ORDER BY {name}").args["order"].expressions[0]]),
                )
                found.limit(1, copy=False)  # type: ignore[attr-defined]

            yield self.mutant(
                kind,
                "least is NULL, added",
                select,
                least,
                lambda s, f=least, name=name: (f(s), add_condition(f"{name} IS NOT NULL")(s)),
                trap,
                question=False,
            )


def _filters(core: Core, node: exp.Expr) -> bool:
    return any(node is each for each in core.conditions)


def divisions(self: Mutator, core: Core) -> Iterator[Mutant]:
    """Casts to REAL dropped; averages as quotients; shares of counts."""
    kind = Kind.INTEGER_DIVISION
    for node in own_nodes(core.select):
        if isinstance(node, exp.Div):

            def whole(found: exp.Expr) -> None:
                for cast in list(found.find_all(exp.Cast)):
                    cast.replace(cast.this.copy())
                for literal in list(found.find_all(exp.Literal)):
                    if not literal.is_string and "." in literal.name and float(literal.name).is_integer():
                        literal.replace(exp.Literal.number(int(float(literal.name))))

            yield self.mutant(kind, "CAST dropped", node, whole)
        if isinstance(node, exp.Avg) and isinstance(node.this, exp.Column):
            yield self.mutant(
                kind, "SUM / COUNT", node, put("SUM({0}) / COUNT({0})".format(node.this.sql("sqlite")))
            )
    source = core.sources[0] if len(core.sources) == 1 else None
    for node in core.aggregates if source and source.table and core.groups else ():
        if (
            isinstance(node, exp.Count)
            and isinstance(node.this, exp.Star)
            and node.find_ancestor(exp.Order) is None
        ):
            total = f'(SELECT COUNT(*) FROM "{source.table.name}")'  # type: ignore[union-attr]
            yield self.mutant(
                kind, "share of all", node, put(f"{{0}} / {total}"), put(f"1.0 * {{0}} / {total}")
            )
        if isinstance(node, exp.Sum) and isinstance(node.this, exp.Column):
            yield self.mutant(kind, "per row", node, put("{0} / COUNT(*)"), put("1.0 * {0} / COUNT(*)"))
    if (
        len(core.aggregates) == 1
        and isinstance(core.aggregates[0].this, exp.Star)
        and len(core.conditions) == 1
    ):
        node, condition = core.aggregates[0], core.conditions[0].sql("sqlite")

        def share(select: exp.Expr, factor: str) -> None:
            count = next(
                n for n in own_nodes(select) if isinstance(n, exp.Count) and isinstance(n.this, exp.Star)
            )
            count.replace(parsed(f"{factor}SUM(CASE WHEN {condition} THEN 1 ELSE 0 END) / COUNT(*)"))
            select.set("where", None)

        if not core.conditions[0].find(exp.Query):
            yield self.mutant(
                kind, "share", core.select, lambda s: share(s, ""), lambda s: share(s, "1.0 * ")
            )
            yield self.mutant(
                kind, "percentage", core.select, lambda s: share(s, "100 * "), lambda s: share(s, "100.0 * ")
            )


def shared_names(self: Mutator, core: Core) -> Iterator[Mutant]:
    """Groups by names, not by keys."""
    groups = core.groups or []
    names = [item.unalias() for item in core.select.expressions if _is_own_name(core, item.unalias())]
    for place, group in enumerate(groups):
        source = core.owner(group) if isinstance(group, exp.Column) else None
        if source is None or not names:
            continue
        key = core.key(core.owner(names[0]))  # type: ignore[arg-type]
        if group not in names and not any(each in names for each in groups):
            yield self.mutant(
                Kind.SHARED_NAME,
                "by name, not by key",
                core.select.args["group"],
                lambda g, place=place: g.expressions[place].replace(names[0].copy()),
                None,
                "shared_names",
            )
        elif group in names and len(key) == 1 and all(key[0].name.lower() != g.name.lower() for g in groups):
            yield self.mutant(
                Kind.SHARED_NAME,
                "by name",
                core.select.args["group"],
                None,
                lambda g, key=key[0]: g.append("expressions", key.copy()),
                "shared_names",
            )


def _one_name(self: Mutator, core: Core) -> Iterator[Mutant]:
    """Names counted or listed once where their things are."""
    for source in core.sources:
        key = core.key(source)
        names = (
            [
                column.name
                for column in source.table.columns
                if _is_own_name(core, source.column(column.name, "sqlite"))
            ]
            if source.table
            else []
        )
        if not names or len(key) != 1:
            continue
        name, one = f'{named(source)}."{names[-1]}"', key[0].sql("sqlite")
        for node in core.aggregates:
            distinct = isinstance(node, exp.Count) and (
                isinstance(node.this, exp.Distinct)
                or (isinstance(node.this, exp.Star) and len(core.sources) == 1)
            )
            if distinct and not core.groups:
                yield self.mutant(
                    Kind.SHARED_NAME,
                    "COUNT(DISTINCT name)",
                    node,
                    put(f"COUNT(DISTINCT {name})"),
                    put(f"COUNT(DISTINCT {one})"),
                    "shared_names",
                )


def _is_own_name(core: Core, item: exp.Expr) -> bool:
    """Whether a column is the name of what its table holds."""
    import re

    source = core.owner(item) if isinstance(item, exp.Column) else None
    found = re.search(r"(?i)(.*?)_?(name|title)$", item.name)
    if source is None or source.table is None or found is None:
        return False
    before = re.sub(r"[^a-z]", "", found.group(1).lower())
    table = re.sub(r"[^a-z]", "", source.table.name.lower())
    return (
        before in ("", "first", "last", "full", "company") or table.startswith(before[:5]) or before in table
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
            if not day or source.optional:
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


def texts(self: Mutator) -> Iterator[Mutant]:
    """Numbers and days that are text, without a cast."""
    wrong = self.query.tree.sql("sqlite")
    found = {}
    for core in self.query.cores:
        for column in core.columns(core.select):
            stored = core.stored(column)
            if stored and stored[0].table:
                found[id(column)] = (column, f"{stored[0].table.name}.{stored[1].name}".lower(), stored[1])
    ordering = (exp.Order, exp.Max, exp.Min, exp.GT, exp.LT, exp.GTE, exp.LTE, exp.Between)
    used = [(c, n, k) for c, n, k in found.values() if c.find_ancestor(*ordering)]
    numbers = [
        c
        for c, _, k in used
        if any(t in k.type.upper() for t in ("INT", "REAL", "DEC", "NUM", "FLOAT", "DOUBLE"))
    ]
    if numbers:
        tree, nodes = self.query.copy(*numbers)
        for node in nodes:
            node.replace(parsed(f"CAST({node.sql('sqlite')} AS REAL)"))
        yield Mutant(Kind.TEXT_VALUES, "number as text", tree.sql("sqlite"), wrong, "numbers_as_text")
    dates = [c for c, _, k in used if k.samples and all(s[4:5] == "-" and s[7:8] == "-" for s in k.samples)]
    if dates:
        tree, nodes = self.query.copy(*dates)
        for node in nodes:
            name = node.sql("sqlite")
            node.replace(
                parsed(
                    f"(SUBSTR({name}, 7, 4) || '-' || SUBSTR({name}, 1, 2) || '-' || SUBSTR({name}, 4, 2))"
                )
            )
        yield Mutant(Kind.TEXT_VALUES, "day as text", tree.sql("sqlite"), wrong, "days_as_text")


MAKERS = (fan_outs, lost_rows, cut_ties, null_values, divisions, shared_names, _one_name, days, values)
