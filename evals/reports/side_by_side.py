"""Several evaluations beside each other, figure by figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from quorum.evals.reports.format import NONE, amount, level, markdown, plus_minus, price, table
from quorum.evals.reports.scores import MetricScore
from quorum.evals.reports.summary import Summary

Figure: TypeAlias = Callable[[Summary], str]
"""How a figure of an evaluation is shown; ``NONE`` where it has none."""


def side_by_side(summaries: Sequence[Summary]) -> Iterator[str]:
    """A heading and a table with a column for each evaluation; figures that none of them has are left out."""
    rows = [(title, [shown(summary) for summary in summaries]) for title, shown in _figures(summaries)]
    yield "### Side by side"
    yield table(
        " | >".join(["", *(markdown(summary.name) for summary in summaries)]),
        [(title, *cells) for title, cells in rows if set(cells) != {NONE}],
    )
    yield "Over all questions asked for; ± s.e. in percentage points. Costs are mean / median per question."


def _figures(summaries: Sequence[Summary]) -> Iterator[tuple[str, Figure]]:
    yield "EX, %", lambda it: plus_minus(it.overall.ex)
    yield "EX with one question, %", lambda it: plus_minus(it.one_question.ex) if it.one_question else NONE
    yield "user asked, %", lambda it: plus_minus(it.one_question.asked) if it.one_question else NONE
    yield "some candidate right (pass@k), %", lambda it: plus_minus(it.overall.possible)
    yield "answer or a reading shown right, %", lambda it: plus_minus(it.overall.some_reading)
    declared = {metric.name: metric for summary in summaries for metric in summary.overall.metrics}
    for name, metric in declared.items():
        title = markdown(metric.title) + (", %" if metric.unit == "share" else "")
        yield title, partial(_mean, name)
    yield "AUROC of confidence", lambda it: _number(it.calibration.auroc if it.calibration else None)
    yield "Brier score of confidence", lambda it: _number(it.calibration.brier if it.calibration else None)
    for resource in ("model_calls", "queries", "input_tokens", "output_tokens", "seconds"):
        title = next(cost.title for cost in summaries[0].costs if cost.name == resource)
        title += ", s" if resource == "seconds" else ""
        yield title, partial(_both, resource)
    yield "price", lambda it: f"{price(it.cost('usd'), 'mean')} / {price(it.cost('usd'), 'p50')}"


def _mean(name: str, summary: Summary) -> str:
    found: MetricScore | None = next((each for each in summary.overall.metrics if each.name == name), None)
    if found is None or found.asked.mean is None:
        return NONE
    error = found.asked.se
    return level(found.asked.mean, found.unit) + ("" if error is None else f" ± {level(error, found.unit)}")


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:.3f}"


def _both(resource: str, summary: Summary) -> str:
    spread = summary.cost(resource)
    return NONE if spread.mean is None else f"{amount(spread.mean)} / {amount(spread.p50)}"
