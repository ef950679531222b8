"""Every edge that is drawn is taken by some run, and every edge that a run takes is drawn.

A new edge fails here until a scenario of its recipe takes it: add one to ``SCENARIOS``, or the edge to
``NEVER`` with the reason why none takes it. Scenarios with other switches bring in the edges of that wiring.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from quorum.graph.answering import answer_question
from quorum.graph.context import Context, open_context
from quorum.graph.options import RunOptions
from quorum.graph.recipes import RECIPES, find_recipe, recipe_of
from quorum.graph.runs import new_run_id
from quorum.knowledge.errors import ModelUnavailable
from quorum.knowledge.verified import KnowledgeBase, VerifiedPair
from quorum.tools.models.scripted import Prompt, Script, scripted
from tests.graph.edges import Edge, drawn, recorded
from tests.graph.reforce_script import (
    BROKEN,
    CITIES,
    NAMES,
    NOTHING,
    OTHER,
    THIRD,
    TOWNS,
    corrected,
    explored,
    taking_turns,
    written,
)
from tests.graph.reforce_script import replies as usual_replies
from tests.graph.shop import FINE, GOOD, PLAN, QUESTION, Opened, script, sql

DOWN = ModelUnavailable("The endpoint is unreachable.")
REJECTED = FINE | {"valid_result": False, "suggest_fix": "Only the city with the most orders."}
MISSING = {"reasoning": "So.", "sql": None, "missing": "There are no suppliers."}
SAME = {"explanation": "It stays.", "sql": None}
STAGED = "WITH placed AS (SELECT customer_id FROM orders) SELECT COUNT(*) AS orders FROM placed"


@dataclass(frozen=True)
class Scenario:
    """A run over the shop.

    Attributes:
        said: What the model replies, by role or as a function of the prompt.
        given: Options of the run, ``votes`` and ``switches`` among them.
        words: What the user adds when asked which answer is meant.
        before: What the model of a process replied that could not end the run; this one resumes it.
    """

    said: Script
    given: dict[str, Any] = field(default_factory=dict)
    words: str = ""
    before: Script | None = None


def replies(**roles: Any) -> Callable[[Prompt], Any]:
    """A model that does everything right, but for the roles given."""
    linker = script()["schema_linker"]
    return usual_replies(**{"planner": PLAN, "validator": FINE, "schema_linker": linker, **roles})


def each(**by_candidate: Any) -> Callable[[Prompt], Any]:
    """What candidates are told by a role, those not named as ``others``; perhaps turn by turn."""

    def reply(prompt: Prompt) -> Any:
        said = by_candidate.get(prompt.candidate or "", by_candidate.get("others"))
        return said(prompt) if callable(said) else said

    return reply


def turns(*said: Any) -> Callable[[Prompt], Any]:
    """What a role says turn by turn."""
    return lambda prompt: said[min(prompt.turn, len(said) - 1)]


def switched(**switches: Any) -> dict[str, Any]:
    return {"switches": switches}


DISPUTE = taking_turns(GOOD, OTHER, THIRD)
TIE = taking_turns(GOOD, OTHER)
SETTLED = taking_turns(GOOD, OTHER, THIRD, found=GOOD)
PLAIN_FAULTS = replies(
    sql_writer=each(c1=DOWN, c2=MISSING, c3=written(BROKEN), c4=written(BROKEN), others=written(GOOD)),
    self_refiner=each(c3=SAME, others={"explanation": "Repaired.", "sql": GOOD}),
)
"""A model's failures, one to each candidate of a plain branch."""

BATCHES = {"votes": 4, "stopping": "beta:0.9"}
ASKED = {"clarify": True, "votes": 2}
LIMITED = "Only large ones."


def step(action: str, text: str | None = None, **more: Any) -> dict[str, Any]:
    """A step of the ToolUser, or of Action."""
    told = {"command": text, "sql": None} if action == "look" else {"command": None, "sql": text}
    return {"thought": "So.", "action": action, **told, **more}


MISSPELT = "SELECT name FROM customers WHERE city IN ('lyon', 'Ghent')"
READ_ELSE = written(GOOD) | {"readings": ["One?", "Two?", "Three?"]}


def read(*queries: str) -> dict[str, Any]:
    """The ReadingWriter's reply with these queries."""
    return {"reasoning": "", "readings": [{"meaning": f"Then {sql}?", "sql": sql} for sql in queries]}


def acting(**roles: Any) -> Callable[[Prompt], Any]:
    return usual_replies(**{**script(), **roles})


QUORUM = {
    "one writer is enough": Scenario(replies()),
    "all agree": Scenario(replies(), {"votes": 8}),
    "a repaired query calls for more": Scenario(replies(sql_writer=written(BROKEN)), switched(plan="always")),
    "what else could be meant is written and run": Scenario(
        replies(
            sql_writer=READ_ELSE,
            reading_writer=read(OTHER, BROKEN),
            self_refiner={"explanation": "Repaired.", "sql": THIRD},
        )
    ),
    "another reading fails": Scenario(
        replies(sql_writer=READ_ELSE, reading_writer=read(BROKEN), self_refiner=SAME)
    ),
    "a check finds a value that does not occur": Scenario(
        replies(sql_writer=written(MISSPELT), reviser={"explanation": "It is Lyon.", "sql": CITIES["sql"]})
    ),
    "no other reading is looked at": Scenario(replies(sql_writer=READ_ELSE), switched(readings=0)),
    "a tie is explored, judged and validated": Scenario(replies(sql_writer=TIE), {"votes": 8}),
    "faults of candidates": Scenario(PLAIN_FAULTS, {"votes": 5}),
    "exploration is corrected and given up": Scenario(
        replies(
            sql_writer=SETTLED,
            column_explorer=explored(CITIES, TOWNS, NAMES, TOWNS | {"sql": "SELECT village FROM customers"}),
            exploration_corrector=turns(
                corrected("SELECT city FROM customers"),
                corrected("SELECT a FROM orders"),
                corrected("SELECT b"),
            ),
        ),
        {"votes": 8},
    ),
    "the last correction is of no use": Scenario(
        replies(sql_writer=SETTLED, column_explorer=explored(TOWNS), exploration_corrector="no json"),
        {"votes": 8},
    ),
    "exploration finds no query": Scenario(
        replies(sql_writer=SETTLED, column_explorer="no json"), {"votes": 8}
    ),
    "a rejected winner stands": Scenario(
        replies(validator=REJECTED, reviser={"explanation": "It holds.", "sql": None}),
        switched(validation="always"),
    ),
    "a revision is repaired": Scenario(
        replies(validator=REJECTED, reviser={"explanation": "Other.", "sql": BROKEN}),
        switched(validation="always"),
    ),
    "a revision fails": Scenario(
        replies(validator=REJECTED, reviser={"explanation": "Other.", "sql": BROKEN}, self_refiner=SAME),
        switched(validation="always"),
    ),
    "the user adds to the question": Scenario(replies(sql_writer=TIE), ASKED, words=LIMITED),
    "linked by table, without a plan": Scenario(
        replies(sql_writer=TIE), ASKED | switched(linking="tables", plan="never"), words=LIMITED
    ),
    "planned, not linked": Scenario(replies(), {"votes": 2} | switched(linking="none", plan="always")),
    "neither linked nor planned": Scenario(replies(), switched(linking="none", plan="never")),
    "not linked, not validated": Scenario(
        replies(sql_writer=TIE), {"votes": 2} | switched(linking="none", validation="never")
    ),
    "linked by drafts, without a plan": Scenario(replies(sql_writer=written(BROKEN)), switched(plan="never")),
    "linked by table, with a plan": Scenario(replies(), switched(linking="tables")),
}

SINGLE = {
    "batches, and faults": Scenario(PLAIN_FAULTS, BATCHES | {"votes": 8}),
    "the user adds to the question": Scenario(replies(sql_writer=TIE), ASKED, words=LIMITED),
}

REACT = {
    "batches, each in its own way": Scenario(
        replies(
            tool_user=each(
                c1=step("answer", None, missing="There are no suppliers."),
                c2=step("answer", OTHER),
                c3=step("answer", THIRD),
                others=step("answer", GOOD),
            )
        ),
        BATCHES,
    ),
    "looks, queries, and answers": Scenario(
        {"tool_user": [step("look", "ls"), step("sql", GOOD), step("answer", "")]},
    ),
    "the user adds to the question": Scenario(
        replies(tool_user=each(c1=step("answer", GOOD), c2=step("answer", OTHER))), ASKED, words=LIMITED
    ),
    "without linking": Scenario(
        replies(tool_user=step("answer", GOOD)), switched(max_link_steps=0, seen=False)
    ),
}

STAGES = ("base", "sl", "sr", "sr_sl", "sr_vote", "full")
FAULTS_TWICE = replies(
    sql_writer=each(
        **dict.fromkeys(("p1", "c1"), DOWN),
        **dict.fromkeys(("p2", "p3", "c2", "c3"), written(BROKEN)),
        others=written(GOOD),
    ),
    self_refiner=each(p2=SAME, c2=SAME, others={"explanation": "Repaired.", "sql": GOOD}),
)
SSEV = {
    **{f"stage {stage}": Scenario(FAULTS_TWICE, {"votes": 4} | switched(stage=stage)) for stage in STAGES},
    "batches": Scenario(replies(sql_writer=DISPUTE), BATCHES | switched(stage="base")),
    "the data cannot answer": Scenario(replies(sql_writer=MISSING)),
    "the data cannot answer, without a vote on it": Scenario(
        replies(sql_writer=MISSING), switched(stage="sl")
    ),
    "no model answers at first": Scenario(replies(), before=replies(sql_writer=DOWN)),
    "the user adds to the question": Scenario(replies(sql_writer=TIE), ASKED, words=LIMITED),
}

RECAP = {
    "faults of candidates": Scenario(
        acting(
            plan_critique=turns({"update_plan": True, "feedback": "Count."}, script()["plan_critique"]),
            action=each(
                c1=sql(GOOD),
                c2=DOWN,
                c3=sql(BROKEN),
                c4=sql(BROKEN),
                c5=sql(BROKEN),
                c6=sql(NOTHING),
                c7=sql(OTHER),
                others=sql(GOOD),
            ),
            schema_linker=each(c3=DOWN, others=script()["schema_linker"]),
            planner=each(c5=DOWN, others=PLAN),
            self_refiner=each(
                c4=SAME,
                c6={"explanation": "", "sql": NOTHING + " AND id > 0"},
                others=script()["self_refiner"],
            ),
            sql_critique=each(c7=DOWN, others=script()["sql_critique"]),
        ),
        {"votes": 8},
    ),
    "a look, a typing error, a rejection": Scenario(
        {
            **script(),
            "action": [step("look", "ls"), sql("SELECT FROM"), sql(OTHER), step("terminate")],
            "validator": REJECTED,
        },
        {"votes": 1},
    ),
    "batches": Scenario(acting(action=each(c2=sql(OTHER), c3=sql(THIRD), others=sql(GOOD))), BATCHES),
    "the user adds to the question": Scenario(
        acting(action=each(c1=sql(GOOD), c2=sql(OTHER))), ASKED, words=LIMITED
    ),
    "without another plan": Scenario(acting(action=sql(BROKEN)), switched(replan=False)),
    "without critiques": Scenario(
        acting(action=sql("SELECT FROM")), switched(plan_critique=False, sql_critique=False)
    ),
    "without critique and syntax": Scenario(acting(), switched(plan_critique=False, syntax=False)),
    "without syntax": Scenario(acting(), switched(syntax=False)),
    "without validation and linking": Scenario(
        acting(action=sql(BROKEN)), switched(validation=False, link_on_error=False)
    ),
}

EXPLORING = explored(CITIES, TOWNS, NAMES, TOWNS | {"sql": "SELECT village FROM customers"})
CORRECTING = turns(
    corrected("SELECT city FROM customers"), corrected("SELECT a FROM orders"), corrected("SELECT b")
)
"""Of one query a correction works, of the next none, and of the last it is no query that helps."""

TEAM = RECAP | {
    "a dispute is explored": Scenario(
        acting(
            action=each(c1=sql(OTHER), c2=sql(THIRD), others=sql(GOOD)),
            column_explorer=EXPLORING,
            exploration_corrector=CORRECTING,
        ),
        switched(max_corrections=1),
    ),
    "the last correction is of no use": Scenario(
        acting(
            action=each(c1=sql(OTHER), others=sql(GOOD)),
            column_explorer=explored(TOWNS),
            exploration_corrector="no json",
        ),
        {"votes": 2},
    ),
    "exploration finds no query": Scenario(
        acting(action=each(c1=sql(OTHER), others=sql(GOOD)), column_explorer="no json"), {"votes": 2}
    ),
    "explored at once": Scenario(acting(column_explorer=explored(CITIES)), switched(exploration="always")),
}

REFORCE: dict[str, Scenario] = {
    "faults of candidates": Scenario(PLAIN_FAULTS, {"votes": 5}),
    "batches": Scenario(replies(sql_writer=DISPUTE), BATCHES),
    "what ties is explored, and drawn": Scenario(
        replies(
            sql_writer=TIE,
            column_explorer=explored(TOWNS, CITIES, NAMES),
            exploration_corrector=turns(
                corrected("SELECT a FROM orders"), corrected("SELECT name FROM customers")
            ),
        ),
        {"votes": 2} | switched(max_corrections=1),
    ),
    "exploration is of no use": Scenario(
        replies(sql_writer=TIE, column_explorer=explored(TOWNS), exploration_corrector="no json"),
        {"votes": 2},
    ),
    "exploration finds no query": Scenario(replies(sql_writer=TIE, column_explorer="no json"), {"votes": 2}),
    "the last query is given up": Scenario(
        replies(sql_writer=TIE, column_explorer=explored(TOWNS)), {"votes": 2} | switched(max_corrections=0)
    ),
    "no answer, and none found": Scenario(
        replies(sql_writer=written(BROKEN), self_refiner=SAME, column_explorer="no json"), {"votes": 2}
    ),
    "explored at once": Scenario(
        replies(
            column_explorer=each(c1="no json", c2=EXPLORING, c3=explored(CITIES), others=explored(TOWNS)),
            exploration_corrector=each(c2=CORRECTING, others="no json"),
        ),
        {"votes": 4} | switched(exploration="always", max_corrections=1),
    ),
    "explored at once by one": Scenario(
        replies(), {"votes": 2} | switched(exploration="always", explorations="shared")
    ),
    "a limit while candidates explore at once": Scenario(
        replies(column_explorer=explored(TOWNS)),
        {"votes": 2, "max_calls": 2} | switched(exploration="always"),
    ),
    "a limit while candidates explore": Scenario(
        replies(sql_writer=TIE, column_explorer=explored(TOWNS)), {"votes": 2, "max_calls": 4}
    ),
    "faults of the second round": Scenario(
        replies(
            sql_writer=each(c1=written(GOOD), c2=written(OTHER), c3=DOWN, others=written(BROKEN)),
        ),
        {"votes": 2},
    ),
    "one exploration for all": Scenario(
        replies(sql_writer=TIE, column_explorer=EXPLORING, exploration_corrector=CORRECTING),
        {"votes": 2} | switched(explorations="shared", max_corrections=1),
    ),
    "one exploration for all, of no use": Scenario(
        replies(sql_writer=TIE, column_explorer="no json"), {"votes": 2} | switched(explorations="shared")
    ),
    "one exploration for all, and its last correction of no use": Scenario(
        replies(sql_writer=TIE, column_explorer=explored(TOWNS), exploration_corrector="no json"),
        {"votes": 2} | switched(explorations="shared"),
    ),
    "no answer, and one exploration finds none": Scenario(
        replies(sql_writer=written(BROKEN), self_refiner=SAME, column_explorer="no json"),
        {"votes": 2} | switched(explorations="shared"),
    ),
    "the user is asked nothing": Scenario(replies(), ASKED),
    "no answer, and the user is asked nothing": Scenario(
        replies(sql_writer=written(BROKEN), self_refiner=SAME, column_explorer="no json"),
        ASKED | switched(explorations="shared"),
    ),
    "both rounds vote": Scenario(replies(sql_writer=TIE), {"votes": 2} | switched(merge_rounds=True)),
    "a model decides": Scenario(
        replies(sql_writer=TIE), {"votes": 2} | switched(model_vote=True, exploration="never")
    ),
    "no model decides": Scenario(
        replies(sql_writer=TIE, judge="no json"),
        {"votes": 2} | switched(model_vote=True, exploration="never"),
    ),
    "left open": Scenario(
        replies(sql_writer=TIE), {"votes": 2} | switched(random_selection=False, exploration="never")
    ),
    "drawn of all": Scenario(
        replies(sql_writer=TIE), {"votes": 2} | switched(majority_vote=False, exploration="never")
    ),
    "linked by drafts": Scenario(replies(), {"votes": 2} | switched(linking="drafts")),
    "not linked": Scenario(replies(), {"votes": 2} | switched(linking="none")),
    "not compressed": Scenario(replies(), {"votes": 2} | switched(compression=False)),
    "with a format": Scenario(replies(sql_writer=TIE), ASKED | switched(expected_format=True), words=LIMITED),
    "stage by stage": Scenario(
        replies(
            sql_writer=each(
                c1=DOWN,
                c2=turns(written(BROKEN), written(STAGED)),
                c3=turns(written(BROKEN), DOWN),
                c4=turns(written(BROKEN), written(STAGED)),
                others=written(GOOD),
            ),
            self_refiner={"explanation": "?", "sql": BROKEN},
            cte_refiner=each(c4=DOWN, others={"reasoning": "Right.", "accept": True, "sql": None}),
        ),
        {"votes": 5} | switched(cte_refinement=True, exploration="never"),
    ),
    "until a result comes twice": Scenario(
        replies(
            sql_writer=each(c1=DOWN, c2=written(BROKEN), c3=written(BROKEN), others=written(GOOD)),
            self_refiner=each(c2=SAME, others={"explanation": "Repaired.", "sql": GOOD}),
            self_checker=each(c4=DOWN, others={"reasoning": "Right.", "sql": GOOD}),
        ),
        {"votes": 5} | switched(self_consistency=True, exploration="never"),
    ),
    "the user adds to the question": Scenario(replies(sql_writer=TIE), ASKED, words=LIMITED),
}

ADDED = {"reasoning": "Orders belong to customers.", "add": ["orders.customer_id", "customers.id"]}


def in_order(*said: Any) -> Callable[[Prompt], Any]:
    """One reply after the other; the last one stays."""
    left = list(said)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def two_agents(**roles: Any) -> Callable[[Prompt], Any]:
    """SQLAgent's agents, who do everything right, but for the roles given."""
    return usual_replies(**{"context_expander": ADDED, "validator": FINE} | roles)


PLAIN = {"expansion": False, "fidelity": False}

SQLAGENT = {
    "batches": Scenario(two_agents(gen_agent=taking_turns(GOOD, OTHER, THIRD)), BATCHES | {"votes": 4}),
    "the user adds to the question": Scenario(two_agents(gen_agent=TIE), ASKED, words=LIMITED),
    "one round": Scenario(two_agents()),
    "a failure, a mismatch, and success": Scenario(
        two_agents(
            gen_agent=in_order(written(BROKEN), written(OTHER), written(GOOD)),
            validator=in_order(REJECTED, FINE),
        )
    ),
    "the last round fails": Scenario(two_agents(gen_agent=written(BROKEN)), {"switches": {"max_rounds": 1}}),
    "the last round is a mismatch": Scenario(two_agents(validator=REJECTED), {"switches": {"max_rounds": 1}}),
    "the data cannot answer": Scenario(two_agents(gen_agent=MISSING)),
    "the InfoAgent's endpoint is gone": Scenario(
        two_agents(info_agent=each(c1=DOWN, others={"keywords": ["city"]})), {"votes": 2}
    ),
    "the ContextExpander's endpoint is gone": Scenario(
        two_agents(context_expander=each(c1=DOWN, others=ADDED)), {"votes": 2}
    ),
    "neither expansion nor check": Scenario(
        two_agents(), {"switches": {"expansion": False, "fidelity": False}}
    ),
    "nothing is checked, and the last round fails": Scenario(
        two_agents(gen_agent=written(BROKEN)), {"switches": PLAIN | {"max_rounds": 2}}
    ),
    "no keywords to be had without expansion": Scenario(
        two_agents(info_agent=each(c1=DOWN, others={"keywords": ["city"]})), {"switches": PLAIN, "votes": 2}
    ),
}

SCENARIOS = {
    "quorum": QUORUM, "recap": RECAP, "react": REACT, "reforce": REFORCE, "single": SINGLE,
    "sqlagent": SQLAGENT, "ssev": SSEV, "team": TEAM,
}  # fmt: skip

NEVER: dict[str, dict[Edge, str]] = {
    "quorum": {
        Edge("revision", "take_query", END): "it asks no model and no database: nothing can stop it",
        Edge("reading", "take_query", END): "the same",
    },
    "reforce": {
        Edge("candidate", "run_stage", END): "it asks no model: only a deadline that passes just there",
        Edge("", "send_more", "clarify"): "only over a schema without data: tests/graph/test_schema_only.py",
    },
}
"""Edges that no scenario takes, and why."""


class Asking:
    """Asks a recipe over the shop, in one process or in two."""

    def __init__(self, url: str, home: Path, opened: Opened) -> None:
        self.usual: dict[str, Any] = {"models": ["m"], "database": url, "home": str(home)}
        self.opened = opened

    async def edges(self, recipe: str, scenario: Scenario) -> set[Edge]:
        """Those that a scenario takes."""
        options, run_id = RunOptions(**self.usual, recipe=recipe, **scenario.given), new_run_id()
        words = iter([scenario.words])
        with recorded() as recorder:
            if scenario.before:
                with pytest.raises(ModelUnavailable):
                    await answer_question(
                        await self.context(options, scenario.before, run_id=run_id), QUESTION
                    )
            again = {"resume": run_id} if scenario.before else {"run_id": run_id}
            context = await self.context(options, scenario.said, **again)
            await answer_question(
                context, QUESTION, resumed=context.resumed, on_clarify=lambda _: next(words, "")
            )
        return recorder.edges

    async def context(self, options: RunOptions, said: Script, **run: str) -> Context:
        shared = await self.opened.resources(options, {"m": scripted(said)})
        return await open_context(options, recipe_of(options), QUESTION, resources=shared, **run)


@dataclass(frozen=True)
class Counted:
    """The state of a small graph: ``first`` runs until ``n`` is 2, then ``second`` twice at once."""

    n: int = 0
    last: Annotated[str, lambda _, new: new] = ""


def counting(last: Callable[[Counted], dict[str, Any]]) -> Any:
    """A loop, two parallel tasks, and a last node."""

    def onward(state: Counted) -> Any:
        return "first" if state.n < 2 else [Send("second", Counted()), Send("second", Counted())]

    graph = StateGraph(Counted)
    graph.add_node("first", lambda state: {"n": state.n + 1})
    graph.add_node("second", lambda _: {"last": "second"})
    graph.add_node("third", last)
    graph.add_edge(START, "first")
    graph.add_conditional_edges("first", onward, ["first", "second"])
    graph.add_edge("second", "third")
    graph.add_edge("third", END)
    return graph.compile()


def test_the_recorder_follows_loops_and_parallel_tasks_to_the_end() -> None:
    nodes = (START, "first", "second", "third", END)
    once = {Edge("", *pair) for pair in itertools.pairwise(nodes)}
    with recorded() as recorder:
        counting(lambda _: {"last": "third"}).invoke(Counted())
    assert recorder.edges == once | {Edge("", "first", "first")}


def test_a_graph_that_fails_does_not_reach_its_end() -> None:
    def fail(_: Counted) -> dict[str, Any]:
        raise ValueError

    with recorded() as recorder, pytest.raises(ValueError):
        counting(fail).invoke(Counted())
    assert not [edge for edge in recorder.edges if edge.target == END]
    assert Edge("", "second", "third") in recorder.edges


@pytest.mark.heavy
@pytest.mark.parametrize("recipe", list(RECIPES))
async def test_the_edges_drawn_are_those_taken(recipe: str, shop: Path, tmp_path: Path) -> None:
    all_drawn, all_taken, strange = set[Edge](), set[Edge](), set[str]()
    async with AsyncExitStack() as closing:
        asking = Asking(f"sqlite:///{shop}", tmp_path / "home", Opened(closing))
        KnowledgeBase(tmp_path / "kb").keep(VerifiedPair(QUESTION, GOOD))
        verified = {"a question that a person verified": Scenario({}, {"kb": str(tmp_path / "kb")})}
        for name, scenario in (SCENARIOS[recipe] | verified).items():
            wired = drawn(
                find_recipe(recipe, scenario.given.get("switches"), scenario.given.get("preset", ""))
            )
            taken = await asking.edges(recipe, scenario)
            if any(edge.source.endswith("Linker") for edge in wired - taken - all_taken if not edge.graph):
                long = replace(scenario, given=scenario.given | {"link_above": 1})
                taken |= await asking.edges(recipe, long)
            strange |= {f"{edge} ({name})" for edge in taken - wired}
            all_drawn |= wired
            all_taken |= taken
    never = NEVER.get(recipe, {}).keys()
    assert not strange, "taken, and not drawn"
    assert not _named(all_drawn - all_taken - never), "drawn, and never taken"
    assert not _named((never & all_taken) | (never - all_drawn)), "NEVER says what is not so"


def _named(edges: Iterable[Edge]) -> list[str]:
    return sorted(map(str, edges))
