"""A report on evaluations as Markdown, as JSON, or as one self-contained page with plots.

Markdown is GitHub's flavour, for pull requests. Nothing in it names a place of the machine.
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from quorum.evals.paths import write_text
from quorum.evals.records import Record
from quorum.evals.reports.evaluations import Opened
from quorum.evals.reports.format import (
    NONE,
    clock,
    count,
    interval,
    level,
    listed,
    markdown,
    mean_and_median,
    mean_plus_minus,
    table,
)
from quorum.evals.reports.frame import (
    FIGURES,
    USER,
    Figure,
    Frame,
    answered,
    category,
    right,
    tokens_of,
    unscorable,
)
from quorum.evals.reports.plots import plots_of
from quorum.evals.reports.statistics import Mean
from quorum.evals.reports.templating import TRACE_PAGE, render, sections_of

WHY = {
    "missing": "the suite has no gold",
    "fails": "no gold SQL runs",
    "differs": "the gold SQL no longer gives the published result",
    "empty": "the gold SQL returns no row",
    "not_live": "no live database",
}
"""``quorum.evals.scorers.base.GoldState`` in words."""

REPEATS = ("ex_sound", "ex_effort", "some_reading")
"""Figures that are shown where they differ from EX."""

OF_GROUPS = ("ex", "possible", "with_question")
"""Figures of each group of questions, with a scorer's metrics."""


def report(found: Sequence[Opened]) -> str:
    """Return the Markdown: what was run, all figures side by side, then each evaluation by itself."""
    parts = [f"# {count(len(found), 'evaluation')}", *unlike(found)]
    for each in found:
        parts += [f"**{markdown(each.name)}**", _head(each)]
    parts += figures(found)
    for each in found:
        parts += [f"## {markdown(each.name)}", *sections(each)]
    return "\n\n".join(parts) + "\n"


def unlike(found: Sequence[Opened]) -> Iterator[str]:
    """Yield a warning if the evaluations cannot be compared with each other."""
    if len({(each.manifest.suite, each.manifest.rules) for each in found}) > 1:
        yield "The suites or their rules differ: only figures of the same suite can be compared."
    elif len({frozenset(each.asked) for each in found}) > 1:
        yield "Not all ask the same questions: `quorum eval compare` compares those that two share."


def figures(found: Sequence[Opened]) -> Iterator[str]:
    """Yield a heading and a table with a row for each figure and a column for each evaluation."""
    rows = [
        ("recipe", [markdown(each.recipe) for each in found]),
        ("models", [markdown(", ".join(each.models)) for each in found]),
        ("questions", [f"{len(each.frame.rows):,}" for each in found]),
    ]
    for name, figure in {name: it for each in found for name, it in each.frame.columns.items()}.items():
        means = [each.frame.mean(name) for each in found]
        cells = [_cell(mean, figure) for mean in means]
        if name == "ex":
            ex, cells = means, ["not measurable" if cell == NONE else cell for cell in cells]
        if name not in REPEATS or [mean.mean for mean in means] != [mean.mean for mean in ex]:
            rows.append((_title(figure), cells))
        if name == "ex":
            rows.append(("95 % interval (Wilson), %", [interval(mean) for mean in means]))
    for title, part in (("AUROC of confidence", "auroc"), ("Brier score", "brier")):
        fits = [getattr(each.calibration, part, None) for each in found]
        rows.append((title, [NONE if fit is None else f"{fit:.3f}" for fit in fits]))
    yield "### Figures"
    yield table(
        " | >".join(["", *(markdown(each.name) for each in found)]),
        [(title, *cells) for title, cells in rows if set(cells) != {NONE}],
    )
    yield (
        "EX: execution accuracy, the share of all questions asked for whose answer is right; without a "
        "record, an answer or usable gold a question counts as wrong. ± is the standard error, in percentage "
        "points. Costs are mean / median per question. EX with one question is not EX: a simulated user, who "
        "knows the gold, chose what meets it wherever another reading has another result."
    )


def _title(figure: Figure) -> str:
    return markdown(figure.title) + ", %" * (figure.unit == "share")


def _cell(mean: Mean, figure: Figure) -> str:
    if figure.unit != "share" or not mean.n:
        return mean_and_median(mean, figure.unit)
    return f"{mean_plus_minus(mean)} of {mean.n:,}"


# One evaluation


def sections(found: Opened) -> Iterator[str]:
    """Yield what an evaluation has besides its figures: EX by group, and the questions that are not right."""
    frame = found.frame
    names = [name for name in frame.columns if name in OF_GROUPS or name not in FIGURES | USER]
    for group, parts in frame.groups() if frame.measurable else ():
        yield f"### By {group}"
        yield table(
            " | >".join([group, "questions", "95 %", *(_title(frame.columns[name]) for name in names)]),
            [
                (
                    markdown(label),
                    len(part.rows),
                    interval(part.mean("ex")),
                    *(mean_plus_minus(part.mean(name)) for name in names),
                )
                for label, part in parts.items()
            ],
        )
    if states := _grouped(frame.records, lambda it: "" if it.gold == "ok" else it.gold):
        yield "### Gold that could not be used"
        yield table(
            "state | meaning | >questions | >right | ids",
            [
                (markdown(state), WHY.get(state, ""), len(own), sum(map(right, own)), _ids(own))
                for state, own in states.items()
            ],
        )
    if kinds := _grouped(frame.records, category):
        total = sum(map(len, kinds.values()))
        yield f"### Not right: {count(total, 'question')}"
        rows = [(markdown(kind), len(own), level(len(own) / total), _ids(own)) for kind, own in kinds.items()]
        yield table("why | >questions | >% | ids", rows)


def _grouped(records: Iterable[Record], key: Callable[[Record], str]) -> dict[str, list[Record]]:
    """Return the records by group, the largest first, without those of the group ``""``."""
    members: dict[str, list[Record]] = {}
    for record in records:
        members.setdefault(key(record), []).append(record)
    members.pop("", None)
    return dict(sorted(members.items(), key=lambda item: (-len(item[1]), item[0])))


def _ids(records: Iterable[Record]) -> str:
    return markdown(listed([record.id for record in records]), 1_000)


def _head(found: Opened) -> str:
    """Return a list: what was run, and what a reader must know before the figures."""
    options = ", ".join(f"{name} = {value}" for name, value in sorted(found.changed_options.items()))
    manifest = found.manifest
    begun = f", begun {clock(manifest.started)} UTC" if manifest.started else ""
    facts = [
        f"{markdown(manifest.suite)}, Quorum {markdown(manifest.version)}{begun}",
        f"options: {markdown(options, 1_000)}" if options else "options: all as by default",
        f"judged by: {markdown(manifest.rules, 1_000)}",
        *(f"**note**: {markdown(note, 1_000)}" for note in notes(found)),
    ]
    return "\n".join(f"- {fact}" for fact in facts)


def notes(found: Opened) -> Iterator[str]:
    """Yield sentences on what the figures leave out and what cannot be measured, the most important first."""
    frame, asked = found.frame, len(found.frame.rows)
    if shown := frame.count(lambda record: record.demonstration):
        yield (
            f"Demonstration: the rule-based offline model took part in {shown:,} of "
            f"{count(len(frame.records), 'record')}. It is no language model."
        )
    if gold := str(found.manifest.options.get("gold") or ""):
        seen = [record.id for record in frame.records if not record.restricted]
        yield (
            f"An ablation, no result of a system: questions saw only the {gold} that their gold needs "
            f'("oracle {gold}").'
            + (f" {count(len(seen), 'question')} saw the whole schema: {listed(seen)}." if seen else "")
        )
    if lost := Counter(record.gold for record in frame.records if unscorable(record)):
        why = ", ".join(f"{WHY.get(state, state)} ({number})" for state, number in sorted(lost.items()))
        yield f"{count(lost.total(), 'question')} of {asked} cannot be scored: {why}."
    if found.lacks:
        yield f"It is not whole: {found.lacks}."
    if waiting := asked - len(frame.records):
        yield f"{count(waiting, 'question')} of {asked} without a record yet. Counted as wrong."
    if failed := frame.count(lambda record: not record.finished):
        yield (
            f"{count(failed, 'question')} failed for want of the model's endpoint or the database. "
            "Counted as wrong; the same `quorum eval run` asks again."
        )
    if without := frame.count(lambda record: not record.usage):
        yield f"What {count(without, 'question')} cost is not known. Costs are those of the others."
    if unpriced := frame.count(lambda record: record.usage and record.usage.get("usd") is None):
        yield f"The price of {count(unpriced, 'question')} is not known (set `prices`)."
    if guessed := sum(int(record.usage.get("estimated_calls") or 0) for record in frame.records):
        yield f"The tokens of {count(guessed, 'model call')} are estimated: the provider did not state them."
    yield from found.manifest.missing


# JSON and the page


def as_dict(found: Opened) -> dict[str, Any]:
    """Return an evaluation's figures, ready for JSON: without NaN, and without a path of the machine."""
    manifest = found.manifest
    return {
        "name": found.name,
        "folders": [folder.resolve().name for folder in found.folders],
        **{
            name: getattr(manifest, name)
            for name in ("suite", "rules", "version", "started", "shard", "options", "missing")
        },
        "figures": _plain(found.frame),
        "groups": {
            name: {label: _plain(part) for label, part in parts.items()}
            for name, parts in found.frame.groups()
        },
        "calibration": found.calibration and dataclasses.asdict(found.calibration),
        "notes": list(notes(found)),
        "questions": list(questions(found)),
    }


def _plain(frame: Frame) -> dict[str, dict[str, Any]]:
    return {name: dataclasses.asdict(mean) for name, mean in frame.figures().items()}


def questions(found: Opened) -> Iterator[dict[str, Any]]:
    """Yield a row for each question asked for, in order. ``right`` is None if unknown."""
    for asked, record in found.frame.rows:
        row = {"id": asked.id, "database": asked.database, "difficulty": asked.difficulty}
        if record is None:
            record = Record(asked.id, "", asked.database, "", "", False, "not asked yet", match=False)
        given = answered(record)
        yield {
            **row,
            "question": record.question,
            "status": record.status,
            "right": record.match if given else False,
            "category": category(record) if record.ended else "",
            "reason": record.message or record.reason,
            "confidence": record.confidence if given else None,
            **{name: FIGURES[name].of(record) for name in ("model_calls", "seconds")},
            "tokens": tokens_of(record.usage),
            "run": record.run,
        }


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
    return render(
        "report.html",
        chapters=[
            {
                "found": each,
                "notes": list(notes(each)),
                "plots": plots_of(each),
                "sections": sections_of(sections(each)),
                "questions": [row | {"trace": _link(each, row["id"], folder)} for row in questions(each)],
            }
            for each in found
        ],
        figures=sections_of(figures(found)),
        warning=next(unlike(found), ""),
    )


def _link(found: Opened, id: str, folder: Path) -> str:
    """Return the page of a question's run, relative to ``folder``; empty without one."""
    run = found.run_of(id)
    if run is None or not (run / TRACE_PAGE).is_file():
        return ""
    return quote(Path(os.path.relpath(run / TRACE_PAGE, folder)).as_posix())
