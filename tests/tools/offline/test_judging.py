"""The offline Judge: it prefers what the rules themselves would answer, and says when it cannot tell."""

from __future__ import annotations

import pytest

from quorum.agents.judge import ROLE
from quorum.agents.prompting import PromptContext, prompts
from quorum.tools.offline.roles import Prompt, answer

OWN = "SELECT COUNT(*)\nFROM customers\nWHERE LOWER(customers.country) = 'france'"
ALL = "SELECT COUNT(*) FROM customers"


@pytest.mark.parametrize(
    ("queries", "choice"),
    [
        ([ALL, OWN], "B"),
        ([OWN, ALL], "A"),
        ([ALL, f"{ALL} WHERE country = 'France'"], "B"),
        ([ALL, ALL], "cannot tell"),
    ],
)
def test_the_choice_depends_on_the_queries_not_on_their_order(
    queries: list[str], choice: str, schema_text: str
) -> None:
    rivals = [
        {"label": label, "sql": sql, "row_count": 1, "columns": "n", "rows": ["[1]"], "reads": []}
        for label, sql in zip("AB", queries, strict=True)
    ]
    given = {"question": "How many customers are from France?", "rivals": rivals}
    context = PromptContext("sqlite", schema_text, "", "shop")
    messages = prompts().messages(ROLE, context, {**given, "expected_format": "", "differences": []})
    reply = answer(Prompt("\n\n".join(message["content"] for message in messages)))
    assert reply["choice"] == choice
    assert "demonstration" in reply["reason"]
