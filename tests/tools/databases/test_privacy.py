"""Names of columns whose values must not become samples, and names that only sound alike."""

from __future__ import annotations

import pytest

from quorum.tools.databases.introspection import is_private


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "userPassword",
        "PASSWORD_HASH",
        "EntSSN",
        "ssn",
        "api_key",
        "credit_card_no",
        "IBAN",
        "accessToken",
        "social security",
        "passport_number",
        "client_secret",
    ],
)
def test_private(name: str) -> None:
    assert is_private(name)


@pytest.mark.parametrize(
    "name", ["passenger", "session_id", "token_count", "card_type", "lesson", "secretary", "pin"]
)
def test_not_private(name: str) -> None:
    assert not is_private(name)
