"""Conversations: what each turn becomes, and what needs no query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quorum import Quorum
from quorum.tools.models.scripted import Prompt, scripted
from tests.graph.shop import GOOD, QUESTION, THIRD, make_shop, script, written

WORDS = "All 3 orders count, returned ones too. In total they cost 99 euros."


class Model:
    """A scripted model that keeps what it was asked."""

    def __init__(self, *turns: dict[str, Any]) -> None:
        self.turns, self.prompts = iter(turns), list[Prompt]()

    def reply(self, prompt: Prompt) -> Any:
        self.prompts.append(prompt)
        if prompt.role == "question_rewriter":
            return {"view": {}, "words": "", "question": "?", **next(self.turns)}
        return self.replies[prompt.role] if prompt.role != "sql_writer" else self.written(prompt)

    replies = script()

    def written(self, prompt: Prompt) -> Any:
        return written(GOOD if "city" in prompt.text.rpartition("<question>")[2] else THIRD)

    @property
    def rewritings(self) -> list[str]:
        return [prompt.text for prompt in self.prompts if prompt.role == "question_rewriter"]


def session(tmp_path: Path, model: Model, **given: Any) -> Quorum:
    shop = tmp_path / "shop.db"
    if not shop.exists():
        make_shop(shop)
    return Quorum(db=str(shop), models=[scripted(model.reply)], home=tmp_path / "q", **given)


async def test_a_turn_becomes_a_question_a_view_or_words(tmp_path: Path) -> None:
    model = Model(
        {"ask": "question", "question": "How many orders are there?"},
        {"ask": "words", "words": WORDS},
        {"ask": "view", "view": {"sort_by": "orders", "descending": True, "first": 1}},
    )
    async with session(tmp_path, model) as quorum:
        chat = quorum.chat()
        first = await chat.ask(QUESTION)
        assert (first.turn, first.became, model.rewritings) == (QUESTION, "", [])
        total = await chat.ask("and in total?")
        assert (total.became, total.rows) == ("How many orders are there?", [[4]])
        print(model.rewritings[0])
        words = await chat.ask("does that count returns?")
        print(words)
