"""Profiles of columns: which forms and oddities are found, and that none is found where none is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.knowledge.catalog import Catalog, Column, ColumnRef, Table, from_json, to_json
from quorum.knowledge.profile.columns import RowsOf, key_values, profiles, with_key_matches
from quorum.knowledge.profile.model import ColumnProfile, Kind
from quorum.knowledge.schema.oddities import oddities, topics
from quorum.knowledge.schema.render import render
from quorum.knowledge.syntax import ODD, dialects, idioms
from quorum.tools.databases import connect
from tests.engines import start_no_process
from tests.knowledge.card_examples import TOPICS, topic_of
from tests.schema_reader import parse_schema

Make = Callable[[int], str]


def amount(i: int) -> float:
    return 5 + (899_900 - i * 7919 % 899_900) / 100


def swapped(text: str) -> str:
    return text.translate(str.maketrans(",.", ".,"))


def day(text: str) -> Make:
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return lambda i: text.format(
        y=2018 + i % 7, m=1 + i % 12, d=1 + i * 5 % 28, mon=months[i % 12], yy=18 + i % 7
    )


NUMBERS: dict[str, Make] = {
    "$9,999.99": lambda i: f"${amount(i):,.2f}",
    "USD 9,999": lambda i: f"USD {amount(i):,.0f}",
    "9.999,99 €": lambda i: swapped(f"{amount(i):,.2f} €"),
    "€9.999,99": lambda i: swapped(f"€{amount(i):,.2f}"),
    "CHF 9’999.99": lambda i: f"CHF {amount(i):,.2f}".replace(",", "’"),
    "(£9,999.99)": lambda i: f"(£{amount(i):,.2f})",
    "9.99K": lambda i: f"{amount(i) / 100:.1f}K",
    "9.99 kg": lambda i: f"{amount(i):.2f} kg",
    "9.99km": lambda i: f"{amount(i):.1f}km",
    "9 %": lambda i: f"{i % 100} %",
    "<9.99": lambda i: f"<{i % 9}.5",
    "9.99": lambda i: f"{amount(i):.2f}",
}
DATES: dict[str, Make] = {
    "YYYY-MM-DD": day("{y}-{m:02}-{d:02}"),
    "YYYY-MM-DD HH:MM": day("{y}-{m:02}-{d:02} 10:20"),
    "YYYY-MM-DDTHH:MM:SS+HH:MM": day("{y}-{m:02}-{d:02}T10:20:30Z"),
    "YYYY/MM/DD": day("{y}/{m:02}/{d:02}"),
    "YYYYMMDD": day("{y}{m:02}{d:02}"),
    "DD.MM.YYYY": day("{d:02}.{m:02}.{y}"),
    "MM/DD/YYYY": day("{m}/{d}/{y}"),
    "DD-MM-YY": day("{d:02}-{m:02}-{yy}"),
    "D Mon YYYY": day("{d} {mon} {y}"),
    "Mon D, YYYY": day("{mon} {d}, {y}"),
    "MM/DD/YYYY HH:MM AM": day("{m}/{d}/{y} 3:04 PM"),
}


def texts(*parts: tuple[int, Make]) -> list[str]:
    """The values of some rows, by turns."""
    found = [[make(i) for i in range(n)] for n, make in parts]
    return [text for part in found for text in part]


def several(*values: str, rows: int = 200) -> list[str]:
    return list(islice(cycle(values), rows))


def profile(values: list[str | None], *, whole: bool = True) -> ColumnProfile:
    return profiles({"c": values}, whole=whole)["c"]


def told(values: list[str | None], kind: str = "TEXT") -> str:
    return oddities(Column("c", kind, profile=profile(values)), "sqlite", ends=False)


@pytest.mark.parametrize("form", [*NUMBERS, *DATES])
def test_one_form_is_told_where_no_cast_reads_it(form: str) -> None:
    found = profile([*texts((200, (NUMBERS | DATES)[form]))])
    assert found.kind is (Kind.NUMBER if form in NUMBERS else Kind.DATE)
    shown = [each.text for each in found.forms]
    assert shown == ([] if form == "9.99" or form.startswith("YYYY") else [form])


@given(st.data(), st.floats(0.02, 0.98))
def test_two_forms_are_found_at_any_share(data: st.DataObject, share: float) -> None:
    forms = data.draw(st.sampled_from([NUMBERS, DATES]))
    one, other = data.draw(st.lists(st.sampled_from([*forms]), min_size=2, max_size=2, unique=True))
    rows = {one: max(8, round(share * 400)), other: max(8, round((1 - share) * 400))}
    values = texts(*((n, forms[form]) for form, n in rows.items()))
    assert {form.text: form.rows for form in profile([*data.draw(st.permutations(values))]).forms} == rows


SPELT = "a value in several spellings"


def mostly(make: Make, other: str, rows: int = 5) -> list[str]:
    """A hundred values, of which some are another one."""
    return texts((100 - rows, make), (rows, lambda i: other))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (mostly(NUMBERS["$9,999.99"], "USD 86,000", 10), "forms $9,999.99 90%, USD 9,999 10%"),
        (mostly(NUMBERS["9 %"], "0.10", 20), "forms 9 % 80%, 9.99 20% as 0.10"),
        (mostly(lambda i: f"{i + 1} min", "7.5 h", 40), "forms 9 min 60%, 9.99 h 40%"),
        (mostly(NUMBERS["9.99"], "on request", 10), "forms 9.99 90%, on request 10%"),
        (mostly(DATES["YYYY-MM-DD"], "45290"), "forms YYYY-MM-DD 95%, 99999 5% as 45290"),
        (several("Ghent", "ghent", "GHENT ", "Lund"), f"{SPELT}, 50% not the main one: G"),
        (several("Zürich", "Zurich", "Lund"), f"{SPELT}, 34% not the main one: Zürich, Zu"),
        (several("St. Louis", "St Louis"), f"{SPELT}, 50% not the main one: St. Louis, S"),
        (several("Oslo ", "Lund"), 'outer blanks 50% as "Oslo "'),
        (several("Yes", "no", "Y", "0", "TRUE"), "Yes, Y, TRUE / no, 0"),
        (several("1", "0", "1", "0", "yes"), "1, yes / 0"),
        (several("x", "y", "n/a", "NULL", ""), 'no value: n/a, "NULL", "" 60%'),
        (mostly(lambda i: str(i % 80), "unknown"), "no value: unknown 5%; numbers"),
        (mostly(lambda i: str(i % 80), "999"), "far from others (others 0 to 79): 999 5%; num"),
        (mostly(lambda i: str(18 + i % 60), "-1"), "far from others (others 18 to 77): -1 5%"),
        (mostly(lambda i: f"{i % 60 - 20}.5", "-9999"), "far from others (others -20.5 to 39.5)"),
        (mostly(lambda i: str(150 + i % 45), "0"), "far from others (others 150 to 194): 0 5%"),
        (mostly(DATES["YYYY-MM-DD"], "1900-01-01"), "far from others (others 2018-01-01 to 2024"),
        (mostly(DATES["YYYY-MM-DD"], "9999-12-31"), "far from others (others 2018-01-01 to 2024"),
        (several("km", "mi", "km"), "units: km 66%, mi 34%"),
        (
            texts((90, lambda i: f"C{i:05}"), (10, lambda i: f"c{i:05} ")),
            '10 values in several spellings, 10% not the main one: C00000, "c00000 "',
        ),
    ],
)
def test_what_is_odd_is_told(values: list[str | None], expected: str) -> None:
    assert told(values).startswith(expected)


FEW = [
    "F M", "H D", "S M L XL", "Y N", "0 1", "+ -", "A+ A A-", "NA EU ME", "None Small Large", "0 5 10 15",
]  # fmt: skip


@pytest.mark.parametrize(
    "values",
    [
        *(pytest.param(several(*few.split()), id=few) for few in FEW),
        pytest.param(texts((200, lambda i: str(1990 + i % 30))), id="years"),
        pytest.param(texts((200, lambda i: str(i % 100))), id="ages up to 99"),
        pytest.param(mostly(lambda i: str(i % 60 - 20), "-1"), id="degrees"),
        pytest.param(texts((200, lambda i: f"+1 555-{100 + i}-{1000 + 7 * i}")), id="phones"),
        pytest.param(texts((200, lambda i: f"+155512{10000 + i}")), id="phones without blanks"),
        pytest.param(texts((200, lambda i: f"555 {100 + i} {200 + i}")), id="phones in groups"),
        pytest.param(texts((200, lambda i: f"192.168.{i}.{i * 3 % 256}")), id="addresses"),
        pytest.param(texts((200, lambda i: f"{i % 4}.{i % 13}.{i % 50}")), id="versions"),
        pytest.param(texts((200, lambda i: f"a{i}@example.com")), id="mails"),
        pytest.param(texts((200, lambda i: f"{i} Main St")), id="streets"),
        pytest.param(
            texts((100, lambda i: f"{10_000 + i:05}"), (50, lambda i: f"{1000 + i}")), id="postal codes"
        ),
        pytest.param(texts((100, lambda i: f"V{i % 8}"), (100, lambda i: f"Inline {i % 6}")), id="engines"),
        pytest.param(texts((200, lambda i: f"{i * 2**40:016x}")), id="hashes"),
        pytest.param(texts((200, lambda i: f"{i % 24:02}:{i % 60:02}")), id="times"),
        pytest.param(texts((200, lambda i: f"{i % 5}-{i % 3}")), id="scores"),
        pytest.param(texts((200, lambda i: f"The {i} Nights")), id="titles"),
    ],
)
def test_nothing_is_told_of_what_is_not_odd(values: list[str | None]) -> None:
    found = profile(values)
    assert not found.odd, found


def test_days_of_either_order_are_told_by_their_forms() -> None:
    days = [day("{m:02}/{d:02}/{y}" if i % 3 else "{d:02}/{m:02}/{y}")(i) for i in range(300)]
    found = profiles({"day": days}, whole=True)["day"]
    assert {form.text for form in found.forms} == {"DD/MM/YYYY", "MM/DD/YYYY", "AA/BB/YYYY"}
    column = Column("day", "TEXT", profile=found)
    assert "DD/MM/YYYY or MM/DD/YYYY" in oddities(column)
    assert oddities(column, plain=True).startswith("written in different ways (9 is any digit): ")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (several("Zürich", "Zurich", "Lund"), "a value spelled in several ways, 34% rarer: Zürich, Zu"),
        (several("Yes", "no", "Y", "0", "TRUE"), "several words mean the same: Yes, Y, TRUE / no, 0"),
        (several("x", "y", "n/a", ""), 'words for a missing value: n/a, "", in 50% of the rows'),
        (mostly(lambda i: str(i % 80), "999"), "so far from the rest (others 0 to 79) that it may"),
    ],
)
def test_a_person_is_told_it_without_notation(values: list[str | None], expected: str) -> None:
    assert oddities(Column("c", "TEXT", profile=profile(values)), plain=True).startswith(expected)


def test_rows_of_totals_are_told_where_their_numbers_are_larger() -> None:
    months = [*several("2024-01", "2024-02", "2024-03", rows=30), "Total"]
    sums = [str(5 + i % 7) for i in range(30)]
    found = profiles({"month": months, "sold": [*sums, "240"]}, whole=True)["month"]
    assert (found.totals, found.forms, found.kind) == ((("Total", 1),), (), Kind.DATE)
    brands = profiles({"brand": ["Shell", "Total"] * 20, "sold": several("7", "8", "9", rows=40)}, whole=True)
    assert not brands["brand"].totals


def table(name: str, **columns: list[str]) -> tuple[Table, dict[ColumnRef, RowsOf]]:
    found = profiles(columns, whole=True)
    made = Table(name, tuple(Column(each, "TEXT", profile=found[each]) for each in columns))
    keys = {(name, each): key_values(values, found[each]) for each, values in columns.items()}
    return made, {place: values for place, values in keys.items() if values}


@pytest.mark.parametrize(
    ("key", "other", "after"),
    [
        ("C{:05}", "c{:05}", ("case",)),
        ("C{:05}", "C{:05} ", ("trim",)),
        ("C{:05}", "C{}", ("zeros",)),
        ("{:05}", "{}", ("zeros",)),
        ("C{:05}", " c{}", ("trim", "case", "zeros")),
        ("C{:05}", "C{:05}", ()),
        ("C{:05}", "D{:05}", ()),
    ],
)
def test_keys_are_told_that_match_only_after_steps(key: str, other: str, after: tuple[str, ...]) -> None:
    customers, keys = table("shop.customers", id=[key.format(i) for i in range(1, 60)])
    mixed = [(key if i % 5 else other).format(1 + i % 59) for i in range(300)]
    orders, more = table("orders", customer_id=mixed)
    _, orders = with_key_matches([customers, orders], keys | more)
    (column,) = orders.columns
    found = [(each.table, each.column, each.after, each.rows) for each in column.profile.keys]  # type: ignore[union-attr]
    assert found == [("shop.customers", "id", after, 60)] * bool(after)
    assert ("matches shop.customers.id only after " in oddities(column)) is bool(after)


def test_a_profile_survives_the_cache_and_the_schema_text_stays_readable() -> None:
    odd = profile([*texts((90, NUMBERS["$9,999.99"]), (9, NUMBERS["USD 9,999"])), 'x -- "y" ! ; z', ""])
    flag = profile([*several("Yes", "no", "Y ")])
    columns = (Column("paid", "TEXT", "what was paid", profile=odd), Column("ok", "TEXT", profile=flag))
    catalog = Catalog("shop", "sqlite", (Table("t", columns, row_count=101),))
    assert from_json(json.loads(json.dumps(to_json(catalog)))) == catalog
    back = parse_schema(render(catalog).text).tables[0]
    assert [(c.name, c.description) for c in back.columns] == [("paid", "what was paid"), ("ok", "")]
    read = re.findall("To read (.*?): ", render(catalog).text)
    assert read == ["number forms", "flag variants"]
    assert " ! " not in render(catalog, budget=0).text


def test_every_dialect_reads_every_topic() -> None:
    assert {*ODD} == {*dialects()}
    for dialect in dialects():
        wanted = [topic_of(dialect, topic) for topic in TOPICS]
        assert [line.partition(":")[0] for line in idioms(dialect, wanted)] == wanted


@pytest.mark.parametrize(
    ("other", "read"), [("DD.MM.YYYY", True), ("MM/DD/YYYY", True), ("Mon D, YYYY", False)]
)
def test_dates_are_read_by_the_forms_that_the_column_has(other: str, read: bool) -> None:
    dates = profile([*texts((90, DATES["YYYY-MM-DD"]), (30, DATES[other]))])
    topics_, lines = topics(dates), idioms("sqlite", topics(dates))
    assert f"date {other}"[:15] in topics_
    assert [line.partition(":")[0] for line in lines] == [f"date {other}"] * read
    assert [line.partition(":")[0] for line in idioms("duckdb", topics_)] == ["date forms"]


def test_a_profile_of_many_rows_is_quick_enough_to_be_made_of_each_table() -> None:
    calls = {"values": 0}

    class Counted(str):
        def translate(self, table: object) -> str:  # each value is read once for its skeleton
            calls["values"] += 1
            return super().translate(table)  # type: ignore[arg-type]

    values = [Counted(f"a few words {i}") for i in range(5000)]
    assert not profile([*values]).odd
    assert calls["values"] < 300, "texts that are no numbers are not all read"


REVIEWED = {
    "spider1": """car_names.Model car_names.Make cars_data.MPG cars_data.Horsepower Dogs.weight
        Professionals.street airports.City airports.AirportName airports.Country airports.CountryAbbrev
        flights.SourceAirport flights.DestAirport TV_series.Air_Date TV_series.Rating TV_series.Viewers_m
        country.HeadOfState""",
    "defog": "cars.color wallet_merchant_balance_daily.updated_at highlow.lowest_elevation",
    "spider2-local": "albums.Title customers.FirstName customers.City invoices.BillingCity tracks.Name",
    "ambrosia": "",
    "messy": """patients.insurer patients.smoker patients.email visits.patient_no visits.visit_date
        visits.wait_minutes visits.pain_score lab_results.unit sites.region sites.floor_area_m2
        meters.site_code readings.consumption bills.amount bills.vat_rate alarms.duration_minutes
        district_summary.district customers.city customers.newsletter products.weight orders.customer_id
        orders.order_date orders.order_total orders.discount orders.coupon_code store_sales.store
        store_sales.month""",
}
"""Columns of the shared databases with an oddity, each looked at: it is true."""


@pytest.mark.parametrize("name", REVIEWED)
async def test_of_real_databases_only_what_is_odd_is_told(
    shared: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_no_process(monkeypatch)
    folder = shared / "data" / name
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here")
    found = set()
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".sqlite", ".db")):
        async with connect(f"sqlite:///{path}") as connector:
            catalog = await connector.catalog()
        found |= {f"{t.name}.{c.name}" for t, c in catalog.columns() if oddities(c, "sqlite", ends=False)}
    assert found == {*REVIEWED[name].split()}
