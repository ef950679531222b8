"""A role may have a model of its own: it is asked like the others, and has no vote."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.agents.role import GROUPS, by_role, check_roles
from quorum.graph.options import RunOptions
from quorum.graph.recipes import RECIPES, recipe_of
from quorum.graph.resources import open_models
from quorum.knowledge.errors import ConfigurationError, ModelUnavailable
from tests.graph.shop import BROKEN, OTHER, Ran, Run, script, sql, taking_turns

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
    assert (ran.vote.strategy, ran.vote.weights) == ("mbr", {}), "one expert"
    usage = ran.answer.usage
    strong = usage["by_model"]["strong"]
    assert strong["input_tokens"] == usage["by_agent"]["self_refiner"]["input_tokens"]
    for name in ("model_calls", "input_tokens", "output_tokens"):
        assert sum(used[name] for used in usage["by_model"].values()) == usage[name]


EVERYTHING: dict[str, Any] = {
    **{"exploration": "always", "model_vote": True, "link_above": 0},
    **{"expected_format": True, "cte_refinement": True},
}
SAMPLED = {
    "reforce": (1.0, "table_linker format_writer column_explorer sql_writer self_refiner judge"),
    "react": (1.0, "schema_linker tool_user"),
    "sqlagent": (0.7, "info_agent context_expander gen_agent validator"),
    "ssev": (0.0, "sql_writer self_refiner"),
    "recap": (0.0, "planner plan_critique syntax_retriever action sql_critique self_refiner validator"),
}
"""By recipe the temperature of its paper (000, 4.1; 001, 4.2 and appendix A; 004, 3.1.1), and roles."""


@pytest.mark.parametrize("recipe", SAMPLED)
async def test_every_role_is_sampled_as_its_paper_says(recipe: str, run: Run) -> None:
    temperature, roles = SAMPLED[recipe]
    said = script(sql_writer=taking_turns(BROKEN, OTHER), action=sql(BROKEN))
    votes, switches = (2, EVERYTHING) if recipe == "reforce" else (1, {})
    ran = await run(said, recipe=recipe, switches=switches, votes=votes, link_above=1)
    assert {*roles.split()} <= ran.calls().keys()
    asked = {(event["agent"], event["temperature"] or 0.0) for event in ran.of("model_call")}
    assert asked == {(role, temperature) for role in ran.calls()}
    warmer = await run(said, recipe=recipe, switches=switches, temperature=0.4, votes=2)
    assert {event["temperature"] for event in warmer.of("candidate")} == {0.4, temperature and 0.4}


async def test_where_its_endpoint_is_gone_the_usual_model_is_asked_and_that_is_recorded(run: Run) -> None:
    """Where that one's is gone as well the candidate fails."""
    for role in ("action", "schema_linker"):
        said = {"usual": script(), "own": script(**{role: DOWN})}
        given = {"models": ["usual"], "model_for": {role: "own", "validator": "offline"}}
        ran = await run(said, **given, link_above=10)
        assert ran.answer.status == "answered"
        assert ran.answer.demonstration
        assert asked(ran)[role] == {"usual"}
        (replaced,) = ran.of("model_replaced")
        assert (replaced["agent"], replaced["model"]) == (role, "own")
        assert replaced.get("candidate") == ("c1" if role == "action" else None)
        assert "unreachable" in replaced["message"]
    gone = {"usual": script(action=DOWN), "own": script(action=DOWN)}
    with pytest.raises(ModelUnavailable, match="unreachable"):
        await run(gone, models=["usual"], model_for={"action": "own"})


async def test_they_share_one_rate_limit_are_opened_once_and_a_limit_of_dollars_needs_their_prices() -> None:
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
    options = RunOptions(models=["openai:gpt-4.1"], model_for={"judge": "openai:mine"}, max_usd=1.0)
    with pytest.raises(ConfigurationError, match="openai:mine"):
        await open_models(options, api_key="sk-test")


TWO = {"models": ["openai:a", "openai:b"]}


def test_options_that_do_not_fit_are_refused_with_what_there_is(subtests: pytest.Subtests) -> None:
    """A writer for all would be weighed by what another wrote; the writer of ``recap`` is Action."""
    for given, said in (
        ({"model_for": {"self_refinr": "offline"}}, r"no role 'self_refinr'.*'self_refiner'.*Roles: "),
        ({"model_for": {"zzz": "offline"}}, r"no role 'zzz'\. \(?Groups"),
        ({"recipe": "recap", "model_for": {"sql_writer": "a"}}, "'sql_writer'.*'recap' never.*action"),
        ({"recipe": "single", "model_for": {"planning": "a"}}, "'planning'.*'single' never asks it"),
        (TWO | {"model_for": {"writing": "openai:c"}}, "Several models vote.*writing"),
        (TWO | {"model_for": {"action": "openai:c"}}, "Several models vote.*action"),
        (TWO | {"votes": 1}, "2 models cannot share 1 votes"),
        ({"models": []}, "No model"),
        ({"votes": 0, "retrieval": "magic"}, r"votes = 0: .*retrieval = 'magic'"),
        ({"retrieval": "hybrid"}, "embedding_model"),
    ):
        with subtests.test(given=given), pytest.raises(ConfigurationError, match=said):
            recipe_of(RunOptions(**given))


def test_groups_are_of_roles_share_none_and_give_way_to_a_role() -> None:
    members = [role for roles in GROUPS.values() for role in roles]
    check_roles([*GROUPS, *members])
    assert len({*members, *GROUPS}) == len(members) + len(GROUPS), "a name means one thing"
    linking = dict.fromkeys(GROUPS["linking"], "a")
    given = {"draft_linker": "b", "linking": "a", "judge": "c"}
    assert by_role(given) == linking | {"draft_linker": "b", "judge": "c"}
    for recipe in RECIPES:
        assert recipe_of(RunOptions(recipe=recipe, model_for={"writing": "offline"})).name == recipe


@pytest.mark.parametrize("recipe", ["recap", "ssev"])
async def test_a_model_s_later_candidates_are_drawn_anew(recipe: str, run: Run) -> None:
    ran = await run(script(), recipe=recipe, votes=3)
    drawn = {event["candidate"][-1]: event["temperature"] for event in ran.of("candidate")}
    assert drawn == {"1": 0.0, "2": 0.7, "3": 0.7}
