"""What the simulated model says: by the task and the question in the prompt, always the same.

It imports nothing of ours, so that a server process starts at once.
"""

from __future__ import annotations

import json
import re
from typing import Any

_QUESTION = re.compile(r"orders over (\d+) euros")
_TASK = re.compile(r"<task>(\w+)</task>")

GOLD = (
    "SELECT c.city, COUNT(*) AS orders FROM orders AS o JOIN customers AS c ON c.id = o.customer_id "
    "WHERE o.total > {least} GROUP BY c.city"
)
IN_STEPS = (
    "WITH large AS (SELECT o.id, o.customer_id FROM orders AS o WHERE o.total > {least}), "
    "placed AS (SELECT c.city, l.id FROM large AS l JOIN customers AS c ON c.id = l.customer_id) "
    "SELECT p.city, COUNT(p.id) AS orders FROM placed AS p GROUP BY p.city"
)


def reply_to(text: str) -> str:
    """The reply to a prompt (all its messages as one text), as JSON: everything is done right at once.

    Candidates that are told to write in steps do so: a vote is over different queries of one result.

    Raises:
        KeyError: A role asks that no recipe needs where all goes well.
    """
    role, question = _TASK.search(text), _QUESTION.search(text)
    assert role is not None
    sql = (IN_STEPS if "write it in steps" in text else GOLD).format(least=question[1])
    more = int(_QUESTION.findall(text)[-1]) + 10  # "And over ten more?": than in the turn before
    replies: dict[str, dict[str, Any]] = {
        "question_rewriter": {
            "ask": "question",
            "question": f"How many orders over {more} euros did each city place?",
        },
        "planner": {
            "steps": ["Join orders to customers.", "Filter by total.", "Count per city."],
            "expected_format": "city (text), orders (int)",
        },
        "plan_critique": {"feedback": "", "update_plan": False},
        "syntax_retriever": {"features": []},
        "action": {"thought": "Run it.", "action": "sql", "sql": sql, "command": None},
        "sql_writer": {"reasoning": "Count by city.", "sql": sql, "readings": []},
        "sql_critique": {"reasoning": "Right.", "correct": True, "sql": None},
        "validator": {
            "valid_result": True,
            "columns_not_needed": [],
            "result_empty": False,
            "suggest_fix": "",
        },
    }
    return json.dumps(replies[role[1]])
