"""The virtual folder that agents explore."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.knowledge.catalog import ADVICE, Catalog, Column, Table
from quorum.knowledge.schema import files
from quorum.knowledge.schema.files import SchemaFiles, search

SALES = [Table(f"sales_{d}", (Column("id", "INTEGER"), Column("total", "REAL", "gross"))) for d in (1, 2, 3)]
PEOPLE = Table("customers", (Column("id", "INTEGER"), Column("city", "TEXT", "where they live", ("Ghent",))))
ODD = Table('../order "x"', (Column("a b", "TEXT"),))
FILES = SchemaFiles(
    Catalog("shop", "sqlite", (*SALES, PEOPLE, ODD), (f"one file was missing.{ADVICE}--db other",)),
    {"terms.md": "A sale is an order.\nA customer buys."},
)
CITY = "city TEXT [Ghent] -- where they live"


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        (
            "ls",
            "README.md\nDDL.sql\nsales_1.txt (one of 3 tables alike, to sales_3.txt)\ncustomers.txt\n"
            ".._order _x_.txt\ndocs/terms.md",
        ),
        ("ls docs", "terms.md"),
        ("ls sales_2.txt", "sales_2.txt"),
        *(
            (f"cat {name}", f"table customers\n  id INTEGER\n  {CITY}")
            for name in ("customers.txt", "customers", "./customers.txt", "CUSTOMERS", "/customers.txt")
        ),
        ("cat sales_3", "tables sales_{1..3} (3 tables)\n  id INTEGER\n  total REAL -- gross"),
        ("cat '.._order _x_.txt'", 'table "../order ""x"""\n  "a b" TEXT'),
        *((f"head {option} customers", "table customers\n  id INTEGER") for option in ("-n 2", "-n2", "-2")),
        ("grep -ri GHENT .", f"customers.txt: {CITY}"),
        ("grep total", "sales_1.txt: total REAL -- gross"),
        ('grep "sale is" docs', "docs/terms.md: A sale is an order."),
        ("grep -l '^id INT' *.txt", "sales_1.txt\ncustomers.txt"),
        ("grep nothing_like_it", "no line matches 'nothing_like_it'"),
    ],
)
def test_a_command_prints(command: str, printed: str) -> None:
    assert FILES.run(command) == printed


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("rm -rf /", "rm: no such command"),
        ("cat nope", "no such file"),
        ("cat docs", "is a folder"),
        ("cat", "name a file"),
        ("ls nope", "no such file or folder"),
        ("head -n x customers", "whole number"),
        ("grep -z a", "unknown option -z"),
        ("grep", "grep [-i]"),
        ("cat a | head", "without pipes"),
        ('cat "x', "No closing quotation"),
        ("", "No command given"),
    ],
)  # fmt: skip
def test_mistakes_are_answered_with_what_to_do(command: str, answer: str) -> None:
    assert answer in FILES.run(command)


def test_a_models_readme_has_the_notes_without_advice_to_the_user() -> None:
    assert FILES.run("cat README.md").rstrip().endswith("Note: one file was missing.")


def test_output_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_CHARS", 2000)
    table = Table("t", tuple(Column(f"column_{i}", "TEXT", "x" * 900) for i in range(100)))
    printed = SchemaFiles(Catalog("c", "sqlite", (table,))).run("cat t")
    assert len(printed) < 2200
    assert "… cut: " in printed
    assert "characters cut)" in printed


@pytest.mark.parametrize(
    ("pattern", "line", "matches"),
    [
        ("total", "the total", True),
        ("al$", "the total", True),
        ("t.*l", "the total", True),
        ("foo\\|tot", "the total", True),
        ("foo|bar", "the total", False),
        ("\\btot", "the total", True),
        ("to\\w+l", "the total", True),
        ("(", "a (b)", True),
        ("NUMBER(38,0)", "a NUMBER(38,0)", True),
        ("(to|ta){2}l", "the total", True),
        ("a.+b", "axb", True),
        ("[z-a]", "x", False),
    ],
)  # fmt: skip
def test_patterns(pattern: str, line: str, matches: bool) -> None:
    assert search([line], pattern)[1] == ([0] if matches else [])


def test_what_is_no_pattern_is_searched_as_text_and_said() -> None:
    assert FILES.run("grep '(a+'").startswith("(searched as plain text")
    assert FILES.run("grep -F '(a+'") == "no line matches '(a+'"
    assert search(["a (a+)"], "(a+", ignore_case=True) == (True, [0])
    assert search(["TOTAL", "tot\ud800al"], "total$", ignore_case=True) == (False, [0])


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", ".*.*.*.*.*.*x", "(.*a){20}", "(a?){900}a{900}", "(a{900}){900}"]
)
def test_no_pattern_takes_long(pattern: str) -> None:
    """By backtracking they would take hours; these take milliseconds."""
    search(["a" * 100_000], pattern, ignore_case=True)


@given(st.text(max_size=12), st.text(max_size=30))
def test_any_pattern_and_command_gets_an_answer(pattern: str, command: str) -> None:
    assert set(search([command], pattern)[1]) <= {0}
    assert isinstance(FILES.run(command), str)
    assert isinstance(FILES.run(f"grep {pattern}"), str)
