"""A report on evaluations as Markdown, as JSON, or as one self-contained page with plots.

Markdown is GitHub's flavour, for pull requests. Nothing in it names a place of the machine.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from quorum.evals.paths import write_text
from quorum.evals.reports.evaluations import Opened
from quorum.evals.reports.format import (
    NONE,
    amount,
    clock,
    count,
    listed,
    markdown,
    mean_plus_minus,
    plus_minus,
    price,
    table,
)
from quorum.evals.reports.frame import COSTS, answered, cost_of, costs_known, tokens_of, unscorable
from quorum.evals.reports.plots import plots_of, scatter_of
from quorum.evals.reports.sections import SECTIONS, WHY, grouped
from quorum.evals.reports.taxonomy import category
from quorum.evals.reports.templating import TRACE_PAGE, relative_link, render, sections_of


def report(found: Sequence[Opened]) -> str:
    """Return the Markdown: the evaluations side by side if there are several, then each by itself."""
    parts = [f"# {count(len(found), 'evaluation')}"]
    if taken := ", ".join(markdown(each.name) for each in found if each.demonstration):
        parts.append(
            f"> **Demonstration:** the rule-based offline model took part in {taken}. It is no language "
            "model: these figures show that the machinery works, and say nothing of any model's quality."
        )
    parts += [*_unlike(found), *(side_by_side(found) if len(found) > 1 else ())]
    for each in found:
        parts += [f"## {markdown(each.name)}", _head(each)]
        parts += [piece for section in SECTIONS if each.frame.records for piece in section(each)]
    return "\n\n".join(parts) + "\n"


def as_dict(found: Opened) -> dict[str, Any]:
    """Return an evaluation's figures, ready for JSON: without NaN, and without a path of the machine."""
    frame, manifest = found.frame, found.manifest
    values = {
        "name": found.name,
        "folders": [folder.resolve().name for folder in found.folders],
        **{
            name: getattr(manifest, name)
            for name in ("suite", "rules", "version", "started", "options", "missing")
        },
        "shards": found.shards[0],
        "shard_count": found.shards[1],
        "demonstration": found.demonstration,
        "overall": frame.figures(),
        "slices": {name: {k: part.figures() for k, part in parts.items()} for name, parts in frame.groups()},
        "costs": {name: frame.cost(name) for name in costs_known(frame.records)},
        "calibration": found.calibration,
        "notes": list(notes(found)),
        "questions": list(questions(found)),
    }
    plain: dict[str, Any] = _plain(values)
    return plain


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def questions(found: Opened) -> Iterator[dict[str, Any]]:
    """Yield a row for each question asked for, in order. ``right`` is None if unknown."""
    for asked, record in found.frame.rows:
        given = record is not None and answered(record)
        yield {
            "id": asked.id,
            "question": record.question if record else "",
            "database": asked.database,
            "difficulty": asked.difficulty,
            "status": record.status if record else "not asked yet",
            "right": record.match if record and given else False,
            "category": category(record) if record else "",
            "reason": (record.message or record.reason) if record else "",
            "gold": record.gold if record else "",
            "confidence": record.confidence if record and given else None,
            **{name: cost_of(record, name) if record else None for name in ("model_calls", "seconds")},
            "tokens": tokens_of(record.usage) if record else None,
            "linking": record.linking if record else None,
            "run": record.run if record else "",
        }


# Side by side


def _unlike(found: Sequence[Opened]) -> Iterator[str]:
    """Yield a warning if the evaluations cannot be compared with each other."""
    if len({(each.manifest.suite, each.manifest.rules) for each in found}) > 1:
        yield "The suites or their rules differ: only figures of the same suite can be compared."
    elif len({frozenset(each.asked) for each in found}) > 1:
        yield "Not all ask the same questions: `quorum eval compare` compares those that two share."


Shown: TypeAlias = Callable[[Opened], str]
"""A figure of an evaluation as text; ``NONE`` if it has none."""


def side_by_side(found: Sequence[Opened]) -> Iterator[str]:
    """Yield a heading and a table with a column for each evaluation, without figures that none has."""
    rows = [(title, [shown(each) for each in found]) for title, shown in _figures(found)]
    yield "### Side by side"
    yield table(
        " | >".join(["", *(markdown(each.name) for each in found)]),
        [(title, *cells) for title, cells in rows if set(cells) != {NONE}],
    )
    yield (
        "EX: execution accuracy, the share of all questions asked for whose answer is right; ± s.e. in "
        "percentage points. Costs are mean / median per question."
    )


def _figures(found: Sequence[Opened]) -> Iterator[tuple[str, Shown]]:
    def of(name: str) -> Shown:
        user = name in ("with_question", "user_asked")
        return lambda it: NONE if user and not it.frame.simulated else plus_minus(it.frame.share(name))

    def fit(name: str) -> Shown:
        return lambda it: NONE if (value := getattr(it.calibration, name, None)) is None else f"{value:.3f}"

    yield "suite", lambda it: markdown(it.manifest.suite)
    yield "recipe", lambda it: markdown(it.recipe)
    yield "models", lambda it: markdown(", ".join(it.models))
    yield "questions", lambda it: f"{len(it.frame.rows):,}"
    yield "answered", lambda it: f"{it.frame.answers:,}"
    yield "EX, %", of("ex")
    yield "EX with one question, %", of("with_question")
    yield "user asked, %", of("user_asked")
    yield "some candidate right (pass@k), %", of("possible")
    yield "answer or a reading shown right, %", of("some_reading")
    declared = {metric["name"]: metric for each in found for metric, _, _ in each.frame.declared().values()}
    for name, metric in declared.items():
        yield markdown(metric["title"]) + ", %" * (metric["unit"] == "share"), partial(_metric, name)
    yield "AUROC of confidence", fit("auroc")
    yield "Brier score of confidence", fit("brier")
    for name in ("model_calls", "queries", "input_tokens", "output_tokens", "seconds"):
        yield COSTS[name][0] + ", s" * (name == "seconds"), partial(_mean_and_median, name)
    yield "price", lambda it: " / ".join(price(it.frame.cost("usd"), part) for part in ("mean", "p50"))


def _metric(name: str, found: Opened) -> str:
    metric, mean, _ = found.frame.declared().get(name, (None, None, None))
    return mean_plus_minus(mean, metric["unit"]) if metric and mean else NONE


def _mean_and_median(name: str, found: Opened) -> str:
    spread = found.frame.cost(name)
    return NONE if spread.mean is None else f"{amount(spread.mean)} / {amount(spread.p50)}"


# Heads and notes


def _head(found: Opened) -> str:
    """Return a list: what was run, and what a reader must know before the figures."""
    options = ", ".join(f"{name} = {value}" for name, value in sorted(found.changed_options.items()))
    manifest, (shards, shard_count) = found.manifest, found.shards
    facts = [
        f"{count(len(found.frame.rows), 'question')} of {markdown(manifest.suite)}, recipe "
        f"{markdown(found.recipe)}, models {markdown(', '.join(found.models))}, "
        f"Quorum {markdown(manifest.version)}"
        + (f", begun {clock(manifest.started)} UTC" if manifest.started else ""),
        f"options: {markdown(options, 1_000)}" if options else "options: all as by default",
        f"judged by: {markdown(manifest.rules, 1_000)}",
    ]
    if shard_count > 1:
        facts.append(f"{len(shards)} of {shard_count} shards, put together")
    facts += [f"**note**: {markdown(note, 1_000)}" for note in notes(found)]
    return "\n".join(f"- {fact}" for fact in facts)


def notes(found: Opened) -> Iterator[str]:
    """Yield sentences on what the figures leave out and what cannot be measured, the most important first."""
    records, asked = found.frame.records, len(found.frame.rows)
    if found.demonstration:
        yield (
            f"Demonstration: the rule-based offline model took part in {found.demonstration:,} of "
            f"{count(len(records), 'record')}. It is no language model, and these figures say nothing of one."
        )
    if shown := str(found.manifest.options.get("gold") or ""):
        yield (
            f"An ablation, no result of a system: questions saw only the {shown} that their gold needs "
            f'("oracle {shown}").'
        )
        if seen := [record.id for record in records if not record.restricted]:
            yield f"{count(len(seen), 'question')} saw the whole schema, for want of gold: {listed(seen)}."
    if lost := [record for record in records if unscorable(record)]:
        states = Counter(record.gold for record in lost)
        why = ", ".join(f"{WHY.get(state, state)} ({number})" for state, number in sorted(states.items()))
        if found.frame.measurable:
            yield (
                f"{count(len(lost), 'question')} cannot be scored: {why}. Counted as wrong over all "
                "questions asked for, left out elsewhere."
            )
        else:
            yield f"0 of {asked} questions can be scored: {why}."
    shards, shard_count = found.shards
    if len(shards) < shard_count:
        absent = ", ".join(str(n) for n in range(1, shard_count + 1) if n not in shards)
        yield f"{len(shards)} of {shard_count} shards: the figures say nothing of shards {absent}."
    if not records:
        yield "No question has ended yet: there is nothing to measure."
    elif waiting := asked - len(records):
        yield (
            f"{count(waiting, 'question')} of {asked} without a record yet: the run goes on, or "
            "was interrupted. Counted as wrong."
        )
    if failed := found.frame.count(lambda record: not record.finished):
        yield (
            f"{count(failed, 'question')} failed for want of the model's endpoint or the database. "
            "Counted as wrong; the same `quorum eval run` asks again."
        )
    if met := found.frame.count(lambda record: not answered(record) and record.match):
        yield (
            f"{count(met, 'question')} without an answer had a best effort that is right: it was withheld, "
            "or a limit ended the run. Counted as wrong, except where best efforts are counted."
        )
    if any(record.sql for record in records) and all(record.executes is None for record in records):
        yield "Whether SQL executes cannot be measured: no live database."
    if records and not any(record.linking for record in records):
        yield "Linking cannot be measured: no answer has both SQL and gold SQL that can be read."
    if without := found.frame.count(lambda record: not record.usage):
        yield (
            f"What {count(without, 'question')} cost is not known: no ledger was kept before the failure. "
            "Costs are those of the others."
        )
    if unpriced := found.frame.count(lambda record: record.usage and record.usage.get("usd") is None):
        yield (
            f"The price of {count(unpriced, 'question')} is not known: a model's price is not in Quorum's "
            "list (set `prices`)."
        )
    if guessed := sum(int(record.usage.get("estimated_calls") or 0) for record in records):
        yield f"The tokens of {count(guessed, 'model call')} are estimated: the provider did not state them."
    unsound = grouped((it for it in records if it.gold != "ok" and it.match is not None), lambda it: it.gold)
    for state, own in unsound.items():
        meaning = WHY.get(state, state)
        yield (
            f"The gold of {count(len(own), 'question')} could not be used ({meaning}): "
            f"{listed([it.id for it in own])}."
        )
    yield from found.manifest.missing


# The page


def write_page(found: Sequence[Opened], path: Path) -> None:
    """Write the report on evaluations, at least one, to ``path``.

    Raises:
        ConfigurationError: The extra ``plots`` is not installed, or the file cannot be written.
    """
    write_text(path, page_of(found, path.parent))


def page_of(found: Sequence[Opened], folder: Path) -> str:
    """Return the page's HTML.

    Args:
        folder: Where the page will lie; links to traces are relative to it.

    Raises:
        ConfigurationError: The extra ``plots`` is not installed.
    """
    several = len(found) > 1
    return render(
        "report.html",
        chapters=[
            {
                "found": each,
                "anchor": f"e{number}",
                "notes": list(notes(each)),
                "plots": plots_of(each),
                "sections": sections_of(piece for section in SECTIONS for piece in section(each)),
                "questions": [row | {"trace": _link(each, row["id"], folder)} for row in questions(each)],
            }
            for number, each in enumerate(found, 1)
        ],
        side_by_side=sections_of(side_by_side(found)) if several else [],
        scatter=scatter_of(found) if several else None,
        warning=next(_unlike(found), "") if several else "",
    )


def _link(found: Opened, id: str, folder: Path) -> str:
    """Return the page of a question's run, relative to ``folder``; empty without one."""
    run = found.run_of(id)
    return relative_link(run / TRACE_PAGE, folder) if run and (run / TRACE_PAGE).is_file() else ""
