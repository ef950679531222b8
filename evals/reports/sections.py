"""The sections of a report on one evaluation, in Markdown; the page shows the same.

A section yields a heading and what stands under it, piece by piece, or nothing where it has nothing to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from quorum.evals.recorded.weights import BOUNDED, DRAWN_EXPERT, DRAWN_ONCE, Feedback, OnlineWeights
from quorum.evals.reports.calibration import Calibration, RiskPoint
from quorum.evals.reports.costs import Account, Cost, Session, Throughput
from quorum.evals.reports.format import (
    LONG,
    NONE,
    PARTS,
    amount,
    clock,
    count,
    folded,
    interval,
    level,
    listed,
    markdown,
    mean_cells,
    price,
    size,
    table,
    whole,
)  # fmt: skip
from quorum.evals.reports.scores import WHY, Score
from quorum.evals.reports.statistics import Share, share_of
from quorum.evals.reports.summary import LinkingScore, Summary
from quorum.evals.reports.taxonomy import Category

LINKING = " | >mean recall, % | >s.e. | >n | >mean precision, % | >s.e. | >n | >recall is 100 %, % | >of"

Section: TypeAlias = Callable[[Summary], Iterator[str]]

COVERAGES = (0.25, 0.5, 0.75, 1.0)
"""Where the risk-coverage curve is read off."""


def scores(summary: Summary) -> Iterator[str]:
    """Execution accuracy over its several denominators."""
    overall = summary.overall
    rows: list[tuple[str, Share | None]] = [
        ("all questions asked for", overall.ex),
        ("questions answered that can be scored", overall.ex_answered),
        ("questions with usable gold, of those recorded", overall.ex_sound),
    ]
    if overall.ex_effort != overall.ex:
        rows.append(("all questions, best efforts counted as answers", overall.ex_effort))
    rows.append(("all questions: some candidate is right (pass@k)", overall.possible))
    if overall.some_reading != overall.ex:
        rows.append(("all questions: the answer or another reading shown is right", overall.some_reading))
    yield "### Execution accuracy"
    yield table(
        "over | >right | >of | >EX, % | >s.e. | >95 % interval, %",
        [(title, *_share(share, overall.questions)) for title, share in rows],
    )
    yield (
        "Over all questions, one without a record, an answer or usable gold counts as wrong. s.e.: standard "
        "error, in percentage points; intervals are Wilson's. k: a question's candidates (see Votes)."
    )


def _share(share: Share | None, questions: int = 0) -> tuple[int | None, int, str, str, str]:
    """Cells: how many, of how many, the share, its standard error and interval."""
    if share is None:
        return None, questions, "not measurable", NONE, NONE
    shown = level(share.share) if share.n else "not measurable"
    return share.count, share.n, shown, level(share.se), interval(share)


def asking(summary: Summary) -> Iterator[str]:
    """What one question to a simulated user is worth."""
    found = summary.one_question
    if found is None:
        return
    yield "### With one question to the user"
    rows = {
        "all questions: the answer is what the user means, without a question": found.without,
        "all questions: it is, with one question (EX with one question)": found.ex,
        "all questions: the user was asked": found.asked,
        "asked: what they mean was not the answer, but among the choices": found.helped,
        "asked in vain: the answer was what they mean": found.needless,
        "asked in vain: no choice was what they mean": found.unhelpful,
    }
    yield table(
        "over | >questions | >of | >% | >s.e. | >95 % interval, %",
        [(title, *_share(share)) for title, share in rows.items()],
    )
    if found.without_all and found.ex_all:
        yield table(
            "in the mean over all readings that the user may mean | >% | >s.e. | >questions",
            [
                ("without a question", *mean_cells(found.without_all)),
                ("with one question", *mean_cells(found.ex_all)),
            ],
        )
    yield (
        "A simulated user, who knows the gold, chose the answer that meets it where the run asked which is "
        "meant; of several right readings they mean one, drawn by the seed. All other figures are those of "
        "the run without a reply: this is not EX."
    )


def metrics(summary: Summary) -> Iterator[str]:
    """What the scorer declares besides EX."""
    rows = [
        (
            markdown(metric.title),
            *mean_cells(metric.asked, metric.unit),
            *mean_cells(metric.answered, metric.unit),
            "%" if metric.unit == "share" else "points",
            markdown(metric.meaning),
        )
        for metric in summary.overall.metrics
    ]
    if rows:
        yield "### Other metrics"
        yield table("metric | >all questions | >s.e. | >n | >answered | >s.e. | >n | unit | meaning", rows)


def slices(summary: Summary) -> Iterator[str]:
    """Scores by difficulty, dialect, database and external knowledge."""
    for name, groups in summary.slices.items() if summary.overall.ex else ():
        yield f"### By {name}"
        metrics = [metric.title + (", %" if metric.unit == "share" else "") for metric in groups[0].metrics]
        head = f"{name} | >questions | >answered | >right | >EX, % | >s.e. | >95 % | >pass@k, %"
        metrics = ["EX with one question, %", *metrics] if summary.one_question else metrics
        rows = [_group(group, asked=summary.one_question is not None) for group in groups]
        text = table(" | >".join([head, *map(markdown, metrics)]), rows)
        yield text if len(groups) <= LONG else folded(count(len(groups), name), text)


def _group(group: Score, *, asked: bool) -> tuple[str | int | None, ...]:
    right, _, *figures = _share(group.ex, group.questions)
    possible = level(group.possible.share if group.possible else None)
    others = [level(metric.asked.mean, metric.unit) for metric in group.metrics]
    if asked:
        others.insert(0, level(group.with_question.share if group.with_question else None))
    return (markdown(group.label), group.questions, group.answered, right, *figures, possible, *others)


def gold(summary: Summary) -> Iterator[str]:
    """The questions whose gold could not be used."""
    rows = [
        (
            markdown(it.state),
            markdown(WHY.get(it.state, "")),
            len(it.ids),
            it.scored,
            it.right,
            listed(it.ids),
        )
        for it in summary.gold
    ]
    if rows:
        yield "### Gold that could not be used"
        yield table("state | meaning | >questions | >scored | >right | ids", rows)


def execution(summary: Summary) -> Iterator[str]:
    """What became of the SQL."""
    found = summary.execution
    rows = {
        "is there, of all questions recorded": found.with_sql,
        "executes, of SQL on live databases": found.executes,
        "passes guard and lint, of all SQL": found.valid,
    }
    yield "### SQL"
    yield table(
        "SQL | >questions | >of | >% | >s.e. | >95 % interval, %",
        [(title, *_share(share)) for title, share in rows.items()],
    )


def errors(summary: Summary) -> Iterator[str]:
    """Why questions have no answer, and what is wrong with wrong answers."""
    yield from _categories("Questions without an answer", "why", summary.unanswered)
    yield from _categories("Wrong answers", "what is wrong", summary.wrong)


def _categories(title: str, noun: str, found: Sequence[Category]) -> Iterator[str]:
    total = sum(len(each.ids) for each in found)
    if found:
        yield f"### {title}: {total:,}"
        yield table(
            f"{noun} | >questions | >% of these | meaning | ids",
            [
                (
                    markdown(it.name),
                    len(it.ids),
                    level(len(it.ids) / total),
                    markdown(it.meaning),
                    listed(it.ids),
                )
                for it in found
            ],
        )


def confidence(summary: Summary) -> Iterator[str]:
    """Whether the confidence says how often answers are right."""
    found = summary.calibration
    yield "### Confidence"
    if found is None:
        yield "Not measurable: no answer is known to be right or wrong."
        return
    yield (
        f"Over {count(found.n, 'answer')} known to be right or wrong: mean confidence "
        f"{found.confidence:.3f}, accuracy {found.accuracy:.3f}."
    )
    orders = f"{found.aurc_best:.3f} in the best order, {1 - found.accuracy:.3f} in a random one"
    yield table(
        "measure (lower is better) | >here | for comparison",
        [
            ("Brier score", f"{found.brier:.3f}", f"{found.brier_base:.3f} if always {found.accuracy:.3f}"),
            (
                "AUROC (higher is better)",
                "–" if found.auroc is None else f"{found.auroc:.3f}",
                "0.5 is chance: does confidence tell right answers from wrong ones?",
            ),
            ("expected calibration error", f"{found.ece:.3f}", "0 is perfect"),
            ("area under the risk-coverage curve", f"{found.aurc:.3f}", orders),
        ],
    )
    yield table(
        "confidence | >answers | >mean confidence | >accuracy",
        [
            (f"{it.low:.1f} – {it.high:.1f}", it.n, f"{it.confidence:.3f}", f"{it.accuracy:.3f}")
            for it in found.bins
            if it.n
        ],
    )
    yield table(
        ">given only if the confidence is at least | >answers given, % | >of them wrong, %",
        [(_least(it.threshold), level(it.coverage), level(it.risk)) for it in _read_off(found)],
    )


def _read_off(found: Calibration) -> list[RiskPoint]:
    """The points of the curve where at least so much is covered as ``COVERAGES`` say, each once."""
    reached = (
        next((point for point in found.curve if point.coverage >= coverage), found.curve[-1])
        for coverage in COVERAGES
    )
    return list(dict.fromkeys(reached))


def _least(threshold: float) -> str:
    """Rounded down, so that who sets it as ``abstain_below`` gets these answers."""
    return f"{math.floor(1000 * threshold) / 1000:.3f}"


def linking(summary: Summary) -> Iterator[str]:
    """Tables and columns of the answers' SQL against those of the gold SQL."""
    found = summary.linking
    if found is None:
        return
    yield "### Linking of the answers' SQL"
    without = ""
    if found.without_sql:
        verb = "is" if found.without_sql == 1 else "are"
        without = f" {count(found.without_sql, 'question')} without SQL {verb} in no mean."
    yield (
        "Tables and columns that the SQL uses against those of the gold SQL, in "
        f"{count(found.questions, 'question')} with both.{without}"
    )
    yield table(LINKING, _linked("", found))


def schema_linking(summary: Summary) -> Iterator[str]:
    """What linking large schemas kept."""
    found = summary.schema_linking
    if found is None:
        return
    yield "### Schema linking"
    without = ""
    if found.unknown:
        without = f" {found.unknown:,} of them in no figure: no gold, or no schema text."
    yield (
        "What the schema as linked keeps of the tables and columns of the gold: "
        f"{count(found.linked, 'question')} linked.{without} "
        "In the mean over all, a question that saw the whole schema has a recall of 100 %."
    )
    rows = [
        row
        for what, score in (("linked: ", found.long), ("all: ", found.all))
        for row in (_linked(what, score) if score else ())
    ]
    if rows:
        yield table(LINKING, rows)


def _linked(what: str, found: LinkingScore) -> Iterator[tuple[str | int, ...]]:
    rows = [
        ("tables", found.table_recall, found.table_precision, found.table_strict),
        ("columns", found.column_recall, found.column_precision, found.column_strict),
    ]
    for parts, recall, precision, strict in rows:
        cells = *mean_cells(recall), *mean_cells(precision), level(strict.share), strict.n
        yield (what + parts, *cells)


def votes(summary: Summary) -> Iterator[str]:
    """How candidates voted."""
    found = summary.votes
    if found is None:
        return
    yield "### Votes"
    yield table(
        f"over {count(found.questions, 'question')} with a vote | >",
        [
            ("candidates per question, mean", amount(found.candidates.mean)),
            ("candidates that agree with the answer, mean share, %", level(found.agreeing.mean)),
            ("votes that were a tie", found.ties.count),
            *((f"settled by {markdown(how)}", number) for how, number in found.settled.items()),
            ("candidates that the stopping rule spared, per question", amount(found.saved.mean)),
            ("candidates that the stopping rule spared, in all", whole(found.saved.known_total)),
        ],
    )
    if summary.learned:
        yield "Experts had level weights here; learned ones are shown under “Experts and learned weights”."


def experts(summary: Summary) -> Iterator[str]:
    """What weighted votes make of several experts, as in SSEV, Tables 3-5 and Figures 15-20."""
    if not summary.learned:
        return
    gold = summary.learned["gold"]
    yield "### Experts and learned weights"
    yield (
        "In the evaluation itself experts vote with level weights in every question, whatever its strategy: "
        "learned ones would depend on the order in which questions end. Here the first candidate of each "
        "expert votes again, blank results too, in the order of ids, over the "
        f"{count(gold.questions, 'question')} (of {summary.overall.questions:,}) that every expert was "
        "asked and whose candidates are known to be right or wrong; a mistake costs the factor 1 - ε, "
        "ε = √(ln N / T) = "
        f"{gold.epsilon(1):.3f} (SSEV, 3.1.2). An expert is wrong by the gold, or if its SQL did not run "
        "(execution); mistakes are counted by the gold."
    )
    shares = {name: share_of(not loss for loss in lost) for name, lost in gold.experts.items()}
    weights = [[f"{each.weights[name]:.3g}" for each in summary.learned.values()] for name in shares]
    yield table(
        "expert | >right | >EX, % | >s.e. | " + " | ".join(f">weight by {each}" for each in summary.learned),
        [
            (markdown(name), right.count, level(right.share), level(right.se), *own)
            for (name, right), own in zip(shares.items(), weights, strict=True)
        ],
    )
    yield from _learned_votes(summary.learned)


def _learned_votes(by_feedback: Mapping[Feedback, OnlineWeights]) -> Iterator[str]:
    gold = by_feedback["gold"]
    votes = [("naive: majority of SQL", gold, "sql_majority"), ("majority of results", gold, "majority")]
    for feedback, learned in by_feedback.items():
        votes += [
            (f"WMA, weights by {feedback}", learned, "wma"),
            (f"RWMA, weights by {feedback}, expected", learned, DRAWN_EXPERT),
            (f"RWMA, weights by {feedback}, drawn with seed {learned.seed}", learned, DRAWN_ONCE),
        ]
    rows = []
    for title, learned, vote in votes:
        last, bound = learned.bounds(vote)[-1], learned.bound(vote)
        most = NONE if bound is None else f"{bound:,.1f}"
        right = level(learned.ex(learned.votes[vote]))
        rows.append((title, right, f"{last.mistakes:,.1f}", most, f"{last.regret:.3f}"))
    yield table("vote | >EX, % | >mistakes | >bound | >regret a question", rows)
    reasons = dict.fromkeys(filter(None, (each.no_bound(vote) for _, each, vote in votes if vote in BOUNDED)))
    yield (
        f"Regret: mistakes beyond the {min(map(sum, gold.experts.values())):,.0f} of the best expert, per "
        "question. Bound: the most mistakes that the algorithm can make (WMA), or is expected to make (RWMA)."
        + (f" Of a weighted vote without a bound none holds: {'; '.join(reasons)}." if reasons else "")
    )


def courses(summary: Summary) -> Iterator[str]:
    """Who explored, what a second round is worth, and what candidates took by their repairs."""
    found = summary.courses
    if found is None:
        return
    yield "### Exploration and repairs"
    rows = {
        "questions that were explored": found.explored,
        "first votes that were a tie": found.first_ties,
        "of two rounds: some candidate of the first is right": found.first_round,
        "of two rounds: some candidate of the last is right (pass@k)": found.last_round,
    }
    yield table(
        "questions | >here | >of | >% | >s.e. | >95 % interval, %",
        [(title, *_share(share)) for title, share in rows.items() if share.n],
    )
    yield table(
        "a candidate | >candidates | >model calls each | >database calls each | >tokens a model call",
        [
            (it.title, it.candidates, amount(it.calls.mean), amount(it.queries.mean), amount(it.tokens))
            for it in found.levels
        ],
    )


def costs(summary: Summary) -> Iterator[str]:
    """What a question takes."""
    ledgers = summary.overall.recorded - summary.without_ledger
    yield "### Cost per question"
    if not ledgers:
        yield "Not known: no record has a ledger."
        return
    head = f"over {count(ledgers, 'question')} | >mean | >p50 | >p95 | >highest | >total"
    yield table(head, map(_cost, summary.costs))
    yield from _accounts("agent", summary.by_agent)
    yield from _accounts("model", summary.by_model)


def _accounts(by: str, found: Sequence[Account]) -> Iterator[str]:
    read = any(it.read_bytes or it.estimated_bytes for it in found)
    rows = [
        (
            markdown(it.name),
            it.model_calls,
            it.input_tokens,
            it.cached_tokens,
            it.output_tokens,
            amount(it.tokens_per_call),
            it.queries,
            *((size(it.read_bytes), size(it.estimated_bytes)) if read else ()),
            "unknown" if it.usd is None else f"${it.usd:,.4f}",
        )
        for it in found
    ]
    head = (
        f"{by} | >model calls | >tokens in | >of them cached | >tokens out | >tokens a call | "
        f">database calls | {'>read | >read, estimated | ' if read else ''}>price"
    )
    if rows:
        yield folded(f"by {by}, all questions together", table(head, rows))


def _cost(cost: Cost) -> tuple[str, ...]:
    spread = cost.spread
    if cost.unit == "dollars":
        return (cost.title, *(price(spread, part) for part in PARTS))
    shown = size if cost.unit == "bytes" else amount
    summed = shown if cost.unit in ("bytes", "seconds") else whole
    title = cost.title + (", s" if cost.unit == "seconds" else "")
    each = map(shown, (spread.mean, spread.p50, spread.p95))
    total = NONE if cost.unit == "tokens a call" else summed(spread.known_total)
    return (title, *each, summed(spread.high), total)


def throughput(summary: Summary) -> Iterator[str]:
    """How fast the sessions were."""
    found = summary.throughput
    if not found.sessions:
        return
    rows: list[tuple[str, str, str, Session | Throughput]] = [
        (markdown(each.session), each.first, each.last, each) for each in found.sessions
    ]
    if len(rows) > 1:
        rows.append(("all", rows[0][1], max(each.last for each in found.sessions), found))
    head = (
        "session | >questions | from (UTC) | to (UTC) | >wall clock, s | >questions per minute | >peak memory"
    )
    text = table(
        head,
        [
            (
                name,
                each.questions,
                clock(first),
                clock(last),
                amount(each.seconds),
                amount(each.per_minute),
                size(each.memory),
            )
            for name, first, last, each in rows
        ],
    )
    yield "### Throughput"
    yield text if len(rows) <= LONG else folded(count(len(found.sessions), "session"), text)
    yield (
        "Peak memory is that of the process and of its children. Questions that were interrupted and "
        f"went on: {found.resumed:,}."
    )


SECTIONS: tuple[Section, ...] = (
    scores, asking, metrics, slices, gold, execution, errors, confidence,
    linking, schema_linking, votes, experts, courses, costs, throughput
)  # fmt: skip
"""What a report holds, in its order."""
