"""How good the answers are, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quorum.evals.reports.format import NONE, count, markdown
from quorum.evals.reports.notes import WHY
from quorum.evals.reports.scores import Score
from quorum.evals.reports.statistics import Share
from quorum.evals.reports.summary import Summary
from quorum.evals.reports.tables import LONG, error, folded, interval, level, listed, mean_cells, table
from quorum.evals.reports.taxonomy import Category


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
    yield "### Execution accuracy"
    yield table(
        ("over", "right", "of", "EX, %", "s.e.", "95 % interval, %"),
        [(title, *_share(share, overall.questions)) for title, share in rows],
        right=range(1, 6),
    )
    yield (
        "Over all questions, one without a record, an answer or usable gold counts as wrong. s.e.: standard "
        "error, in percentage points; intervals are Wilson's. k: a question's candidates (see Votes)."
    )


def _share(share: Share | None, questions: int) -> tuple[str, ...]:
    if share is None:
        return NONE, f"{questions:,}", "not measurable", NONE, NONE
    shown = level(share.share) if share.n else "not measurable"
    return f"{share.count:,}", f"{share.n:,}", shown, error(share), interval(share)


def metrics(summary: Summary) -> Iterator[str]:
    """What the scorer declares besides EX."""
    found = summary.overall.metrics
    if not found:
        return
    yield "### Other metrics"
    yield table(
        ("metric", "all questions", "s.e.", "n", "answered", "s.e.", "n", "unit", "meaning"),
        [
            (
                markdown(metric.title),
                *mean_cells(metric.asked, metric.unit),
                *mean_cells(metric.answered, metric.unit),
                "%" if metric.unit == "share" else "points",
                markdown(metric.meaning),
            )
            for metric in found
        ],
        right=range(1, 7),
    )


def slices(summary: Summary) -> Iterator[str]:
    """Scores by difficulty, dialect, database and external knowledge."""
    for name, groups in summary.slices.items() if summary.overall.ex else ():
        yield f"### By {name}"
        text = _slice(name, groups)
        yield text if len(groups) <= LONG else folded(count(len(groups), name), text)


def _slice(name: str, groups: Sequence[Score]) -> str:
    titles = [metric.title + (", %" if metric.unit == "share" else "") for metric in groups[0].metrics]
    head = (
        name,
        "questions",
        "answered",
        "right",
        "EX, %",
        "s.e.",
        "95 %",
        "pass@k, %",
        *map(markdown, titles),
    )
    rows = []
    for group in groups:
        right, _, *figures = _share(group.ex, group.questions)
        rows.append(
            (
                markdown(group.label),
                f"{group.questions:,}",
                f"{group.answered:,}",
                right,
                *figures,
                level(group.possible.share if group.possible else None),
                *(level(metric.asked.mean, metric.unit) for metric in group.metrics),
            )
        )
    return table(head, rows, right=range(1, len(head)))


def gold(summary: Summary) -> Iterator[str]:
    """The questions whose gold could not be used."""
    if not summary.gold:
        return
    yield "### Gold that could not be used"
    yield table(
        ("state", "meaning", "questions", "scored", "right", "ids"),
        [
            (
                markdown(group.state),
                markdown(WHY.get(group.state, "")),
                f"{len(group.ids):,}",
                f"{group.scored:,}",
                f"{group.right:,}",
                listed(group.ids),
            )
            for group in summary.gold
        ],
        right=(2, 3, 4),
    )


def execution(summary: Summary) -> Iterator[str]:
    """What became of the SQL."""
    found = summary.execution
    yield "### SQL"
    yield table(
        ("SQL", "questions", "of", "%", "s.e.", "95 % interval, %"),
        [
            ("is there, of all questions recorded", *_share(found.with_sql, 0)),
            ("executes, of SQL on live databases", *_share(found.executes, 0)),
            ("passes guard and lint, of all SQL", *_share(found.valid, 0)),
        ],
        right=range(1, 6),
    )


def errors(summary: Summary) -> Iterator[str]:
    """Why questions have no answer, and what is wrong with wrong answers."""
    for title, categories, noun in (
        ("Questions without an answer", summary.unanswered, "why"),
        ("Wrong answers", summary.wrong, "what is wrong"),
    ):
        if categories:
            yield f"### {title}: {sum(len(category.ids) for category in categories):,}"
            yield _categories(categories, noun)


def _categories(categories: Sequence[Category], noun: str) -> str:
    total = sum(len(category.ids) for category in categories)
    return table(
        (noun, "questions", "% of these", "meaning", "ids"),
        [
            (
                markdown(category.name),
                f"{len(category.ids):,}",
                level(len(category.ids) / total),
                markdown(category.meaning),
                listed(category.ids),
            )
            for category in categories
        ],
        right=(1, 2),
    )
