"""Questions that show what Quorum does, each with an answer written by hand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SampleQuestion:
    """A question on the sample database.

    Attributes:
        question: As a user would ask it.
        shows: What the question is there to show, for people.
        gold: SQL, written by hand, that answers it.
    """

    question: str
    shows: str
    gold: str


DEMO_QUESTIONS = (
    SampleQuestion(
        question="What is the average rating of reviews for each category name?",
        shows="a join and an aggregate",
        gold="""SELECT c.name, AVG(r.rating)
FROM reviews AS r
JOIN products AS p ON p.product_id = r.product_id
JOIN categories AS c ON c.category_id = p.category_id
GROUP BY c.category_id, c.name""",
    ),
    SampleQuestion(
        question="How many events of type 'purchase' happened from February to May 2024?",
        shows="sharded tables",
        gold="""SELECT COUNT(*) FROM (
    SELECT event_type FROM events_2024_02
    UNION ALL SELECT event_type FROM events_2024_03
    UNION ALL SELECT event_type FROM events_2024_04
    UNION ALL SELECT event_type FROM events_2024_05
) WHERE event_type = 'purchase'""",
    ),
    SampleQuestion(
        question="What is the average total_amt of completed orders per channel?",
        shows="a query that fails first and is repaired: no column is called total_amt",
        gold="""SELECT channel, AVG(total_amount)
FROM orders
WHERE LOWER(status) = 'completed'
GROUP BY channel""",
    ),
)
