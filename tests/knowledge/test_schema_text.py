"""Rendering and parsing are inverse, whatever the names are."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.knowledge.catalog import Catalog, Column, Field, ForeignKey, Metric, Table
from quorum.knowledge.naming import write_name
from quorum.knowledge.schema.grammar import one_line
from quorum.knowledge.schema.layouts import find_layouts
from quorum.knowledge.schema.render import render
from tests.schema_reader import SchemaTextError, parse_schema

PLENTY = 10**9

HOSTILE = st.sampled_from(
    [
        *(
            'order "x"',
            "a, b",
            "a.b",
            "x [y]",
            "p{1..3}q",
            "q: r",
            "-- c",
            "PK",
            "primary",
            "  pad ",
            "Zoë",
            "行",
        ),
        *(
            "",
            "line\nbreak",
            "\\n",
            "tab\t",
            "#",
            "`b`",
            "'s'",
            "\u2028",
            "a-b",
            "t_2020",
            "t_2021",
            "t_20200101",
        ),
    ]
)
NAMES = st.one_of(HOSTILE, st.text(max_size=8), st.from_regex(r"[a-z]{1,3}_[0-9]{1,2}", fullmatch=True))
TYPES = st.one_of(
    st.sampled_from(
        ["INTEGER", "TEXT", "VARCHAR(20)", "NUMBER(38,0)", "double precision", "integer[]", "", "a [b"]
    )
    | st.sampled_from(
        ["timestamp with time zone", "ENUM('a', 'b (c')", "PK", "x -- y", 'u "v"', "x NOT NULL"]
    ),
    st.text(max_size=10),
)
TEXTS = st.one_of(
    st.just(""), st.sampled_from(["^", "--^", "a -- b", "…", "all: a", "NULL only"]), st.text(max_size=20)
)
PATHS = st.one_of(st.sampled_from(["a.b", "[].key", "*", "*.x", '["a b"].c', "~x", ".y", "a b"]), NAMES)

FORMULAS = st.sampled_from(
    [
        "",
        "SUM(total)",
        "a -- b",
        "--c",
        '"a" + 1',
        " pad ",
        "a -",
        "1 -- \n+ 2",
        " --",
        "=",
        "\ud800",
        "\u2028",
    ]
) | st.text(max_size=12)
METRICS = st.builds(Metric, NAMES, FORMULAS, TEXTS.map(one_line))


@st.composite
def columns(draw: st.DrawFn) -> tuple[Column, ...]:
    found = []
    for name in draw(st.lists(NAMES, max_size=6, unique=True)):
        paths = draw(st.lists(PATHS, max_size=2, unique=True))
        fields = [Field(path, draw(TYPES), one_line(draw(TEXTS)), draw(st.booleans())) for path in paths]
        fields.sort(key=lambda f: f.inferred)
        samples = tuple(dict.fromkeys(filter(None, map(one_line, draw(st.lists(TEXTS, max_size=2))))))
        text = one_line(draw(TEXTS))
        nullable, complete, nulls = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
        nulls = nulls and bool(samples)
        found.append(Column(name, draw(TYPES), text, samples, tuple(fields), nullable, complete, nulls))
    return tuple(found)


@st.composite
def filled(draw: st.DrawFn, own: tuple[Column, ...]) -> tuple[Column, ...]:
    """The columns with values in as many rows each, or withheld ones."""
    rows = draw(st.integers(1, 3))
    values = st.lists(st.none() | TEXTS, min_size=rows, max_size=rows)
    return tuple(
        column.with_cells(draw(values))
        if draw(st.booleans())
        else replace(column, samples=(), complete=False, nulls=False)
        for column in own
    )


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    layouts = draw(st.lists(columns(), min_size=1, max_size=3))
    names = st.tuples(st.sampled_from(["", "db", "d.b"]), st.sampled_from(["", "main", "s x"]), NAMES)
    tables = []
    for database, schema, name in draw(st.lists(names, max_size=6, unique=True)):
        own = draw(st.sampled_from(layouts))
        if own and draw(st.booleans()):
            own = draw(filled(own))
        keys = (
            st.lists(st.sampled_from([c.name for c in own]), max_size=2, unique=True) if own else st.just([])
        )
        foreign = [
            ForeignKey((key,), draw(st.sampled_from(["db.main.t", 'order "x"', "a..b"])), (draw(NAMES),))
            for key in draw(keys)
        ]
        kind, rows = (
            draw(st.sampled_from(["table", "view", "materialized view"])),
            draw(st.none() | st.integers(0, 10**9)),
        )
        tables.append(
            Table(
                name,
                own,
                schema,
                database,
                kind,
                one_line(draw(TEXTS)),
                rows,
                tuple(draw(keys)),
                tuple(foreign),
                distinct_rows=None if rows is None else draw(st.none() | st.integers(0, rows)),
                metrics=tuple(draw(st.lists(METRICS, max_size=2))),
            )
        )
    notes = tuple(filter(None, (one_line(draw(TEXTS)) for _ in range(2))))
    return Catalog(
        draw(NAMES), draw(st.sampled_from(["sqlite", "snowflake", "bigquery"])), tuple(tables), notes
    )


def facts(table: Table) -> tuple[object, ...]:
    columns = {
        (c.name, c.type, c.nullable, c.description, c.samples, c.complete, c.fields, c.nulls, c.cells)
        for c in table.columns
    }
    keys = set(table.foreign_keys)
    counts = table.row_count, table.distinct_rows
    return columns, table.kind, table.description, counts, table.primary_key, keys, table.metrics


@pytest.mark.heavy
@settings(max_examples=300)
@given(catalogs())
def test_everything_comes_back_whatever_the_names(catalog: Catalog) -> None:
    back = parse_schema(render(catalog, budget=PLENTY).text)
    wanted = {
        (t.database, t.schema, t.name): facts(replace(t, columns=layout.columns))
        for layout in find_layouts(catalog)  # shards share their samples
        for t in layout.tables
    }
    assert {(t.database, t.schema, t.name): facts(t) for t in back.tables} == wanted
    assert (back.name, back.dialect, back.notes) == (catalog.name, catalog.dialect, catalog.notes)


@pytest.mark.heavy
@settings(max_examples=100)
@given(catalogs())
def test_a_tight_budget_loses_no_name_type_path_or_key(catalog: Catalog) -> None:
    back = parse_schema(render(catalog, budget=1).text)

    def metrics(table: Table) -> tuple[str, ...]:
        return tuple(metric.name for metric in table.metrics)

    def skeleton(source: Catalog) -> object:
        return {
            (
                t.database,
                t.schema,
                t.name,
                t.row_count,
                t.primary_key,
                frozenset(t.foreign_keys),
                metrics(t),
            ): {
                (c.name, c.type, c.nullable, tuple((f.path, f.type, f.inferred) for f in c.fields))
                for c in t.columns
            }
            for t in source.tables
        }

    assert skeleton(back) == skeleton(catalog)


def test_declared_structures_are_spelt_out_and_rebuilt() -> None:
    kind = "ARRAY<STRUCT<key STRING, value STRUCT<int_value INT64, `end` STRING>>>"
    fields = (
        Field("[].key", "STRING", "the name"),
        Field("[].value", "STRUCT<int_value INT64, `end` STRING>"),
        Field("[].value.int_value", "INT64"),
        Field("[].value.end", "STRING"),
    )
    catalog = Catalog("c", "bigquery", (Table("t", (Column("params", kind, fields=fields),)),))
    text = render(catalog).text
    assert "params ARRAY<STRUCT>" in text
    assert "params.value.int_value INT64" in text
    assert parse_schema(text).tables == catalog.tables


@pytest.mark.parametrize(
    "samples", [("all: a", "b"), ("NULL only",), ("NULL",), ("a", ""), ("",), ("[all: a]",), ()]
)
@pytest.mark.parametrize("complete", [False, True])
def test_complete_samples_come_back_as_such(samples: tuple[str, ...], complete: bool) -> None:
    column = Column("c", "TEXT", samples=samples, complete=complete)
    catalog = Catalog("c", "sqlite", (Table("t", (column, Column("d", "TEXT"))),))
    assert parse_schema(render(catalog).text).tables == catalog.tables


def test_the_text_null_is_quoted() -> None:
    column = Column("c", "TEXT", samples=("NULL", "refunded"), complete=True)
    assert '[all: "NULL", refunded]' in render(Catalog("c", "sqlite", (Table("t", (column,)),))).text


def test_a_description_said_before_is_referred_to() -> None:
    said = "identifier of the customer who ordered"
    tables = tuple(Table(n, (Column("customer_id", t, said),)) for n, t in (("a", "INTEGER"), ("b", "TEXT")))
    text = render(Catalog("c", "sqlite", tables)).text
    assert text.count(said) == 1
    assert [t.columns[0].description for t in parse_schema(text).tables] == [said, said]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("  id INTEGER", "before the first table"),
        ("table t\n  id INTEGER [a", "no end"),
        ("table t\n  id INTEGER --^", "refers to nothing"),
        ("tables t_{1..99999999999} (2 tables)", "cannot be expanded"),
        ("table t like u\n  - a", "not described above"),
        ("table t (many rows)", "unknown fact"),
        ("hello", "unexpected"),
    ],
)
def test_what_is_no_schema_text_is_refused_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(SchemaTextError, match=complaint):
        parse_schema(text)


@pytest.mark.parametrize(
    ("dialect", "bare", "quoted"),
    [
        ("sqlite", ["Total", "rank"], ["18_49_share", "order", "two words", "a-b", "isnull"]),
        ("duckdb", ["Total", "rank"], ["Group", "qualify", "lambda", "naïve"]),
        ("postgres", ["total"], ["createdAt", "Total", "user", "a$"]),
        ("snowflake", ["TOTAL", "A_1"], ["created_at", "Total", "ORDER", "START"]),
        ("bigquery", ["created_at", "Total", "user"], ["hash", "a-b", "2024"]),
        ("mysql", ["created_at", "Total"], ["rank", "groups", "two words"]),
    ],
)
def test_names_stand_as_sql_must_spell_them(dialect: str, bare: list[str], quoted: list[str]) -> None:
    mark = "`" if dialect in ("bigquery", "mysql") else '"'
    for name, spelt in [*((n, n) for n in bare), *((n, f"{mark}{n}{mark}") for n in quoted)]:
        key = ForeignKey((name,), f"{name}.{name}", (name,))
        table = Table(name, (Column(name, "INT"),), schema=name, foreign_keys=(key,))
        text = render(Catalog("c", dialect, (table,))).text
        assert text.endswith(f"\ntable {spelt}.{spelt}\n  {spelt} INT -> {spelt}.{spelt}.{spelt}\n")
        assert parse_schema(text).tables == (table,)


@pytest.mark.parametrize("dialect", ["sqlite", "snowflake", "bigquery"])
def test_names_of_a_group_are_quoted_together(dialect: str) -> None:
    names = ["e_1", "e_2", "e_3", "3_1", "3_2", "q{1..3}r", "q`r", 'q"r']
    tables = tuple(Table(name, (Column("A", "INT"),)) for name in names)
    text = render(Catalog("c", dialect, tables * 1)).text
    assert {t.name for t in parse_schema(text).tables} == set(names)
    header = {"sqlite": "e_{1..3}", "snowflake": '"e_{1..3}"', "bigquery": "e_{1..3}"}[dialect]
    shards = render(Catalog("c", dialect, tables[:3])).text
    assert f"tables {header} (3 tables)" in shards
    assert parse_schema(shards).tables == tables[:3]


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_every_word_that_an_engine_reserves_is_quoted(engine: str) -> None:
    """Each word as a name of a table and a column, spelt as the text has it."""
    connection = sqlite3.connect(":memory:") if engine == "sqlite" else duckdb.connect()
    known = duckdb.connect().execute("SELECT DISTINCT keyword_name FROM duckdb_keywords()").fetchall()
    for word in sorted({word for (word,) in known} | {*SQLITE_WORDS.split()}):
        connection.execute(f'CREATE TABLE "{word}" ("{word}" INT)')
        connection.execute(f'INSERT INTO "{word}" VALUES (7)')
        spelt = write_name(word, engine)
        query = (
            f"SELECT x.{spelt}, {spelt} FROM {spelt} AS x WHERE {spelt} = 7 GROUP BY {spelt} ORDER BY {spelt}"
        )
        assert connection.execute(query).fetchall() == [(7, 7)]
        connection.execute(f'DROP TABLE "{word}"')


SQLITE_WORDS = """
    abort action add after always attach autoincrement before begin cascade collate commit conflict
    current_date current_time current_timestamp deferrable deferred detach each escape exclusive fail
    filter following generated glob ignore immediate indexed instead isnull key last match materialized
    nothing notnull nulls others plan pragma query raise recursive regexp reindex release rename replace
    restrict returning rollback savepoint temp temporary ties transaction trigger unbounded vacuum virtual
    without
"""
