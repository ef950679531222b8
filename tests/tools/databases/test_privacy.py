"""Names of columns whose values must not become samples, and names that only sound alike."""

from __future__ import annotations

from quorum.tools.databases.introspection import is_private

PRIVATE = (
    *("password", "userPassword", "PASSWORD_HASH", "EntSSN", "ssn", "api_key", "credit_card_no", "IBAN"),
    *("accessToken", "social security", "passport_number", "client_secret"),
)
PLAIN = ("passenger", "session_id", "token_count", "card_type", "lesson", "secretary", "pin")


def test_private_columns_are_known_by_their_names() -> None:
    assert tuple(filter(is_private, (*PRIVATE, *PLAIN))) == PRIVATE
