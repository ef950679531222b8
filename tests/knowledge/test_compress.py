"""What a model gets to read, and what it costs."""

from __future__ import annotations

from dataclasses import replace

from quorum.knowledge.catalog import Catalog, Column, Field, ForeignKey, Metric, Table
from quorum.knowledge.schema.files import SchemaFiles
from quorum.knowledge.schema.render import render
from quorum.knowledge.tokens import estimate_tokens
from tests.schema_reader import parse_schema

SHOP = Catalog(
    "shop",
    "sqlite",
    (
        Table(
            "customers",
            (Column("id", "INTEGER", nullable=False), Column("name", "TEXT", samples=("Ada", "Grace, Dr."))),
            description="people who have bought",
            row_count=1200,
            primary_key=("id",),
        ),
        Table(
            'order "x"',
            (
                Column("id", "INTEGER"),
                Column("customer id", "INTEGER", "who\nordered"),
                Column("extra", "JSON", fields=(Field("items[].sku", "string", inferred=True),)),
            ),
            row_count=12345,
            primary_key=("id",),
            foreign_keys=(ForeignKey(("customer id",), "customers", ("id",)),),
        ),
        Table("big", (Column("a", "INT"), Column("b", "INT"), Column("c", "")), kind="view"),
        Table("unknown", ()),
    ),
    ("one file was missing",),
)


def wide(tables: int = 30) -> Catalog:
    columns = tuple(
        Column(
            f"column_{i}",
            "TEXT",
            f"the meaning of column number {i} in some detail " * 4,
            (f"value {i}",) * 1,
        )
        for i in range(40)
    )
    made = tuple(
        Table(f"t_{n:02}", tuple(replace(c, name=f"{c.name}_{n}") for c in columns)) for n in range(tables)
    )
    return Catalog("wide", "sqlite", made)


def test_a_small_database_reads_well() -> None:
    assert render(SHOP).text == (
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


def test_keys_of_several_columns_have_lines_of_their_own() -> None:
    key = ForeignKey(("b", "a"), "s.other", ("x", "y"))
    table = Table("t", (Column("a", "INT"), Column("b", "INT")), primary_key=("b", "a"), foreign_keys=(key,))
    text = render(Catalog("c", "sqlite", (table,))).text
    assert "  primary key (b, a)\n  foreign key (b, a) -> s.other (x, y)\n" in text
    assert parse_schema(text).tables == (table,)


def test_equal_catalogs_give_equal_bytes() -> None:
    assert render(SHOP) == render(replace(SHOP))
    assert render(wide()).text == render(wide()).text


def test_a_budget_is_kept_and_what_is_missing_is_said_in_the_text() -> None:
    whole = render(wide(), budget=10**9)
    assert whole.left_out == ()
    assert "left out" not in whole.text
    for budget in (whole.tokens // 2, whole.tokens // 4):
        less = render(wide(), budget=budget)
        assert less.tokens <= budget
        assert "exceed the budget" not in less.text
        assert less.left_out
        assert less.text.rstrip().endswith("# left out: " + "; ".join(less.left_out))


def test_the_budget_is_spent() -> None:
    whole = render(wide(), budget=10**9).tokens
    assert render(wide(), budget=whole).text == render(wide(), budget=10**9).text
    assert render(wide(), budget=whole // 2).tokens > whole // 4


def test_what_everything_would_take_is_known_at_every_budget() -> None:
    whole = render(wide(), budget=10**9)
    for budget in (None, 50, whole.tokens // 2, whole.tokens - 1, whole.tokens):
        assert render(wide(), budget=budget).whole == whole.tokens == whole.whole


def test_names_alone_are_kept_even_above_the_budget_which_is_said() -> None:
    text = render(wide(), budget=50)
    assert text.tokens > 50
    assert "exceed the budget of 50 tokens" in text.text
    assert text.left_out[-1] in text.text
    assert sum(len(t.columns) for t in parse_schema(text.text).tables) == 1200


def test_a_group_is_written_once_with_its_members_row_counts() -> None:
    columns = (Column("id", "INTEGER"), Column("total", "REAL", samples=("1.5",)))
    tables = tuple(
        Table(f"s_{d}", columns, row_count=n) for d, n in ((20240131, 5), (20240201, None), (20240202, 7))
    )
    text = render(Catalog("c", "duckdb", tables)).text
    assert "tables s_{20240131..20240202} (3 tables; rows 5, ?, 7)\n" in text
    assert text.count("total") == 1
    assert parse_schema(text).tables == tables


def test_a_changed_column_keeps_its_place_in_a_variant() -> None:
    base = tuple(Column(f"c{i}", "INT") for i in range(24))
    other = (*base[:3], Column("c3", "TEXT"), *base[4:23], Column("new", "INT"))
    text = render(Catalog("c", "sqlite", (Table("t1", base), Table("t2", other)))).text
    assert "table t2 like t1\n  - c23\n  + c3 TEXT\n  + new INT\n" in text
    assert [c.name for c in parse_schema(text).tables[1].columns] == [c.name for c in other]


def values(*samples: str, complete: bool = True) -> Column:
    return Column("state", "TEXT", samples=samples, complete=complete)


def written(*columns: Column, budget: int | None = None) -> str:
    """The text of one table for each column, named like shards."""
    tables = tuple(Table(f"t_{n}", (column,)) for n, column in enumerate(columns))
    return render(Catalog("c", "sqlite", tables), budget=budget).text


def test_all_values_of_a_column_are_told_from_examples() -> None:
    text = written(values("on", ""))
    assert '  state TEXT [all: on, ""]\n' in text
    assert "[all: ..]: all values but NULL" in text.splitlines()[1]
    assert "[..]" not in text
    assert "no brackets" not in text
    assert "  state TEXT [on, off]\n" in written(values("on", "off", complete=False))
    text = written(values())
    assert "  state TEXT [NULL only]\n" in text
    assert "[NULL only]: no value in any row" in text.splitlines()[1]
    assert "brackets" not in written(Column("state", "TEXT")), "nothing is said of marks that are not used"


def test_a_list_that_was_cut_is_not_said_to_be_complete() -> None:
    many = values(*(f"a value in so many words {i}" for i in range(12)))
    tables = tuple(Table(f"t{chr(97 + n)}", (replace(many, name=f"c{n}"),)) for n in range(20))
    catalog = Catalog("c", "sqlite", tables)
    whole = render(catalog, budget=10**9)
    assert whole.text.count("  [all: ") + whole.text.count(" TEXT [all: ") == 20
    less = render(catalog, budget=whole.tokens // 2).text
    assert "TEXT [a value" in less
    assert "[all: " not in less
    assert "TEXT [x x" in written(values("x " * 40)), "one that was shortened is not known"
    assert "[all: " not in written(values("a  b", "a b")), "nor are two that look alike"
    silent = written(values(), budget=1)
    assert "NULL" not in silent
    assert "sample values of 1 of 1 columns" in silent


def test_a_group_is_complete_only_if_each_member_is_and_has_the_same() -> None:
    assert "[all: a, b]" in written(values("a", "b"), values("b", "a"))
    assert "[NULL only]" in written(values(), values())
    for other in (
        values("a"),
        values("a", "c"),
        values("a", "b", complete=False),
        values(),
        Column("state", "TEXT"),
    ):
        for pair in ((values("a", "b"), other), (other, values("a", "b"))):
            text = written(*pair)
            assert "tables t_{0, 1}" in text
            assert "[all: " not in text
            assert "[NULL only]" not in text


def test_a_variant_inherits_no_completeness_that_is_not_its_own() -> None:
    rest = tuple(Column(f"c{i}", "INT") for i in range(24))
    same, other, gone = (replace(values("a"), name=name) for name in ("same", "other", "gone"))
    base = Table("base", (*rest, same, other, gone))
    variant = Table("variant", (*rest, same, replace(other, samples=("b",))))
    text = render(Catalog("c", "sqlite", (base, variant))).text
    assert "table variant like base\n" in text
    assert "  same TEXT [all: a]\n  other TEXT [a]\n  gone TEXT [all: a]\n" in text


def test_the_hash_tells_complete_samples_from_examples() -> None:
    catalogs = [Catalog("c", "sqlite", (Table("t", (values("a", complete=c),)),)) for c in (False, True)]
    assert catalogs[0].hash != catalogs[1].hash


def test_a_value_cannot_break_out_of_its_line() -> None:
    nasty = 'x]\ntable evil -- "drop"'
    table = Table("t", (Column("a", "TEXT", nasty, (nasty,)),), description=nasty)
    back = parse_schema(render(Catalog("c", "sqlite", (table,), (nasty,))).text)
    assert [t.name for t in back.tables] == ["t"]
    assert back.tables[0].columns[0].samples == ('x] table evil -- "drop"',)


def test_tokens_are_estimated_near_the_truth() -> None:
    text = "SELECT customer_id, COUNT(*) AS orders FROM sales WHERE year = 2024 GROUP BY customer_id"
    assert 18 <= estimate_tokens(text) <= 30  # o200k: 20
    assert estimate_tokens("") == 0
    assert estimate_tokens("word " * 1000) in range(900, 1200)


def small(name: str, *rows: tuple[str | None, ...], columns: str = "id label", **more: object) -> Table:
    """A table of which all rows are known."""
    cells = list(zip(*rows, strict=True))
    made = tuple(Column(c, "TEXT").with_cells(v) for c, v in zip(columns.split(), cells, strict=True))
    return Table(name, made, row_count=len(rows), **more)  # type: ignore[arg-type]


def test_a_small_table_is_shown_whole_instead_of_samples() -> None:
    plans = small(
        "plans", ("1", "free, for all"), ("2", None), ("3", "NULL"), ("4", "*"), ("5", "two\nlines ")
    )
    text = render(Catalog("c", "sqlite", (plans,))).text
    assert text.endswith(
        "\ntable plans (5 rows)\n  id, label TEXT\n"
        '  | 1, "free, for all"\n  | 2, NULL\n  | 3, "NULL"\n  | 4, "*"\n  | 5, "two\\nlines "\n'
    )
    assert "| lines: all rows of the table" in text
    assert parse_schema(text).tables == (plans,)


def test_values_that_are_withheld_stay_so_in_a_whole_table() -> None:
    users = small("users", ("1", "x"), ("2", "y"))
    users = replace(users, columns=(*users.columns, Column("password", "TEXT")))
    text = render(Catalog("c", "sqlite", (users,))).text
    assert "  id, label, password TEXT\n  | 1, x, *\n  | 2, y, *\n" in text
    assert parse_schema(text).tables == (users,)


def test_wide_rows_are_no_table_to_show_whole() -> None:
    text = render(Catalog("c", "sqlite", (small("t", *((str(i), "x" * 60) for i in range(12))),))).text
    assert "  | 0, xxx" in text
    wide_rows = small("t", *((str(i), "x" * 200) for i in range(12)))
    text = render(Catalog("c", "sqlite", (wide_rows,))).text
    assert "|" not in text
    assert "  id TEXT [0, 1, 2]\n" in text


def test_rows_samples_of_members_and_nulls_give_way_before_descriptions() -> None:
    described = replace(small("t", ("1", "a"), ("2", None)), description="a description " * 20)
    catalog = Catalog(
        "c", "sqlite", (described, Table("u", (Column("x", "INT", samples=("1",), nulls=True),)))
    )
    whole = render(catalog)
    assert "  | 2, NULL\n" in whole.text
    assert "  x INT :NULLs [1]\n" in whole.text
    less = render(catalog, budget=whole.tokens - 1)
    assert "|" not in less.text
    assert "NULLs" not in less.text
    assert "  label TEXT [all: a]\n" in less.text
    assert described.description.strip() in less.text
    assert less.left_out == ("the rows of 1 small table",)


def test_each_table_of_a_group_shows_what_it_holds() -> None:
    column, other = Column("city", "TEXT", samples=("Ghent",)), Column("size", "INT", samples=("1", "2"))
    tables = tuple(
        Table(f"t_{n}", (replace(column, samples=samples), other), row_count=50)
        for n, samples in enumerate((("Ghent", "Lund"), ("Lund",), ("Faro", "Ghent"), ()))
    )
    text = render(Catalog("c", "sqlite", tables)).text
    assert "  city TEXT [Ghent, Lund]\n  size INT [1, 2]\n  = t_2: city [Faro]\n" in text
    assert text.count("=") == 2, "one in the legend: the others hold nothing else"
    assert [t.columns[0].samples[:1] for t in parse_schema(text).tables] == [
        (c,) for c in ("Ghent", "Ghent", "Faro", "Ghent")
    ]
    many = tuple(Table(f"t_{n}", (replace(column, samples=(f"in {n}",)),)) for n in range(40))
    assert "in 39" not in render(Catalog("c", "sqlite", many)).text, "one of so many stands for all"


def test_small_tables_of_a_group_are_shown_whole() -> None:
    tables = small("t_1", ("1", "a")), small("t_2", ("2", "b"), ("3", "y")), small("t_3", ("4", "c"))
    text = render(Catalog("c", "sqlite", tables)).text
    assert text.endswith(
        "  id, label TEXT\n  = t_1\n  | 1, a\n  = t_2\n  | 2, b\n  | 3, y\n  = t_3\n  | 4, c\n"
    )
    assert parse_schema(text).tables == tables
    large = Table("t_4", tuple(Column(c, "TEXT", samples=("x", "y")) for c in ("id", "label")), row_count=99)
    text = render(Catalog("c", "sqlite", (*tables, large))).text
    assert "  = t_4: id [x], label [x]\n" in text
    assert [t.columns[1].samples for t in parse_schema(text).tables] == [("a",), ("b", "y"), ("c",), ("x",)]


def test_exact_duplicates_are_told() -> None:
    one = Table("orders", (Column("id", "INT"),), row_count=1244, distinct_rows=68)
    text = render(Catalog("c", "sqlite", (one,))).text
    assert "table orders (1,244 rows, 68 distinct)\n" in text
    group = tuple(replace(one, name=f"o_{n}", row_count=7, distinct_rows=d) for n, d in enumerate((None, 3)))
    text = render(Catalog("c", "sqlite", group)).text
    assert "tables o_{0, 1} (2 tables; rows 7, 7 with 3 distinct)\n" in text
    assert parse_schema(text).tables == group


def test_ranges_of_names_are_explained_only_where_there_are_any() -> None:
    columns = tuple(Column(f"c{i}", "INT") for i in range(3))
    alike = tuple(Table(f"t{chr(97 + n)}{'x' * n}", columns) for n in range(12))
    told = Column("c0", "INT", samples=("1", "2", "3", "4"))
    first = replace(told, samples=("0",))
    held = [replace(t, columns=(c, *columns[1:])) for t, c in zip(alike, (first, told), strict=False)]
    alike = (*held, *alike[2:])
    others = tuple(Table(f"u{n}", (Column(f"v{n}", "INT", samples=("9",)),)) for n in range(22))
    text = render(Catalog("c", "sqlite", (*alike, *others))).text
    assert "tables ta, tbx," in text
    assert "  = tbx: c0 [1, 2, 3]\n" in text, "unlike numbered ones these may hold other things"
    assert "A_{" not in text
    shards = tuple(Table(f"t_{n}", columns) for n in range(5))
    assert "A_{1..3, 7}: A_1, A_2, A_3 and A_7" in render(Catalog("c", "sqlite", shards)).text


def test_metrics_stand_beside_their_table_and_are_explained() -> None:
    metrics = (
        Metric("revenue", "SUM(total)", "without\nreturns"),
        Metric("Average order", "SUM(total) / COUNT(*)"),
        Metric("mood"),
    )
    shop = Catalog("shop", "sqlite", (Table("orders", (Column("metric", "INT"),), metrics=metrics),))
    text = render(shop).text
    assert "  metric: revenue = SUM(total) -- without returns\n" in text
    assert '  metric: "Average order" = SUM(total) / COUNT(*)\n  metric: mood\n' in text
    assert "# metric: NAME = FORMULA" in text
    assert "# metric:" not in render(SHOP).text
    assert parse_schema(text).tables[0].metrics[1:] == metrics[1:]
    assert "metric: revenue = SUM(total)" in SchemaFiles(shop).run("cat orders.txt")
    assert "no column" in SchemaFiles(shop).run("cat README.md")


def test_a_budget_cuts_what_metrics_mean_before_their_formulas_and_never_their_names() -> None:
    metrics = tuple(Metric(f"metric_{n}", f"SUM(column_{n})", "what it tells " * 30) for n in range(60))
    table = Table("t", tuple(Column(f"column_{n}", "INT") for n in range(60)), metrics=metrics)
    catalog = Catalog("c", "sqlite", (table,))
    skeleton, whole = render(catalog, budget=1), render(catalog, budget=10**9)
    some = render(catalog, budget=(skeleton.tokens + whole.tokens) // 3)
    assert [m.name for m in parse_schema(skeleton.text).tables[0].metrics] == [m.name for m in metrics]
    assert "SUM" not in skeleton.text
    assert "the formulas of 60 metrics" in skeleton.left_out
    assert some.text.count("SUM(") == 60
    assert "…" in some.text
    assert "formulas" not in "".join(some.left_out)


def test_tables_that_differ_in_metrics_alone_are_no_group() -> None:
    columns = (Column("id", "INT"), Column("total", "INT"))
    tables = tuple(
        Table(f"sales_{year}", columns, metrics=(Metric("sum", "SUM(total)"),) * (year > 2021))
        for year in (2020, 2021, 2022, 2023)
    )
    text = render(Catalog("c", "sqlite", tables)).text
    assert text.count("metric: sum") == 1
    assert {t.name: t.metrics for t in parse_schema(text).tables} == {t.name: t.metrics for t in tables}
