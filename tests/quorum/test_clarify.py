"""Asking back: from a script, and on a terminal as a user sees it."""

from __future__ import annotations

import json
import time
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from quorum import Clarification, ask
from quorum.cli import cli
from quorum.graph.runs import RunFolder, list_runs
from quorum.knowledge.errors import ConfigurationError
from quorum.report import report_of
from quorum.tools.models.scripted import scripted
from tests.graph.shop import GOOD, QUESTION, make_shop, script, sql
from tests.quorum.roles import by_role
from tests.quorum.terminal import CTRL_C, on_terminal
from tests.servers.chat_server import Answer, ChatServer, Request, say, tokens

ABOVE_SIX = GOOD.replace(" GROUP BY", " WHERE o.total > 6 GROUP BY")
MODELS = {"m:a": scripted(script(action=sql(GOOD))), "m:b": scripted(script(action=sql(ABOVE_SIX)))}


@pytest.fixture
def shop(workplace: Path) -> str:
    return f"sqlite:///{make_shop(workplace / 'shop.db')}"


def label_of(asked: Clarification, query: str) -> str:
    return next(choice.label for choice in asked.choices if choice.sql == query)


@pytest.mark.parametrize("patient", [False, True], ids=["sync", "async"])
async def test_a_script_is_asked_and_its_choice_counts(patient: bool, shop: str) -> None:
    heard: list[Clarification] = []

    def choose(asked: Clarification) -> str:
        heard.append(asked)
        return label_of(asked, ABOVE_SIX)

    async def think(asked: Clarification) -> str:
        return choose(asked)

    answer = await ask(
        QUESTION,
        db=shop,
        chat_models=MODELS,
        votes=2,
        recipe="recap",
        on_clarify=think if patient else choose,
    )
    assert answer.sql == ABOVE_SIX
    assert answer.vote
    assert answer.vote.settled == "user"
    assert heard[0].differences


@pytest.mark.parametrize("chosen", [True, False])
async def test_other_readings_are_shown_until_the_user_has_said_what_is_meant(
    chosen: bool, shop: str
) -> None:
    said = {"reasoning": "", "readings": ["Only what was paid."]}
    models = {
        name: scripted(script(sql_writer={**said, "sql": query}))
        for name, query in (("m:a", GOOD), ("m:b", ABOVE_SIX))
    }
    answer = await ask(
        QUESTION,
        db=shop,
        chat_models=models,
        votes=2,
        recipe="reforce",
        switches={"exploration": "never"},
        on_clarify=lambda asked: asked.choices[0].label if chosen else None,
    )
    assert answer.vote
    assert answer.vote.settled == ("user" if chosen else "")
    assert [each.says for each in answer.readings] == ([] if chosen else ["Only what was paid."])


async def test_the_page_and_the_list_of_runs_show_the_question_as_it_was_made_precise(shop: str) -> None:
    answer = await ask(
        QUESTION,
        db=shop,
        chat_models=MODELS,
        votes=2,
        recipe="recap",
        on_clarify=lambda asked: "Only paid ones.",
    )
    run = Path(answer.trace)
    assert answer.question == f"{QUESTION}\n\nTo be precise: Only paid ones."
    assert report_of(RunFolder(run)).question == answer.question
    assert list_runs(run.parent.parent)[0].question == answer.question


async def test_none_keeps_the_vote_and_the_disagreement_is_told(shop: str) -> None:
    answer = await ask(
        QUESTION, db=shop, chat_models=MODELS, votes=2, recipe="recap", on_clarify=lambda _: None
    )
    assert answer.vote
    assert answer.vote.settled == ""
    assert len(answer.disagreement) == 4


async def test_the_users_time_is_not_the_runs(shop: str) -> None:
    def slow(asked: Clarification) -> str:
        time.sleep(0.3)
        return asked.choices[0].label

    given: dict[str, Any] = {"db": shop, "chat_models": MODELS, "votes": 2, "recipe": "recap"}
    start = time.monotonic()
    answer = await ask(QUESTION, **given, on_clarify=slow)
    assert answer.usage["seconds"] < time.monotonic() - start - 0.29


async def test_a_run_that_may_ask_needs_somebody_to_ask(shop: str, workplace: Path) -> None:
    with pytest.raises(ConfigurationError, match="nobody to ask"):
        await ask(QUESTION, db=shop, chat_models=MODELS, votes=2, recipe="recap", clarify=True)
    assert not (workplace / ".quorum").exists()


async def test_a_run_that_died_while_it_waited_asks_again_and_repeats_no_call(shop: str) -> None:
    class Dead(Exception):
        """The process was killed."""

    def die(_: Clarification) -> str:
        raise Dead

    calls: list[str] = []
    given: dict[str, Any] = {
        "chat_models": MODELS,
        "on_event": lambda event: calls.append(event["kind"]) if event["kind"] == "model_call" else None,
    }
    with pytest.raises(Dead):
        await ask(QUESTION, db=shop, votes=2, recipe="recap", on_clarify=die, **given)
    before = len(calls)
    answer = await ask(resume="last", on_clarify=lambda asked: label_of(asked, ABOVE_SIX), **given)
    assert answer.sql == ABOVE_SIX
    assert len(calls) == before == answer.usage["model_calls"]


def test_without_a_terminal_the_command_line_says_so(shop: str) -> None:
    result = CliRunner().invoke(cli, ["ask", QUESTION, "--db", shop, "--model", "offline", "--clarify"])
    assert result.exit_code == 2
    assert "terminal" in result.output


def test_how_the_candidates_disagree_is_on_the_screen_and_on_the_page(shop: str, workplace: Path) -> None:
    with ChatServer(by_role(one_differs)) as server:
        told = two_that_differ(shop, server)
        result = CliRunner().invoke(cli, ["ask", QUESTION, *told], env={"OPENAI_API_KEY": "k"})
    assert result.exit_code == 0, result.output
    assert "The candidates disagree:" in result.stdout
    assert "requires `total > 6`." in result.stdout
    assert CliRunner().invoke(cli, ["trace", "show", "last", "--html", "run.html"]).exit_code == 0
    assert "requires `total > 6`." in unescape((workplace / "run.html").read_text())


def two_that_differ(shop: str, server: ChatServer) -> list[str]:
    """Arguments of a run with two candidates."""
    about = ["--db", shop, "--model", "openai:x", "--base-url", server.url]
    return [*about, "--votes", "2", "--recipe", "recap"]


def one_differs(role: str, request: Request) -> Answer | None:
    """The candidate that is drawn at temperature 0 writes another query than the other."""
    if role != "action":
        return None
    query = ABOVE_SIX if request.body.get("temperature", 0) == 0 else GOOD
    return say(json.dumps(sql(query)), usage=tokens(10, 5, 0))


@pytest.mark.heavy
@pytest.mark.parametrize("asked", ["A", "B"])
def test_on_a_terminal_the_user_chooses(asked: str, shop: str, workplace: Path, root: Path) -> None:
    with ChatServer(by_role(one_differs)) as server:
        told = two_that_differ(shop, server)
        code, screen, output = on_terminal(
            ["ask", QUESTION, *told, "--clarify", "--json"], ["Z\n", f"{asked}\n"], workplace, root
        )
    assert code == 0, screen + output
    assert "The candidates disagree. Which answer is meant?" in screen
    assert "There is no answer 'Z'" in screen
    assert "o.total > 6" in screen, "the whole query, however narrow the terminal"
    answer = json.loads(output)
    assert answer["vote"]["settled"] == "user"
    assert f"the user chose answer {asked}" in answer["vote"]["notes"][-1]


@pytest.mark.heavy
def test_ctrl_c_at_the_prompt_says_how_to_go_on(shop: str, workplace: Path, root: Path) -> None:
    with ChatServer(by_role(one_differs)) as server:
        told = two_that_differ(shop, server)
        code, screen, output = on_terminal(["ask", QUESTION, *told, "--clarify"], [CTRL_C], workplace, root)
    assert code == 130
    assert "quorum ask --resume" in screen
    assert output == ""
