"""The agents as a team: ReCAPAgent-SQL's (paper 004) with ReFoRCE's ColumnExplorer (paper 000).

    open → KnowledgeRetriever → SchemaLinker → Planner ⇄ PlanCritique → SyntaxRetriever ─ Send × votes
    one candidate:  Action → SQLCritique → run → Validator
                    run → (SchemaLinker) → SelfRefiner → run → SQLCritique
    Consensus, where strong answers disagree: ColumnExplorer → Send × votes more ─ Consensus

It is ``recap`` with ``exploration`` on and matched values shown, and nothing else: several models vote as
experts, by majority, by weights learned from what each got right (``wma``), or by any other ``strategy``.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorum.graph.nodes.retrieval import TRIPLETS
from quorum.graph.recipes import recap
from quorum.graph.recipes.recap import CONFIRM_EMPTY, Recap
from quorum.graph.recipes.recipe import switch
from quorum.knowledge.search.values import SHOWN


@dataclass(frozen=True)
class Team(Recap):
    """``recap``'s switches, with exploration on."""

    own_plans: bool = switch(False, "each candidate plans by itself; else all follow one plan")
    confirm_empty: bool = switch(True, CONFIRM_EMPTY)
    exploration: bool = switch(True, "look into the database where strong answers disagree or there is none")


RECIPE = Team(
    name="team",
    summary="Plan, criticise, link, act, refine and validate in parallel, vote, explore what is disputed.",
    paper="none: ReCAPAgent-SQL's agents with ReFoRCE's column exploration",
    agents=recap.RECIPE.agents,
    wire=recap.wire,
    matched_values=SHOWN,
    triplets=TRIPLETS,
)
