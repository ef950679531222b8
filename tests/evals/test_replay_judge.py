"""The Judge over recorded candidates: asked where a vote is close, once for each prompt, within limits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quorum.agents.prompting import PromptContext
from quorum.evals.recorded.ballots import source_of
from quorum.evals.recorded.candidates import load_candidates
from quorum.evals.recorded.evaluated import source_of_records
from quorum.evals.recorded.judging import ReplayedJudge, Replies
from quorum.evals.recorded.replay import Replay, Row, replay
from quorum.evals.recorded.told import SuiteTeller, Told
from quorum.evals.running.runner import run_evaluation
from quorum.evals.scorers.spider2_rules import load_gold
from quorum.evals.suites import load_suite
from quorum.knowledge.errors import ConfigurationError, ModelUnavailable
from quorum.tools.ledger import Budget, Ledger
from quorum.tools.models import make_model
from quorum.tools.models.scripted import Prompt, scripted
from tests.evals.recordings import write_candidates, write_gold
from tests.evals.running import questions, shops
from tests.evals.spider2_folders import write_snow
from tests.evals.test_asking import LESS, MORE, disputed

__all__ = ["shops"]

ANSWER = re.compile(r'<answer label="(.)">\n(.*?)\n</answer>', re.DOTALL)


def preferring(sql: str) -> Callable[[Prompt], Any]:
    """Chooses the answer whose query holds this text; cannot tell where there is none."""

    def chosen(prompt: Prompt) -> dict[str, str]:
        found = [label for label, query in ANSWER.findall(prompt.text) if sql in query]
        return {"reason": "So.", "choice": found[0] if found else "cannot tell"}

    return chosen


def first(prompt: Prompt) -> dict[str, str]:
    """Prefers whatever stands first."""
    return {"reason": "It is first.", "choice": ANSWER.findall(prompt.text)[0][0]}


async def told(id: str) -> Told:
    return Told(f"What is {id}?", PromptContext("snowflake", "CREATE TABLE t", "", "shop"))


class Held:
    """Replays over candidates with a scripted judge, whose replies are kept in one folder."""

    def __init__(self, folder: Path, **models: Any) -> None:
        self.folder = folder
        for model, answers in models.items():
            write_candidates(folder / "runs", model, answers)
        gold = write_gold(folder / "gold", **{f"q{number}": number for number in range(1, 9)})
        self.source = source_of(load_candidates(folder / "runs"), load_gold(gold))
        self.prompts: list[Prompt] = []

    async def __call__(
        self, said: Callable[[Prompt], Any], *, max_calls: int | None = None, **given: Any
    ) -> tuple[Replay, ReplayedJudge]:
        def reply(prompt: Prompt) -> Any:
            self.prompts.append(prompt)
            return said(prompt)

        replies = Replies(self.folder / "out" / "replies.jsonl")
        model = make_model(scripted(reply)).at(
            ledger=Ledger(Budget(max_calls)), record=replies.record, recall=replies.recall
        )
        judge = ReplayedJudge(model, given.pop("teller", told), **given)
        return await replay(self.source, orders=3, judge=judge), judge


def row(found: Replay, strategy: str, stopping: str = "never", model: str = "m") -> Row:
    (one,) = [r for r in found.rows if (r.model, r.strategy, r.stopping) == (model, strategy, stopping)]
    return one


CLOSE = {"q1": [1, 1, 7, 7], "q2": [8, 8, 2, 2], "q3": [3, 3, 3, 3]}


async def test_a_close_vote_is_the_judges(tmp_path: Path) -> None:
    held = Held(tmp_path, m=CLOSE)
    found, judge = await held(preferring("SELECT 1 "))
    assert row(found, "mbr").ex == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert row(found, "judge").ex == pytest.approx((1 + 0.5 + 1) / 3)
    assert (judge.asked, judge.undecided, judge.unasked) == (2, 1, [])
    assert len(held.prompts) == 2  # the rules that stop early ask nothing more
    assert "What is q1?" in held.prompts[0].text
    assert "CREATE TABLE t" in held.prompts[0].text


async def test_without_a_judge_all_is_as_before(tmp_path: Path) -> None:
    held = Held(tmp_path, m=CLOSE)
    found, _ = await held(first)
    alone = await replay(held.source, orders=3)
    assert [each for each in found.rows if each.strategy != "judge"] == alone.rows


async def test_what_was_replied_is_asked_no_more_even_after_a_torn_line(tmp_path: Path) -> None:
    held = Held(tmp_path, m=CLOSE)
    before, _ = await held(preferring("SELECT 1 "))
    again, judge = await held(preferring("nothing"))
    assert again == before
    assert judge.model.ledger.total.model_calls == 0
    file = tmp_path / "out" / "replies.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text(lines[0] + lines[1][:20])
    torn, judge = await held(preferring("SELECT 1 "))
    assert torn == before
    assert judge.model.ledger.total.model_calls == 1
    whole, judge = await held(preferring("nothing"))
    assert whole == before
    assert judge.model.ledger.total.model_calls == 0


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    for text in ("[1]\n", '{"reply": "x"}\n', "{\n"):
        (tmp_path / "replies.jsonl").write_text(text)
        with pytest.raises(ConfigurationError, match="holds no replies"):
            Replies(tmp_path / "replies.jsonl")


async def test_a_limit_leaves_the_rest_to_their_weights_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    held = Held(tmp_path, m=CLOSE)
    found, judge = await held(preferring("SELECT"), max_calls=1, at_once=1)
    assert (judge.asked, judge.unasked) == (1, ["q2"])
    assert row(found, "judge").unanswered == 0
    _, judge = await held(preferring("SELECT"), max_calls=1, at_once=1)
    assert (judge.asked, judge.unasked, len(held.prompts)) == (2, [], 2)


async def test_in_both_orders_a_judge_must_agree_with_itself(tmp_path: Path) -> None:
    held = Held(tmp_path / "first", m=CLOSE)
    _, judge = await held(first, both_orders=True)
    assert (judge.asked, judge.undecided, len(held.prompts)) == (2, 2, 4)
    held = Held(tmp_path / "same", m=CLOSE)
    found, judge = await held(preferring("SELECT 1 "), both_orders=True)
    assert row(found, "judge").ex == pytest.approx((1 + 0.5 + 1) / 3)
    assert judge.undecided == 1


async def test_a_malformed_reply_costs_the_judgement_and_a_lost_endpoint_ends_the_replay(
    tmp_path: Path,
) -> None:
    held = Held(tmp_path, m=CLOSE)
    found, judge = await held(lambda _: "no JSON")
    assert row(found, "judge").ex == row(found, "mbr").ex
    assert judge.undecided == 2

    def gone(_: Prompt) -> Any:
        raise ModelUnavailable("Nobody is there.")

    with pytest.raises(ModelUnavailable):
        await Held(tmp_path / "gone", m=CLOSE)(gone)


async def test_a_suite_tells_the_question_and_the_tables_that_candidates_use(tmp_path: Path) -> None:
    suite = load_suite("spider2-snow", write_snow(tmp_path))
    queries = ["SELECT COUNT(*) FROM SHOP.PUBLIC.ORDERS", "no SQL at all ((("]
    teller = SuiteTeller(suite, lambda _: queries, schema_tokens=1_000, document_tokens=1_000)
    found = await teller("sf_bq1")
    assert found.question == "How many?"
    assert (found.context.dialect, found.context.database) == ("snowflake", "SHOP")
    assert "ORDERS" in found.context.schema
    with pytest.raises(ConfigurationError, match="sf_bq2"):
        await teller("sf_bq2")


@pytest.mark.usefixtures("shops")
async def test_an_evaluations_votes_are_judged_with_what_its_prompts_showed(tmp_path: Path) -> None:
    given = disputed(tmp_path / "run", questions(1), LESS, MORE)
    records = await run_evaluation(given)
    held = Held(tmp_path, m={"q1": [1]})
    held.source = source_of_records(records, {"q00": tmp_path / "run"})
    assert held.source.told is not None
    found, judge = await held(preferring("SELECT 8"), teller=held.source.told)
    assert judge.asked == 1
    assert "How many orders exceed 0?" in held.prompts[0].text
    assert "orders" in held.prompts[0].text.split("<schema database=")[1].split("</schema>")[0]
    assert row(found, "judge", model="pooled").ties == 0


@pytest.mark.usefixtures("shops")
async def test_an_evaluation_of_an_earlier_version_does_not_tell_its_schemas(tmp_path: Path) -> None:
    given = disputed(tmp_path / "run", questions(1), LESS, MORE)
    records = await run_evaluation(given)
    events = tmp_path / "run" / "runs" / "q00" / "events.jsonl"
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    lines = [{**line, "ref": ""} if line["kind"] == "schema" else line for line in lines]
    events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    source = source_of_records(records, {"q00": tmp_path / "run"})
    assert source.told is not None
    with pytest.raises(ConfigurationError, match="which schema"):
        await source.told("q00")
