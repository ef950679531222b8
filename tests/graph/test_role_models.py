"""A role may have a model of its own: it is asked like the others, and has no vote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quorum.agents.role import GROUPS, by_role, find_role
from quorum.graph.options import RunOptions
from quorum.graph.recipes import RECIPES, recipe_of
from quorum.graph.resources import open_models
from quorum.knowledge.errors import ConfigurationError, ModelUnavailable
from tests.graph.shop import BROKEN, OTHER, Ran, Run, script, sql, taking_turns

WRONG = sql("SELECT town, COUNT(*) FROM customers GROUP BY town")
DOWN = ModelUnavailable("The endpoint is unreachable.")


def asked(ran: Ran) -> dict[str, set[str]]:
    """The models that each role asked."""
    found: dict[str, set[str]] = {}
    for event in ran.of("model_call"):
        found.setdefault(event["agent"], set()).add(event["model"])
    return found


async def test_a_small_writer_under_a_strong_rest(run: Run) -> None:
    """Smaller models write the SQL, all else is the strong model's (paper 000, section 4, Table 2)."""
    said = {"strong": script(sql_writer=DOWN), "small": script(sql_writer={"reasoning": "", "sql": "SELECT"})}
    given = {"models": ["strong"], "model_for": {"sql_writer": "small"}, "recipe": "quorum", "votes": 3}
    ran = await run(said, **given)
    assert asked(ran) == {"sql_writer": {"small"}, "self_refiner": {"strong"}}
    assert {candidate.model for candidate in ran.answer.candidates} == {"strong"}
    assert ran.vote.strategy == "mbr"
    assert ran.vote.weights == {}, "one expert"


async def test_what_each_model_cost_adds_up(run: Run) -> None:
    said = {"small": script(action=WRONG), "strong": script()}
    ran = await run(said, models=["small"], model_for={"self_refiner": "strong"})
    usage = ran.answer.usage
    assert usage["by_model"].keys() == {"small", "strong"}
    assert usage["by_model"]["strong"]["model_calls"] == 1
    assert usage["by_model"]["strong"]["input_tokens"] == usage["by_agent"]["self_refiner"]["input_tokens"]
    for name in ("model_calls", "input_tokens", "output_tokens"):
        assert sum(used[name] for used in usage["by_model"].values()) == usage[name]


TIED = taking_turns(BROKEN, OTHER)
EVERYTHING: dict[str, Any] = {"exploration": "always", "model_vote": True}
SAMPLED: dict[str, tuple[float, dict[str, Any], dict[str, Any], set[str]]] = {
    "reforce": (
        1.0,
        {"sql_writer": TIED},
        {**EVERYTHING, "link_above": 0, "expected_format": True, "cte_refinement": True},
        {"table_linker", "format_writer", "column_explorer", "sql_writer", "self_refiner", "judge"},
    ),
    "react": (1.0, {}, {}, {"schema_linker", "tool_user"}),
    "sqlagent": (0.7, {}, {}, {"info_agent", "context_expander", "gen_agent", "validator"}),
    "ssev": (0.0, {"sql_writer": TIED}, {}, {"sql_writer", "self_refiner"}),
    "recap": (
        0.0,
        {"action": WRONG},
        {},
        {
            "planner",
            "plan_critique",
            "syntax_retriever",
            "action",
            "sql_critique",
            "self_refiner",
            "validator",
        },
    ),
}
"""By recipe the temperature of its paper: 000, 4.1; 001, 4.2 and appendix A; 004, 3.1.1."""


@pytest.mark.parametrize("recipe", SAMPLED)
async def test_every_role_is_sampled_as_its_paper_says(recipe: str, run: Run) -> None:
    temperature, said, switches, roles = SAMPLED[recipe]
    votes = 2 if recipe == "reforce" else 1
    ran = await run(script(**said), recipe=recipe, switches=switches, votes=votes, link_above=1)
    assert roles <= ran.calls().keys()
    asked = {(event["agent"], event["temperature"] or 0.0) for event in ran.of("model_call")}
    assert asked == {(role, temperature) for role in ran.calls()}
    warmer = await run(script(**said), recipe=recipe, switches=switches, temperature=0.4, votes=2)
    assert {event["temperature"] for event in warmer.of("candidate")} == {0.4, temperature and 0.4}


@pytest.mark.parametrize("recipe", ["recap", "ssev"])
async def test_a_model_s_later_candidates_are_drawn_anew(recipe: str, run: Run) -> None:
    ran = await run(script(), recipe=recipe, votes=3)
    drawn = {event["candidate"][-1]: event["temperature"] for event in ran.of("candidate")}
    assert drawn == {"1": 0.0, "2": 0.7, "3": 0.7}


@pytest.mark.parametrize("role", ["action", "schema_linker"])
async def test_where_its_endpoint_is_gone_the_usual_model_is_asked_and_that_is_recorded(
    run: Run, role: str
) -> None:
    said = {"usual": script(), "own": script(**{role: DOWN})}
    ran = await run(said, models=["usual"], model_for={role: "own"}, link_above=10)
    assert ran.answer.status == "answered"
    assert asked(ran)[role] == {"usual"}
    (replaced,) = ran.of("model_replaced")
    assert (replaced["agent"], replaced["model"]) == (role, "own")
    assert replaced.get("candidate") == ("c1" if role == "action" else None)
    assert "unreachable" in replaced["message"]


async def test_where_all_endpoints_are_gone_the_candidate_fails(run: Run) -> None:
    said = {"usual": script(action=DOWN), "own": script(action=DOWN)}
    with pytest.raises(ModelUnavailable, match="unreachable"):
        await run(said, models=["usual"], model_for={"action": "own"})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("self_refinr", r"'self_refinr'.*'self_refiner'.*Groups of roles: linking, .*Roles: action, "),
        ("link", r"'link'.*'linking'"),
        ("knowledge_retriever", "'knowledge_retriever'"),
        ("zzz", r"no role 'zzz'\. \(?Groups"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_and_all_there_are(name: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        RunOptions(model_for={name: "offline"})


@pytest.mark.parametrize(
    ("recipe", "name", "asked"),
    [
        ("recap", "sql_writer", "action"),
        ("single", "planning", "sql_writer"),
        ("ssev", "judge", "self_refiner"),
    ],
)
def test_a_model_for_a_role_that_the_recipe_never_asks_is_refused(recipe: str, name: str, asked: str) -> None:
    """The writer of ``recap`` is Action: a model for the SqlWriter would be no writer."""
    with pytest.raises(ConfigurationError, match=rf"{name!r}.*{recipe!r} never asks it.*{asked}"):
        recipe_of(RunOptions(recipe=recipe, model_for={name: "offline"}))


@pytest.mark.parametrize("recipe", ["recap", "team", "reforce"])
async def test_who_explores_may_have_a_model_wherever_a_switch_lets_a_recipe_explore(
    recipe: str, run: Run
) -> None:
    explores = {"queries": [{"purpose": "?", "sql": "SELECT city FROM customers"}]}
    said = {"usual": script() | {"action/c2": sql(OTHER)}, "own": script(column_explorer=explores)}
    given = {"recipe": recipe, "switches": {"exploration": "always" if recipe == "reforce" else True}}
    ran = await run(said, models=["usual"], votes=2, model_for={"exploration": "own"}, **given)
    assert asked(ran)["column_explorer"] == {"own"}


@pytest.mark.parametrize("role", ["writing", "action"])
def test_one_writer_for_all_the_models_that_vote_is_refused(role: str) -> None:
    """They would be weighed by what another wrote."""
    with pytest.raises(ConfigurationError, match=rf"Several models vote.*{role}"):
        RunOptions(models=["openai:a", "openai:b"], model_for={role: "openai:c"})


@pytest.mark.parametrize("recipe", list(RECIPES))
def test_every_recipe_has_writers(recipe: str) -> None:
    assert recipe_of(RunOptions(recipe=recipe, model_for={"writing": "offline"})).name == recipe


def test_a_role_wins_over_its_group() -> None:
    assert by_role({"draft_linker": "b", "linking": "a", "judge": "c"}) == {
        "schema_linker": "a",
        "table_linker": "a",
        "draft_linker": "b",
        "info_agent": "a",
        "context_expander": "a",
        "judge": "c",
    }


def test_groups_are_of_roles_and_share_none() -> None:
    members = [role for roles in GROUPS.values() for role in roles]
    assert all(find_role(name) for name in members)
    assert len(set(members)) == len(members)
    assert not any(map(find_role, GROUPS)), "a name means one thing"


async def test_they_share_one_rate_limit_and_are_opened_once() -> None:
    given: dict[str, Any] = {
        "models": ["openai:a"],
        "model_for": {"judge": "openai:b", "writing": "openai:a"},
    }
    opened = await open_models(RunOptions(**given), api_key="sk-test")
    usual, own = opened.models["openai:a"], opened.role_models["judge"]
    assert list(opened.models) == ["openai:a"]
    assert own.paces is usual.paces
    assert opened.role_models["sql_writer"] is usual
    await opened.aclose()


async def test_a_limit_of_dollars_needs_their_prices_too() -> None:
    options = RunOptions(models=["openai:gpt-4.1"], model_for={"judge": "openai:mine"}, max_usd=1.0)
    with pytest.raises(ConfigurationError, match="openai:mine"):
        await open_models(options, api_key="sk-test")


async def test_the_offline_model_makes_it_a_demonstration(run: Run, tmp_path: Path) -> None:
    ran = await run({"usual": script()}, models=["usual"], model_for={"validator": "offline"})
    assert ran.answer.demonstration
