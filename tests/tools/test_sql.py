"""SQL as data: parsing."""

from __future__ import annotations

import pytest

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.sql import SyntaxProblem, dialect_name, parse_one_statement


def test_one_statement_is_parsed() -> None:
    assert parse_one_statement("SELECT 1; -- end", "sqlite").sql() == "SELECT 1"
    with pytest.raises(SyntaxProblem, match="there are 2"):
        parse_one_statement("SELECT 1; SELECT 2", "sqlite")
    with pytest.raises(SyntaxProblem) as caught:
        parse_one_statement("SELECT a\nFROM (t", "sqlite")
    assert (caught.value.line, caught.value.message) == (2, "Expecting ).")


def test_dialects_have_other_names() -> None:
    assert dialect_name(" PostgreSQL ") == "postgres"
    assert dialect_name("mariadb") == "mysql"
    with pytest.raises(ConfigurationError, match="no SQL dialect 'cobol'"):
        dialect_name("cobol")
