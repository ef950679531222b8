"""The pictures of the papers: which agent follows which, and a recipe's graph as mermaid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from langgraph.graph import END, START

from quorum.graph.builder import build_graph
from quorum.graph.exploring import wire_search
from quorum.graph.nodes.tree_search import Search

Arrow = tuple[str, str]

_DRAWN: dict[str, dict[str, str]] = {
    "reforce": {  # 000, Figure 1 and 3.2
        "TableLinker -> candidate:SqlWriter": "(a) compression, then (b) candidates",
        "candidate:SqlWriter -> candidate:SelfRefiner": "an error or an empty result is refined",
        "candidate:SelfRefiner -> candidate:SelfRefiner": "up to five iterations",
        "candidate:SqlWriter -> Consensus": "(c) majority voting",
        "candidate:SelfRefiner -> Consensus": "(c) majority voting",
        "Consensus -> exploring_candidate:ColumnExplorer": "(d) what ties is explored",
        "exploring_candidate:ColumnExplorer -> exploring_candidate:ExplorationCorrector": "Algorithm 1",
        "exploring_candidate:ExplorationCorrector -> exploring_candidate:ExplorationCorrector": "max_try",
        "exploring_candidate:ColumnExplorer -> exploring_candidate:SqlWriter": "its results make a prompt",
        "exploring_candidate:ExplorationCorrector -> exploring_candidate:SqlWriter": "the same",
        "exploring_candidate:SqlWriter -> exploring_candidate:SelfRefiner": "as in the first round",
        "exploring_candidate:SelfRefiner -> exploring_candidate:SelfRefiner": "as in the first round",
        "exploring_candidate:SqlWriter -> Consensus": "the second vote",
        "exploring_candidate:SelfRefiner -> Consensus": "the second vote",
    },
    "recap": {  # 004, Table 1 and section 3.3; steps that ask nobody (``run_sql``) lie between
        "KnowledgeRetriever -> SchemaLinker": "before plan generation",
        "SchemaLinker -> candidate:Planner": "a large schema is linked by the question (Figure 9)",
        "candidate:Planner -> candidate:PlanCritique": "immediately after plan generation",
        "candidate:PlanCritique -> candidate:Planner": "additional iterations of the Planner (3.3.3)",
        "candidate:PlanCritique -> candidate:SyntaxRetriever": "after planning",
        "candidate:SyntaxRetriever -> candidate:Action": "the syntax guides the Action's prompt (3.3.5)",
        "candidate:SQLCritique -> candidate:Action": "nothing repairs the query: until the step limit (3.3)",
        "candidate:SelfRefiner -> candidate:Action": "the refinement limit is reached (3.3, 3.3.6)",
        "candidate:PlanCritique -> candidate:SelfRefiner": "a refined query follows",
        "candidate:Action -> candidate:Action": "at each step in the loop",
        "candidate:Action -> candidate:SQLCritique": "after each SQL generation step",
        "candidate:SQLCritique -> candidate:Validator": "after successful execution",
        "candidate:SQLCritique -> candidate:SelfRefiner": "upon execution error or empty result",
        "candidate:SQLCritique -> candidate:SchemaLinker": "when schema-related errors occur",
        "candidate:SchemaLinker -> candidate:Planner": "schema errors invoke their collaboration (3.3)",
        "candidate:Planner -> candidate:SelfRefiner": "a refined query follows",
        "candidate:SelfRefiner -> candidate:SQLCritique": "once it ran, the SQLCritique evaluates it (3.3.6)",
        "candidate:SelfRefiner -> candidate:SelfRefiner": "if errors persist, the loop continues (3.3.6)",
        "candidate:Validator -> candidate:Action": "its feedback goes into the next prediction (3.3.5)",
    },
    "ssev": {  # 004, Figure 5 and 3.2
        "presql:SqlWriter -> presql:SelfRefiner": "PreSQL that fails is refined",
        "presql:SelfRefiner -> presql:SelfRefiner": "up to N iterations",
        "presql:SqlWriter -> PreSQLConsensus": "the vote of stages 5 and 6",
        "presql:SelfRefiner -> PreSQLConsensus": "the vote of stages 5 and 6",
        "PreSQLConsensus -> candidate:SqlWriter": "its winner links the schema for PostSQL",
        "candidate:SqlWriter -> candidate:SelfRefiner": "PostSQL that fails is refined",
        "candidate:SelfRefiner -> candidate:SelfRefiner": "up to N iterations",
        "candidate:SqlWriter -> Consensus": "the last vote",
        "candidate:SelfRefiner -> Consensus": "the last vote",
    },
    "react": {  # 000, 3.1
        "candidate:ToolUser -> candidate:ToolUser": "thought, action, observation",
    },
    "sqlagent": {  # 001, Figure 2 and Algorithm 3
        "candidate:InfoAgent -> candidate:ContextExpander": "lines 7 and 8",
        "candidate:ContextExpander -> candidate:GenAgent": "lines 10 to 12",
        "candidate:GenAgent -> candidate:Validator": "line 17: what ran is checked",
        "candidate:GenAgent -> candidate:InfoAgent": "line 15: execution failed",
        "candidate:Validator -> candidate:InfoAgent": "line 22: semantic mismatch",
    },
    "explore": {  # 001, Figure 1 and 3.2
        "Explorer -> simulate:Simulator": "selection and expansion, then simulation",
        "simulate:Simulator -> simulate:Describer": "on success the description",
        "simulate:Describer -> Explorer": "backpropagation, into the next choice",
        "simulate:Simulator -> Explorer": "backpropagation of a failure",
    },
}
"""From agent to agent, as the papers' pictures and their text have it."""

PICTURES: dict[str, set[Arrow]] = {
    recipe: {(source, target) for source, _, target in (arrow.partition(" -> ") for arrow in arrows)}
    for recipe, arrows in _DRAWN.items()
}


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
