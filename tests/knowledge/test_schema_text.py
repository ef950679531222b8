"""Schema text: what a model gets to read, what it costs, and that everything can be read back."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.knowledge.catalog import Catalog, Column, Field, ForeignKey, Table
from quorum.knowledge.naming import write_name
from quorum.knowledge.schema.grammar import one_line
from quorum.knowledge.schema.layouts import find_layouts
from quorum.knowledge.schema.render import render
from quorum.knowledge.tokens import estimate_tokens
from tests.schema_reader import parse_schema

PLENTY = 10**9

HOSTILE = st.sampled_from([
    'order "x"', "a, b", "a.b", "x [y]", "p{1..3}q", "q: r", "-- c", "PK", "primary", "  pad ", "Zoë", "行",
    "", "line\nbreak", "\\n", "tab\t", "#", "`b`", "'s'", "\u2028", "a-b", "t_2020", "t_2021", "t_20200101",
])  # fmt: skip
NAMES = st.one_of(HOSTILE, st.text(max_size=8), st.from_regex(r"[a-z]{1,3}_[0-9]{1,2}", fullmatch=True))
TYPES = st.text(max_size=10) | st.sampled_from([
    "INTEGER", "TEXT", "VARCHAR(20)", "NUMBER(38,0)", "double precision", "integer[]", "", "a [b", "PK",
    "timestamp with time zone", "ENUM('a', 'b (c')", "x -- y", 'u "v"', "x NOT NULL",
])  # fmt: skip
TEXTS = st.text(max_size=20) | st.sampled_from(["", "^", "--^", "a -- b", "…", "all: a", "NULL only"])
PATHS = NAMES | st.sampled_from(["a.b", "[].key", "*", "*.x", '["a b"].c', "~x", ".y", "a b"])


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
        keys = st.lists(st.sampled_from([c.name for c in own] or [""]), max_size=2 * bool(own), unique=True)
        foreign = [
            ForeignKey((key,), draw(st.sampled_from(["db.main.t", 'order "x"', "a..b"])), (draw(NAMES),))
            for key in draw(keys)
        ]
        kind = draw(st.sampled_from(["table", "view", "materialized view"]))
        rows = draw(st.none() | st.integers(0, 10**9))
        distinct = None if rows is None else draw(st.none() | st.integers(0, rows))
        text, primary = one_line(draw(TEXTS)), tuple(draw(keys))
        table = Table(name, own, schema, database, kind, text, rows, primary, tuple(foreign), distinct)
        tables.append(table)
    notes = tuple(filter(None, (one_line(draw(TEXTS)) for _ in range(2))))
    dialect = draw(st.sampled_from(["sqlite", "snowflake", "bigquery"]))
    return Catalog(draw(NAMES), dialect, tuple(tables), notes)


@pytest.mark.heavy
@settings(max_examples=300)
@given(catalogs())
def test_everything_comes_back_whatever_the_names(catalog: Catalog) -> None:
    def facts(table: Table) -> Table:
        by_name = tuple(sorted(table.columns, key=lambda column: column.name))
        return replace(table, columns=by_name, foreign_keys=tuple(sorted(table.foreign_keys, key=repr)))

    back = parse_schema(render(catalog, budget=PLENTY).text)
    layouts = find_layouts(catalog)  # shards share their samples
    wanted = {facts(replace(t, columns=layout.columns)) for layout in layouts for t in layout.tables}
    assert set(map(facts, back.tables)) == wanted
    assert (back.name, back.dialect, back.notes) == (catalog.name, catalog.dialect, catalog.notes)


@pytest.mark.heavy
@settings(max_examples=100)
@given(catalogs())
def test_a_tight_budget_loses_no_name_type_path_or_key(catalog: Catalog) -> None:
    def skeleton(source: Catalog) -> object:
        return {
            (t.database, t.schema, t.name, t.row_count, t.primary_key, frozenset(t.foreign_keys)): {
                (c.name, c.type, c.nullable, tuple((f.path, f.type, f.inferred) for f in c.fields))
                for c in t.columns
            }
            for t in source.tables
        }

    assert skeleton(parse_schema(render(catalog, budget=1).text)) == skeleton(catalog)


def written(*tables: Table, dialect: str = "sqlite", budget: int | None = None) -> str:
    return render(Catalog("c", dialect, tables), budget=budget).text


def table(name: str, *columns: Column, **more: object) -> Table:
    return Table(name, columns, **more)  # type: ignore[arg-type]


def values(*samples: str, complete: bool = True, name: str = "state") -> Column:
    return Column(name, "TEXT", samples=samples, complete=complete)


def small(name: str, *rows: tuple[str | None, ...]) -> Table:
    """A table of which all rows are known."""
    cells = zip(("id", "label"), zip(*rows, strict=True), strict=True)
    made = tuple(Column(column, "TEXT").with_cells(held) for column, held in cells)
    return Table(name, made, row_count=len(rows))


INT, SHARED = Column("id", "INTEGER"), tuple(Column(f"c{i}", "INT") for i in range(24))
TOTAL = Column("total", "REAL", samples=("1.5",))
SAID = "identifier of the customer who ordered"
PAIR = ForeignKey(("b", "id"), "s.other", ("x", "y"))
STRUCT = Column(
    "params",
    "ARRAY<STRUCT<key STRING, value STRUCT<int_value INT64, `end` STRING>>>",
    fields=(
        Field("[].key", "STRING", "the name"),
        Field("[].value", "STRUCT<int_value INT64, `end` STRING>"),
        Field("[].value.int_value", "INT64"),
        Field("[].value.end", "STRING"),
    ),
)
PLANS = small("plans", ("1", "free, for all"), ("2", None), ("3", "NULL"), ("4", "*"), ("5", "two\nlines "))
USERS = small("users", ("1", "x"), ("2", "y"))
WITHHELD = replace(USERS, columns=(*USERS.columns, Column("password", "TEXT")))
FEW = small("t_1", ("1", "a")), small("t_2", ("2", "b"), ("3", "y")), small("t_3", ("4", "c"))


def test_a_small_database_reads_well() -> None:
    name = Column("name", "TEXT", samples=("Ada", "Grace, Dr."))
    id, bought = Column("id", "INTEGER", nullable=False), "people who have bought"
    people = table("customers", id, name, description=bought, row_count=1200, primary_key=("id",))
    extra = Column("extra", "JSON", fields=(Field("items[].sku", "string", inferred=True),))
    customer = Column("customer id", "INTEGER", "who\nordered")
    keys = {"primary_key": ("id",), "foreign_keys": (ForeignKey(("customer id",), "customers", ("id",)),)}
    orders = table('order "x"', INT, customer, extra, row_count=12345, **keys)
    big = table("big", Column("a", "INT"), Column("b", "INT"), Column("c", ""), kind="view")
    tables = (people, orders, big, Table("unknown", ()))
    assert render(Catalog("shop", "sqlite", tables, ("one file was missing",))).text == (
        "# database shop (sqlite): 4 tables, 8 columns\n"
        "# Notation: -> table.column: foreign key; [..]: samples;"
        " no brackets: values unknown or withheld, or no rows.\n"
        "# Indented ~: paths below the column above seen in sample values; [] any array element, * any key.\n"
        "\n"
        "table customers (1,200 rows) -- people who have bought\n"
        "  id INTEGER PK NOT NULL\n"
        '  name TEXT [Ada, "Grace, Dr."]\n'
        "\n"
        'table "order ""x""" (12,345 rows)\n'
        "  id INTEGER PK\n"
        '  "customer id" INTEGER -> customers.id -- who ordered\n'
        "  extra JSON\n"
        "    ~items[].sku string\n"
        "\n"
        "table big (view)\n"
        "  a, b INT\n"
        '  c ""\n'
        "\n"
        "table unknown\n"
        "  (columns unknown)\n"
        "\n"
        "# note: one file was missing\n"
    )


@pytest.mark.parametrize(
    ("tables", "body"),
    [
        (
            [table("t", INT, Column("b", "INT"), primary_key=("b", "id"), foreign_keys=(PAIR,))],
            "t\n  id INTEGER PK\n  b INT PK\n  primary key (b, id)\n  foreign key (b, id) -> s.other (x, y)",
        ),
        (
            [
                table(f"s_{day}", INT, TOTAL, row_count=n)
                for day, n in ((20240131, 5), (20240201, None), (20240202, 7))
            ],
            "tables s_{20240131..20240202} (3 tables; rows 5, ?, 7)\n  id INTEGER\n  total REAL [1.5]",
        ),
        (
            [table("t", *SHARED), table("u", *SHARED[:3], Column("c3", "TEXT"), *SHARED[4:23], INT)],
            "table u like t\n  - c23\n  + c3 TEXT\n  + id INTEGER",
        ),
        ([PLANS], 'id, label TEXT\n  | 1, "free, for all"\n  | 2, NULL\n  | 3, "NULL"\n  | 4, "*"\n'
                  '  | 5, "two\\nlines "'),
        ([WITHHELD], "table users (2 rows)\n  id, label, password TEXT\n  | 1, x, *\n  | 2, y, *"),
        (FEW, "  id, label TEXT\n  = t_1\n  | 1, a\n  = t_2\n  | 2, b\n  | 3, y\n  = t_3\n  | 4, c"),
        ([table("o", INT, row_count=1244, distinct_rows=68)], "o (1,244 rows, 68 distinct)\n  id INTEGER"),
        (
            [table(f"o_{n}", INT, row_count=7, distinct_rows=d) for n, d in enumerate((None, 3))],
            "tables o_{0, 1} (2 tables; rows 7, 7 with 3 distinct)\n  id INTEGER",
        ),
        (
            [table("a", Column("x", "INT", SAID)), table("b", Column("x", "TEXT", SAID))],
            f"table a\n  x INT -- {SAID}\n\ntable b\n  x TEXT --^",
        ),
        ([table("t", values("NULL", "refunded"))], 'table t\n  state TEXT [all: "NULL", refunded]'),
        ([table("t", STRUCT)], "table t\n  params ARRAY<STRUCT>\n    params.key STRING -- the name\n"
                               "    params.value.int_value INT64\n    params.value.end STRING"),
    ],
)  # fmt: skip
def test_tables_read_well_and_come_back(tables: list[Table], body: str) -> None:
    text = written(*tables, dialect="bigquery" if STRUCT in tables[0].columns else "sqlite")
    assert text.endswith(f"{body}\n")
    assert parse_schema(text).tables == tuple(tables)


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
    shards = [table(f"e_{n}", INT) for n in (1, 2, 3)]
    header = '"e_{1..3}"' if dialect == "snowflake" else "e_{1..3}"
    assert f"tables {header} (3 tables)" in written(*shards, dialect=dialect)
    mark = "`" if dialect in ("bigquery", "mysql") else '"'
    for name, spelt in [*((n, n) for n in bare), *((n, f"{mark}{n}{mark}") for n in quoted)]:
        key = ForeignKey((name,), f"{name}.{name}", (name,))
        one = table(name, Column(name, "INT"), schema=name, foreign_keys=(key,))
        text = written(one, dialect=dialect)
        assert text.endswith(f"\ntable {spelt}.{spelt}\n  {spelt} INT -> {spelt}.{spelt}.{spelt}\n")
        assert parse_schema(text).tables == (one,)


OF_SQLITE = """
    autoincrement current_date current_time current_timestamp fail indexed plan query raise regexp
"""
"""Keywords that DuckDB does not have."""


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_every_word_that_an_engine_reserves_is_quoted(engine: str) -> None:
    """Each word as a name of a table and a column, spelt as the text has it."""
    connection = sqlite3.connect(":memory:") if engine == "sqlite" else duckdb.connect()
    known = duckdb.connect().execute("SELECT DISTINCT keyword_name FROM duckdb_keywords()").fetchall()
    for word in sorted({word for (word,) in known} | {*OF_SQLITE.split()}):
        connection.execute(f'CREATE TABLE "{word}" ("{word}" INT)')
        connection.execute(f'INSERT INTO "{word}" VALUES (7)')
        spelt = write_name(word, engine)
        query = (
            f"SELECT x.{spelt}, {spelt} FROM {spelt} AS x WHERE {spelt} = 7 GROUP BY {spelt} ORDER BY {spelt}"
        )
        assert connection.execute(query).fetchall() == [(7, 7)]
        connection.execute(f'DROP TABLE "{word}"')


def test_a_budget_is_spent_and_kept_and_what_is_missing_is_said_in_the_text() -> None:
    said = "the meaning of this column in some detail " * 4
    tables = [
        table(f"t_{n:02}", *(Column(f"c_{i}_{n}", "TEXT", f"{i}: {said}", ("value",)) for i in range(40)))
        for n in range(30)
    ]
    wide = Catalog("wide", "sqlite", tuple(tables))
    whole = render(wide, budget=PLENTY)
    assert whole == render(wide, budget=whole.tokens)
    assert whole.left_out == ()
    assert "left out" not in whole.text
    for budget in (whole.tokens - 1, whole.tokens // 2, whole.tokens // 4):
        less = render(wide, budget=budget)
        assert budget // 3 < less.tokens <= budget
        assert "exceed the budget" not in less.text
        assert less.left_out
        assert less.text.rstrip().endswith("# left out: " + "; ".join(less.left_out))
        assert less.whole == whole.tokens
    names = render(wide, budget=50)
    assert names.tokens > 50
    assert names.left_out[-1].startswith("names and types alone exceed the budget of 50 tokens")
    assert names.left_out[-1] in names.text
    assert sum(len(t.columns) for t in parse_schema(names.text).tables) == 1200


def test_all_values_of_a_column_are_told_from_examples() -> None:
    text = written(table("t", values("on", "")))
    assert '  state TEXT [all: on, ""]\n' in text
    assert text.splitlines()[1] == "# Notation: [all: ..]: all values but NULL."
    assert "  state TEXT [on, off]\n" in written(table("t", values("on", "off", complete=False)))
    text = written(table("t", values()))
    assert "  state TEXT [NULL only]\n" in text
    assert text.splitlines()[1] == "# Notation: [NULL only]: no value in any row."
    assert "brackets" not in written(table("t", Column("state", "TEXT"))), "of marks that are not used"


def test_a_list_that_was_cut_is_not_said_to_be_complete() -> None:
    many = [f"a value in so many words {i}" for i in range(12)]
    tables = [table(f"t{chr(97 + n)}", values(*many, name=f"c{n}")) for n in range(20)]
    whole = render(Catalog("c", "sqlite", tuple(tables)), budget=PLENTY)
    assert whole.text.count(" TEXT [all: ") == 20
    less = written(*tables, budget=whole.tokens // 2)
    assert "TEXT [a value" in less
    assert "[all: " not in less
    assert "TEXT [x x" in written(table("t", values("x " * 40))), "one that was shortened is not known"
    assert "[all: " not in written(table("t", values("a  b", "a b"))), "nor are two that look alike"
    silent = written(table("t", values()), budget=1)
    assert "NULL" not in silent
    assert "sample values of 1 of 1 columns" in silent


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        (values("a", "b"), values("b", "a"), "[all: a, b]"),
        (values(), values(), "[NULL only]"),
        (values("a", "b"), values("a", "c"), "[a, b]"),
        (values("a", "b"), values("a", "b", complete=False), "[a, b]"),
        (values("a", "b"), values(), ":NULLs [a, b]"),
        (values("a", "b"), Column("state", "TEXT"), "[a, b]"),
        (values(), values("a", "b"), ":NULLs [a, b]"),
    ],
)
def test_a_group_is_complete_only_if_each_member_is_and_has_the_same(
    first: Column, second: Column, shown: str
) -> None:
    assert f"tables t_{{0, 1}} (2 tables)\n  state TEXT {shown}\n" in written(
        table("t_0", first), table("t_1", second)
    )


def test_a_variant_inherits_no_completeness_that_is_not_its_own() -> None:
    same, other, gone = (values("a", name=name) for name in ("same", "other", "gone"))
    base = table("base", *SHARED, same, other, gone)
    text = written(base, table("variant", *SHARED, same, values("b", name="other")))
    assert "table variant like base\n" in text
    assert "  same TEXT [all: a]\n  other TEXT [a]\n  gone TEXT [all: a]\n" in text


def test_equal_catalogs_have_equal_hashes_and_complete_samples_tell_them_apart() -> None:
    one, same, other = (Catalog("c", "sqlite", (table("t", values("a", complete=c)),)) for c in (1, 1, 0))
    assert one.hash == same.hash != other.hash


def test_a_value_cannot_break_out_of_its_line() -> None:
    nasty = 'x]\ntable evil -- "drop"'
    evil = table("t", Column("a", "TEXT", nasty, (nasty,)), description=nasty)
    back = parse_schema(render(Catalog("c", "sqlite", (evil,), (nasty,))).text)
    assert [(t.name, t.columns[0].samples) for t in back.tables] == [("t", ('x] table evil -- "drop"',))]


def test_tokens_are_estimated_near_the_truth() -> None:
    text = "SELECT customer_id, COUNT(*) AS orders FROM sales WHERE year = 2024 GROUP BY customer_id"
    assert 18 <= estimate_tokens(text) <= 30  # o200k: 20
    assert estimate_tokens("") == 0
    assert estimate_tokens("word " * 1000) in range(900, 1200)


def test_rows_and_nulls_give_way_before_descriptions() -> None:
    described = replace(small("t", ("1", "a"), ("2", None)), description="a description " * 20)
    tables = described, table("u", Column("x", "INT", samples=("1",), nulls=True))
    whole = render(Catalog("c", "sqlite", tables))
    assert "  | 2, NULL\n" in whole.text
    assert "  x INT :NULLs [1]\n" in whole.text
    less = render(Catalog("c", "sqlite", tables), budget=whole.tokens - 1)
    assert "|" not in less.text
    assert "NULLs" not in less.text
    assert "  label TEXT [all: a]\n" in less.text
    assert described.description.strip() in less.text
    assert less.left_out == ("the rows of 1 small table",)
    assert "  | 0, xxx" in written(small("t", *((str(i), "x" * 60) for i in range(12))))
    long = written(small("t", *((str(i), "x" * 200) for i in range(12))))
    assert "|" not in long, "no table to show whole"
    assert "  id TEXT [0, 1, 2]\n" in long


def test_each_table_of_a_group_shows_what_it_holds() -> None:
    size = Column("size", "INT", samples=("1", "2"))
    held = (("Ghent", "Lund"), ("Lund",), ("Faro", "Ghent"), ())
    tables = [table(f"t_{n}", values(*v, complete=False), size, row_count=50) for n, v in enumerate(held)]
    text = written(*tables)
    assert "  state TEXT [Ghent, Lund]\n  size INT [1, 2]\n  = t_2: state [Faro]\n" in text
    assert text.count("=") == 2, "one in the legend: the others hold nothing else"
    firsts = [t.columns[0].samples[0] for t in parse_schema(text).tables]
    assert firsts == ["Ghent", "Ghent", "Faro", "Ghent"]
    many = [table(f"t_{n}", values(f"in {n}")) for n in range(40)]
    assert "in 39" not in written(*many), "one of so many stands for all"
    large = Table("t_4", tuple(Column(c, "TEXT", samples=("x", "y")) for c in ("id", "label")), row_count=99)
    text = written(*FEW, large)
    assert "  = t_4: id [x], label [x]\n" in text
    assert [t.columns[1].samples for t in parse_schema(text).tables] == [("a",), ("b", "y"), ("c",), ("x",)]


def test_ranges_of_names_are_explained_only_where_there_are_any() -> None:
    first, told = values("0"), values("1", "2", "3", "4", complete=False)
    names = [f"t{chr(97 + n)}{'x' * n}" for n in range(12)]
    alike = [table(name, told if name == "tbx" else first) for name in names]
    others = [table(f"u{n}", values("9", name=f"v{n}")) for n in range(22)]
    text = written(*alike, *others)
    assert "tables ta, tbx," in text
    assert "  = tbx: state [1, 2, 3]\n" in text, "unlike numbered ones these may hold other things"
    assert "A_{" not in text
    shards = [table(f"t_{n}", first) for n in range(5)]
    assert "A_{1..3, 7}: A_1, A_2, A_3 and A_7" in written(*shards)
