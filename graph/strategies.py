"""The vote: candidates vote with their results, and a strategy says how much each answer weighs.

``hold_vote`` excludes what must not vote, has a strategy weigh the rest, and breaks ties. A strategy is an
async function ``(ballots, rules) -> Vote``; a new one needs a line in ``STRATEGIES``. Nothing here depends on
the order in which candidates arrive.
"""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from quorum.graph.ballots import (
    UNANSWERABLE,
    Ballot,
    Cluster,
    Rules,
    Strategy,
    Vote,
    plainness,
    rank,
)
from quorum.graph.result_overlaps import ResultOverlaps
from quorum.knowledge.errors import ConfigurationError

RIVALS = 3
"""Clusters that a judge compares at most."""

CLOSE = 0.5
"""A cluster with at least this part of the heaviest one's weight is its rival."""

SLACK = 1e-9
"""Relative rounding error of a weight."""


def clusters(
    ballots: Sequence[Ballot],
    weight: Callable[[Ballot], float] = lambda _: 1.0,
    choice: Callable[[Ballot], str] = lambda ballot: ballot.choice,
) -> list[Cluster]:
    """Return the different answers, each with the sum of its ballots' weights (SSEV, equation 2)."""
    groups: dict[str, list[Ballot]] = {}
    for ballot in sorted(ballots, key=plainness):
        groups.setdefault(choice(ballot), []).append(ballot)
    return [
        Cluster(
            key=key,
            fingerprint=members[0].fingerprint,
            candidates=tuple(ballot.candidate for ballot in members),
            experts=tuple(sorted({ballot.expert for ballot in members})),
            weight=math.fsum(weight(ballot) for ballot in members),
            approved=any(ballot.approved is True for ballot in members),
        )
        for key, members in groups.items()
    ]


def _by_weight(groups: list[Cluster]) -> Vote:
    """Let the heaviest win; the margin is its lead over the next one.

    (A later result within the tolerance of two clusters would join them; the margin ignores that.)
    """
    first, second, *_ = *sorted((group.weight for group in groups), reverse=True), 0.0
    return Vote(None, tuple(groups), margin=first * (1 - SLACK) - second)


async def majority(ballots: Sequence[Ballot], rules: Rules) -> Vote:  # noqa: ARG001 (the interface's)
    """One vote a candidate, over results (ReFoRCE, equation 3)."""
    return _by_weight(clusters(ballots))


async def sql_majority(ballots: Sequence[Ballot], rules: Rules) -> Vote:
    """One vote a candidate, over normalised SQL text: the naive vote (SSEV, 3.2).

    Raises:
        ConfigurationError: The rules name no known dialect.
    """
    from quorum.tools.sql.writing import normalise

    def text(ballot: Ballot) -> str:
        return normalise(ballot.sql, rules.dialect) if ballot.fingerprint else ballot.choice

    return _by_weight(clusters(ballots, choice=text))


async def wma(ballots: Sequence[Ballot], rules: Rules) -> Vote:
    """Weighted majority (SSEV, Algorithm 1) over results.

    Each candidate counts with its expert's weight. With one candidate an expert this is equation 2.
    """
    return _by_weight(clusters(ballots, weight=lambda ballot: rules.weight(ballot.expert)))


async def rwma(ballots: Sequence[Ballot], rules: Rules) -> Vote:
    """Randomised weighted majority (SSEV, Algorithm 2): an expert is drawn with p = w / W.

    Of an expert's several candidates one is drawn evenly.
    """
    draw = random.Random(rules.seed)
    experts = sorted({ballot.expert for ballot in ballots})
    expert = draw.choices(experts, [rules.weight(name) for name in experts])[0]
    own = sorted((b for b in ballots if b.expert == expert), key=rank)
    return Vote(draw.choice(own).candidate, (await wma(ballots, rules)).clusters, seed=rules.seed)


async def drawn(ballots: Sequence[Ballot], rules: Rules) -> Vote:
    """Draw any candidate with equal chances: the baseline, and ReFoRCE's last resort."""
    ranked = sorted(ballots, key=rank)
    chosen = random.Random(rules.seed).choice(ranked).candidate
    return Vote(chosen, (await majority(ballots, rules)).clusters, seed=rules.seed)


async def mbr(ballots: Sequence[Ballot], rules: Rules) -> Vote:
    """Minimum Bayes risk: the answer with the highest expected agreement with the candidates.

    If every candidate is as likely to be right as its expert's weight says, an answer's expected agreement
    with the truth is the weighted sum of its support by all of them
    (``quorum.tools.results.overlap.Overlap.support``): full where results are equal, a little less where it
    has an additional column, less where it lacks one, little where they agree in part. The unit is one vote.
    Clusters then join results that are the same except for such columns. The result that most of them have
    exactly stands for the cluster, so no column of a single candidate is shown; among equals the one with the
    most support.

    A result that more than half of the weight has exactly always wins: otherwise a result that differs in a
    few cells could win by the support that it gets from this one.

    Raises:
        ConfigurationError: The rules give no overlaps of results.
    """
    if rules.overlaps is None:
        raise ConfigurationError("The strategy 'mbr' compares results, and was given none.")
    groups = clusters(ballots, lambda ballot: rules.weight(ballot.expert))
    heads = {ballot.candidate: ballot for ballot in ballots}
    left = await _supported([(group, heads[group.candidates[0]]) for group in groups], rules.overlaps)
    families = list[Cluster]()
    while left:
        (weight, head, lead), *others = left
        same = [(await rules.overlaps.overlap(lead, rival)).same for _, _, rival in others]
        members = [head, *(group for (_, group, _), joins in zip(others, same, strict=True) if joins)]
        members.sort(key=lambda group: -_rounded(group.weight))  # stable: of equals the most supported first
        families.append(
            replace(
                members[0],
                candidates=tuple(name for group in members for name in group.candidates),
                experts=tuple(sorted({name for group in members for name in group.experts})),
                weight=weight,
                approved=any(group.approved for group in members),
            )
        )
        left = [item for item, joins in zip(others, same, strict=True) if not joins]
    heaviest = max(groups, key=lambda group: group.weight)
    others_weight = math.fsum(group.weight for group in groups) - heaviest.weight
    margin = heaviest.weight * (1 - SLACK) - others_weight
    absolute = [family for family in families if margin > 0 and family.key == heaviest.key]
    return Vote(absolute[0].candidates[0] if absolute else None, tuple(families), margin=margin)


async def _supported(
    groups: Sequence[tuple[Cluster, Ballot]], overlaps: ResultOverlaps
) -> list[tuple[float, Cluster, Ballot]]:
    """Return each cluster with its support by all, and the ballot that leads it; the most supported first."""
    scored = []
    for group, lead in groups:
        support = [
            other.weight * (1.0 if other is group else (await overlaps.overlap(lead, rival)).support)
            for other, rival in groups
        ]
        scored.append((_rounded(math.fsum(support)), group, lead))
    return sorted(scored, key=lambda item: (-item[0], rank(item[2])))


def _rounded(weight: float) -> float:
    """To ten digits, so that equal sums of different fractions tie."""
    return float(f"{weight:.10g}")


STRATEGIES: dict[str, Strategy] = {
    "majority": majority,
    "sql_majority": sql_majority,
    "wma": wma,
    "rwma": rwma,
    "mbr": mbr,
    "random": drawn,
}


WEIGHTED = ("wma", "rwma", "mbr")
"""Strategies in which a candidate has its expert's weight."""


def find_strategy(name: str) -> Strategy:
    """The strategy of that name.

    Raises:
        ConfigurationError: There is none; the hint lists the names.
    """
    if name not in STRATEGIES:
        raise ConfigurationError(
            f"No consensus strategy is called {name!r}.", hint=f"Known: {', '.join(STRATEGIES)}."
        )
    return STRATEGIES[name]


def strategy_words(name: str) -> str:
    """Describe a strategy in one sentence; empty for one of another version."""
    words = inspect.getdoc(STRATEGIES[name]) if name in STRATEGIES else None
    return (words or "").partition("\n\n")[0].replace("\n", " ")


async def hold_vote(
    ballots: Iterable[Ballot], strategy: str = "majority", rules: Rules | None = None
) -> Vote:
    """Hold a vote.

    Every result votes, and so does that the data cannot answer, unless ``rules`` say otherwise; failures do
    not. A tie goes to an answer rather than to none, then to the cluster with an approved candidate, then to
    the one with the fewest repairs, then to the smallest hash of SQL (``quorum.graph.ballots.rank``); ``tie``
    stays set. Within a cluster ``quorum.graph.ballots.plainness`` chooses the candidate that stands for it.

    Args:
        strategy: A name in ``STRATEGIES``.
        rules: What the strategy needs: weights for ``wma``, ``rwma`` and ``mbr``, a dialect for
            ``sql_majority``, overlaps for ``mbr``. The seed of a draw is recorded.

    Raises:
        ConfigurationError: There is no such strategy, or ``rules`` lack what it needs.
    """
    weigh, rules = find_strategy(strategy), rules or Rules()
    voters, box = _voters(sorted(ballots, key=plainness), strategy, rules)
    if not voters:
        return box
    weighed, best = await weigh(voters, rules), {ballot.candidate: rank(ballot) for ballot in voters}
    drawn = weighed.winner if weighed.seed is not None else None
    outright = None if drawn else weighed.winning
    heaviest = max(cluster.weight for cluster in weighed.clusters)
    total = math.fsum(cluster.weight for cluster in weighed.clusters)

    def leads(cluster: Cluster) -> bool:
        return cluster is outright if outright else math.isclose(cluster.weight, heaviest, rel_tol=1e-9)

    def order(cluster: Cluster) -> tuple[object, ...]:
        first = min(best[name] for name in cluster.candidates)
        return (0, not cluster.fingerprint, first) if leads(cluster) else (1, -cluster.weight, first)

    clusters = tuple(replace(each, share=each.weight / total) for each in sorted(weighed.clusters, key=order))
    winner, leading = drawn or clusters[0].candidates[0], sum(map(leads, weighed.clusters))
    tied = tuple(each.key for each in clusters[:leading]) if leading > 1 and not drawn else ()
    made = replace(box, winner=winner, clusters=clusters, margin=weighed.margin, seed=weighed.seed)
    if drawn:
        made = replace(made, decided="draw", decision=f"{drawn} was drawn with seed {weighed.seed}.")
    elif tied:
        settled = "settled by approval, then fewest repairs, then the SQL's hash"
        said = f"{len(tied)} answers tie; {settled}."
        made = replace(made, tie=True, tied=tied, decided="tie_rule", decision=said)
    share = made.winning.share if made.winning else 0.0
    approved = next(ballot.approved for ballot in voters if ballot.candidate == winner)
    return replace(made, share=share, approved=approved, decided=made.decided or "vote")


def _voters(cast: Sequence[Ballot], strategy: str, rules: Rules) -> tuple[list[Ballot], Vote]:
    """Return those who may vote, and the vote as it is before they are weighed."""
    answers = [ballot for ballot in cast if ballot.fingerprint and not ballot.error]
    plausible = [ballot for ballot in answers if not (rules.blanks_give_way and ballot.blank)]
    lacking = [ballot for ballot in cast if ballot.error == UNANSWERABLE]
    voters = (plausible or answers) + ([] if rules.count_heads else lacking)
    box = Vote(
        winner=None,
        clusters=(),
        strategy=strategy,
        blank=bool(answers) and not plausible,
        cast=len(cast),
        experts=len({ballot.expert for ballot in cast}),
        excluded=tuple((ballot.candidate, ballot.reason) for ballot in cast if ballot not in voters),
        unanswerable=tuple(ballot.candidate for ballot in lacking),
    )
    return voters, replace(box, notes=_notes(box, len(plausible or answers)))


def _notes(box: Vote, answers: int) -> tuple[str, ...]:
    notes = []
    if lacking := len(box.unanswerable):
        notes.append(f"{lacking} of {box.cast} candidates say that the data cannot answer.")
    if answers == 0 and not lacking:
        notes.append("No candidate has a result.")
    if box.blank:
        notes.append("Every result is empty, or all NULL, empty text or zero; so these voted.")
    reasons = ", ".join(f"{name} ({why})" for name, why in box.excluded if why != UNANSWERABLE)
    if answers and reasons:
        notes.append(f"Did not vote: {reasons}.")
    if answers == 1:
        notes.append("Only one candidate has a result that can vote.")
    return tuple(notes)
