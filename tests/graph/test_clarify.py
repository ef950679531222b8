"""A close vote: the Judge, the words for the disagreement, and asking the user."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from quorum.graph.approval import Approval
from quorum.graph.ballots import Cluster, Vote
from quorum.graph.clarification import MAX_ASKED, MAX_REPLY, Clarification, read_reply
from quorum.graph.confidence import CHOSEN
from quorum.graph.disagreement import close_rivals
from quorum.knowledge.verified import KnowledgeBase, VerifiedPair
from quorum.tools.experts import ExpertLedger
from quorum.tools.models.scripted import Prompt
from tests.graph.shop import ABOVE_SIX, GOOD, QUESTION, RENAMED, Asked, Run, script, sql

SAID = [
    "Answer A and answer B agree in `city`.",
    "Only answer B requires `total > 6`.",
    "For Lyon, answer A says 3, answer B 2.",
]


def rivals(*queries: str, **roles: Any) -> dict[str, Any]:
    """Models that each write one of the queries."""
    return {f"m:{n}": script(action=sql(query), **roles) for n, query in enumerate(queries)}


@pytest.fixture
def asked(shop: Path, tmp_path: Path) -> partial[Asked]:
    return partial(Asked, shop, tmp_path / "home", clarify=True)


@pytest.mark.parametrize("queries", [(GOOD,), (GOOD, RENAMED), (GOOD, GOOD, GOOD, ABOVE_SIX)])
async def test_a_clear_vote_says_nothing_and_asks_nobody(queries: tuple[str, ...], asked: Any) -> None:
    assert (await asked(rivals(*queries)).replying())["disagreement"] == []


async def test_the_users_choice_becomes_the_answer_and_repeats_no_call(asked: Any, run: Run) -> None:
    said = script(action={**sql(GOOD), "summary": "Counts all orders."})
    ask = asked({**rivals(GOOD, GOOD, ABOVE_SIX), "m:0": said, "m:1": said})
    answer = await ask.replying("b")
    (question,) = ask.questions
    assert [(c.label, c.candidates) for c in question.choices] == [("A", 2), ("B", 1)]
    assert question.differences == SAID
    assert [c.says for c in question.choices] == ["Counts all orders.", "Shows city, orders."], "nobody said"
    assert question.choices[1].rows == [["Ghent", 1], ["Lyon", 2]]
    assert answer["sql"] == ABOVE_SIX
    assert answer["rows"] == [["Ghent", 1], ["Lyon", 2]]
    assert answer["confidence"] == CHOSEN
    assert (answer["vote"]["settled"], answer["vote"]["winner"]) == ("user", "c3")
    assert answer["disagreement"] == []
    assert "Then the user chose answer B, of c3." in answer["vote"]["notes"]
    plain = await run(rivals(GOOD, GOOD, ABOVE_SIX), models=["m:0", "m:1", "m:2"], votes=3)
    assert len(ask.of("model_call")) == answer["usage"]["model_calls"] == plain.answer.usage["model_calls"]


async def test_words_are_taken_once_and_each_question_says_how_to_reply(asked: Any) -> None:
    ask = asked(rivals(GOOD, ABOVE_SIX))
    answer = await ask.replying("Only large ones.", "And the year 2024.", "B")
    first, second, third = ask.questions
    assert (first.kind, first.own_words, second.own_words) == ("clarification", True, False)
    assert first.how == "Choose A, B, say it in your own words, or leave it empty to keep A."
    assert second.how == third.how == "Choose A, B, or leave it empty to keep A."
    assert "once already" in third.refused
    assert (answer["vote"]["settled"], answer["question"][-16:]) == ("user", "Only large ones.")
    for payload in (Clarification, Approval):
        assert list(payload.model_fields)[:3] == ["kind", "how", "refused"]


def test_replies_are_understood() -> None:
    for kind, text, replies in (
        ("label", "B", ["B", " b. ", "answer B", "(b)", {"choice": "B"}]),
        ("label", "B", [{"decisions": [{"type": "respond", "message": "B"}]}]),  # as Agent Chat UI replies
        ("keep", "", [None, "  \n", [{"type": "accept", "args": None}]]),
        ("words", "only paid ones", ["only  paid\nones"]),
        ("refused", None, ["C", 2, {"other": "B"}]),
    ):
        for reply in replies:
            found = read_reply(reply, ["A", "B"], own_words=True)
            assert (found.kind, found.text) == (kind, found.text if text is None else text)


@pytest.mark.parametrize(("reply", "right"), [("A", ["m:0", "m:1"]), ("B", ["m:2"])])
async def test_the_experts_learn_from_the_choice(
    reply: str, right: list[str], asked: Any, tmp_path: Path
) -> None:
    await asked(rivals(GOOD, GOOD, ABOVE_SIX)).replying(reply)
    book = ExpertLedger(tmp_path / "home" / "experts.json").read()
    assert book.feedback == {"user": 1}
    assert [name for name, expert in sorted(book.experts.items()) if expert.mistakes == 0] == right
    assert (book.votes, book.vote_mistakes) == (1, 0 if reply == "A" else 1)


async def test_words_of_ones_own_are_added_to_the_question_and_the_candidates_asked_anew(
    asked: Any, tmp_path: Path
) -> None:
    """What was found for the prompts before stays found."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "t.md").write_text("Orders of a city are those of its customers.")
    pair = VerifiedPair("How many orders has each city?", GOOD, by="Ada", date="2026-11-20")
    KnowledgeBase(tmp_path / "kb").keep(pair)

    def precise(prompt: Prompt) -> Any:
        return sql(ABOVE_SIX if "Only large ones" in prompt.text else GOOD)

    both = {"m:0": script(action=sql(ABOVE_SIX)), "m:1": script(action=precise)}
    ask = asked(both, documents=str(tmp_path / "docs"), kb=str(tmp_path / "kb"))
    answer = await ask.replying("Only large ones.")
    assert len(ask.questions) == 1
    assert [event["kind"] for event in ask.events].count("plan") == 4, "each of two models, twice"
    assert answer["question"] == f"{QUESTION}\n\nTo be precise: Only large ones."
    assert answer["rows"] == [["Ghent", 1], ["Lyon", 2]]
    assert [candidate["id"] for candidate in answer["candidates"]] == ["c1", "c2"]
    assert answer["disagreement"] == []
    assert answer["sources"] == ["t.md"]
    assert "those of its customers" in str(ask.of("model_call")[-1]["messages"])
    assert answer["verified"] == ["How many orders has each city? (verified by Ada on 2026-11-20)"]


async def test_nobody_is_asked_for_ever(asked: Any) -> None:
    ask = asked(rivals(GOOD, ABOVE_SIX))
    answer = await ask.replying("D", "x" * (MAX_REPLY + 1), 7)
    _, second, third = ask.questions
    assert "no answer 'D'" in second.refused
    assert "too much" in third.refused
    assert MAX_ASKED == 3
    assert answer["vote"]["settled"] == ""
    assert answer["disagreement"], "it is said where nobody chose"
    stopped = await asked(rivals(GOOD, ABOVE_SIX), max_calls=11).replying()
    assert stopped["status"] == "stopped", "a run that a limit ended asks nobody"


def rivals_of(winner: str, *clusters: tuple[float, str]) -> list[str]:
    """The keys of the strong clusters; a cluster is its weight and its candidates, a letter each."""
    made = tuple(Cluster(names, names, tuple(names), ("m",), weight) for weight, names in clusters)
    vote = Vote(winner=winner, clusters=made, share=0.5, tie=False, strategy="wma")
    return [found.key for found in close_rivals(vote)]


def test_strong_answers_have_half_the_weight_and_half_the_candidates() -> None:
    assert rivals_of("a", (2, "ab"), (1, "c")) == ["ab", "c"]
    assert rivals_of("a", (3, "abc"), (1, "d")) == []
    assert rivals_of("a", (4, "abcd"), (1.9, "ef")) == [], "two weak experts"
    assert rivals_of("a", (5, "abcd"), (4.5, "e")) == [], "weight borrowed from the others"
    assert rivals_of("b", (1, "a"), (1, "d"), (1, "b"), (1, "c")) == ["b", "a", "c"], "the winner's own first"
    assert rivals_of("x", (1, "a"), (1, "b")) == []
    assert close_rivals(None) == []


async def test_nothing_that_was_found_or_judged_before_counts_for_the_new_question(asked: Any) -> None:
    given = {"recipe": "quorum", "switches": {"validation": "always"}, "stopping": "never"}
    written = {"sql_writer": {"reasoning": "So.", "sql": GOOD}}
    written |= {"judge": {"reason": "", "choice": "cannot tell"}}
    other = {**written, "sql_writer": {"reasoning": "So.", "sql": ABOVE_SIX}}
    ask = asked({"m:0": script(**written), "m:1": script(**other)}, **given)
    await ask.replying("Only large ones.", "A")
    kinds = [event["kind"] for event in ask.events]
    second = kinds.index("vote", kinds.index("clarification"))
    assert ask.events[second]["approved"] is None
    assert not any(cluster["approved"] for cluster in ask.events[second]["clusters"])
