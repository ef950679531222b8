"""The pictures of the papers: which agent follows which, and a recipe's graph as mermaid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from langgraph.graph import END, START

from quorum.graph.builder import build_graph
from quorum.graph.exploring import wire_search
from quorum.graph.nodes.tree_search import Search

Arrow = tuple[str, str]

_OUTSIDE = {"Consensus", "PreSQLConsensus", "Explorer"}
"""Where branches end."""

_DRAWN: dict[str, dict[str, str]] = {
    "reforce": {  # 000, Figure 1 and 3.2
        "TableLinker": "candidate:SqlWriter",  # (a) compression, then (b) candidates
        "candidate:SqlWriter": "SelfRefiner Consensus",  # an error or no row is refined; (c) the vote
        "candidate:SelfRefiner": "SelfRefiner Consensus",  # up to five iterations
        "Consensus": "exploring_candidate:ColumnExplorer",  # (d) what ties is explored
        "exploring_candidate:ColumnExplorer": "ExplorationCorrector SqlWriter",  # Algorithm 1; a new prompt
        "exploring_candidate:ExplorationCorrector": "ExplorationCorrector SqlWriter",  # max_try
        "exploring_candidate:SqlWriter": "SelfRefiner Consensus",  # as in the first round
        "exploring_candidate:SelfRefiner": "SelfRefiner Consensus",
    },
    "recap": {  # 004, Table 1 and section 3.3; steps that ask nobody (``run_sql``) lie between
        "KnowledgeRetriever": "SchemaLinker",  # before plan generation
        "SchemaLinker": "candidate:Planner",  # a large schema is linked by the question (Figure 9)
        "candidate:Planner": "PlanCritique SelfRefiner",  # after planning; after linking a refined query
        "candidate:PlanCritique": "Planner SyntaxRetriever SelfRefiner",  # additional iterations (3.3.3)
        "candidate:SyntaxRetriever": "Action",  # the syntax guides its prompt (3.3.5)
        "candidate:Action": "Action SQLCritique",  # at each step in the loop; after each SQL generation step
        # after successful execution; upon an error or an empty result; upon schema-related errors; where
        # nothing repairs the query, until the step limit (3.3)
        "candidate:SQLCritique": "Validator SelfRefiner SchemaLinker Action",
        "candidate:SchemaLinker": "Planner",  # schema errors invoke their collaboration (3.3)
        # once it ran the SQLCritique evaluates it; errors persist; the refinement limit is reached (3.3.6)
        "candidate:SelfRefiner": "SQLCritique SelfRefiner Action",
        "candidate:Validator": "Action",  # its feedback goes into the next prediction (3.3.5)
    },
    "ssev": {  # 004, Figure 5 and 3.2
        "presql:SqlWriter": "SelfRefiner PreSQLConsensus",  # what fails is refined; stages 5 and 6 vote
        "presql:SelfRefiner": "SelfRefiner PreSQLConsensus",  # up to N iterations
        "PreSQLConsensus": "candidate:SqlWriter",  # its winner links the schema for PostSQL
        "candidate:SqlWriter": "SelfRefiner Consensus",
        "candidate:SelfRefiner": "SelfRefiner Consensus",
    },
    "react": {"candidate:ToolUser": "ToolUser"},  # 000, 3.1: thought, action, observation
    "sqlagent": {  # 001, Figure 2 and Algorithm 3
        "candidate:InfoAgent": "ContextExpander",  # lines 7 and 8
        "candidate:ContextExpander": "GenAgent",  # lines 10 to 12
        "candidate:GenAgent": "Validator InfoAgent",  # line 17: what ran is checked; line 15: it failed
        "candidate:Validator": "InfoAgent",  # line 22: semantic mismatch
    },
    "explore": {  # 001, Figure 1 and 3.2: selection and expansion, simulation, backpropagation
        "Explorer": "simulate:Simulator",
        "simulate:Simulator": "Describer Explorer",  # on success the description
        "simulate:Describer": "Explorer",
    },
}
"""Which agents follow which, as the papers' pictures and text have it; those of one box without its name."""


def _drawn(follows: dict[str, str]) -> Iterator[Arrow]:
    for source, targets in follows.items():
        box = source[: source.rfind(":") + 1]
        for target in targets.split():
            yield source, target if ":" in target or target in _OUTSIDE else box + target


PICTURES: dict[str, set[Arrow]] = {recipe: set(_drawn(follows)) for recipe, follows in _DRAWN.items()}


def arrows(graph: Any, shown: Callable[[str], bool]) -> Iterator[Arrow]:
    """Yield the arrows of a drawn graph between the nodes ``shown``, through all others, each once.

    They come in the order in which a question may take them.
    """
    following: dict[str, list[str]] = {}
    for edge in graph.edges:
        following.setdefault(edge.source, []).append(edge.target)
    sources, begun = [START], {START}
    while sources:
        source = sources.pop(0)
        seen, waiting = set[str](), list(following.get(source, ()))
        while waiting:
            node = waiting.pop(0)
            if node in seen:
                continue
            seen.add(node)
            if not shown(node):
                waiting += following.get(node, ())
                continue
            yield source, node
            if node not in begun:
                begun.add(node)
                sources.append(node)


def asks(node: str) -> bool:
    """True if a node asks an agent, or holds a vote."""
    return node.rpartition(":")[2][0].isupper()


def drawn(recipe: str) -> Any:
    """Return a recipe's graph as LangGraph draws it; ``explore`` is that of ``quorum explore``."""
    if recipe == "explore":
        return wire_search(cast(Search, None)).compile().get_graph(xray=1)
    return build_graph(recipe).get_graph(xray=1)


def between_agents(recipe: str) -> set[Arrow]:
    """Return the arrows of a recipe's graph from agent to agent."""
    found = arrows(drawn(recipe), asks)
    return {(source, target) for source, target in found if source != START}


def mermaid(recipe: str) -> str:
    """Return a recipe's graph as mermaid: its agents alone, each branch as a box that one arrow leaves.

    Arrows between agents that the paper does not draw are dotted. A verified question's way from the
    KnowledgeRetriever straight to the answer, which all recipes have, is left out.
    """
    boxes: dict[str, list[str]] = {"": []}
    ends = ("database", "triplets") if recipe == "explore" else ("question", "answer")
    paper = PICTURES[recipe]
    for source, target in arrows(drawn(recipe), lambda node: asks(node) or node == END):
        if (source, target) == ("KnowledgeRetriever", END):
            continue
        box = source.rpartition(":")[0]
        inside = box == target.rpartition(":")[0]
        first = source in (START, "KnowledgeRetriever")
        of_paper = first or target == END or (source, target) in paper
        leaves = box and not inside
        arrow = "-->" if of_paper or leaves else "-.->"
        start, end = _node(source, ends), _node(target, ends)
        line = f"{box if leaves else start} {arrow} {end}"
        lines = boxes.setdefault(box if inside else "", [])
        if line not in lines:
            lines.append(line)
    whole = boxes.pop("")
    for box, lines in boxes.items():
        whole += [f"subgraph {box} [{box.replace('_', ' ')}]", *(f"    {line}" for line in lines), "end"]
    return "\n".join(["```mermaid", "graph LR", *(f"    {line}" for line in whole), "```"]) + "\n"


def _node(name: str, ends: tuple[str, str]) -> str:
    if name in (START, END):
        end = ends[name == END]
        return f"{end}([{end}])"
    box, _, last = name.rpartition(":")
    return f"{box}_{last}[{last}]" if box else last
