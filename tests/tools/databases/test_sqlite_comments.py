"""Comments in CREATE TABLE statements find their columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quorum.tools.databases.sqlite.comments import comments_of


def test_comments_find_their_columns() -> None:
    found = comments_of(
        """CREATE TABLE orders ( -- what was bought
            -- the number
            -- on the invoice
            id INTEGER PRIMARY KEY,
            amount DECIMAL(10, 2) DEFAULT (1 + 2), -- in euros, incl. tax
            "the, day" TEXT /* local
                time */ NOT NULL,
            note TEXT DEFAULT '-- no comment', plain INT,
            state TEXT CHECK (state IN ('a', 'b')) -- a: open
                -- b: closed
                ,
            /* keys */
            FOREIGN KEY (id) REFERENCES others (id) -- not a column
        ) -- the end"""
    )
    assert found.table == "what was bought the end"
    assert found.columns == {
        "id": "the number on the invoice",
        "amount": "in euros, incl. tax",
        "the, day": "local time",
        "state": "a: open",
    }


def test_on_one_line() -> None:
    found = comments_of("CREATE TABLE t (a INT /* first */, [b c] INT -- second\n)")
    assert found.columns == {"a": "first", "b c": "second"}
    assert comments_of("CREATE TABLE t (a, b)") == comments_of("")


@given(st.text(alphabet="ab(),-/*'\"`[]\n "))
def test_any_text_is_read(text: str) -> None:
    found = comments_of(f"CREATE TABLE t ({text}")
    assert all(isinstance(words, str) for words in found.columns.values())
