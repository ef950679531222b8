"""A report as Markdown in GitHub's flavour, for pull requests. Nothing in it names a place of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quorum.evals.reports.format import amount, clock, count, markdown, percent, plus_minus, price, table
from quorum.evals.reports.sections import SECTIONS
from quorum.evals.reports.side_by_side import side_by_side
from quorum.evals.reports.summary import Summary


def report(summaries: Sequence[Summary]) -> str:
    """The report on evaluations: a table that compares them, then each by itself."""
    parts = [f"# {count(len(summaries), 'evaluation')}", *_demonstrations(summaries), _overview(summaries)]
    parts += _unlike(summaries)
    parts += side_by_side(summaries) if len(summaries) > 1 else ()
    for summary in summaries:
        parts += _head(summary)
        for section in SECTIONS if summary.overall.recorded else ():
            parts += section(summary)
    return "\n\n".join(parts) + "\n"


def _demonstrations(summaries: Sequence[Summary]) -> Iterator[str]:
    taken = [summary for summary in summaries if summary.demonstration]
    if taken:
        names = ", ".join(markdown(summary.name) for summary in taken)
        yield (
            f"> **Demonstration:** the rule-based offline model took part in {names}. It is no language "
            "model: these figures show that the machinery works, and say nothing of any model's quality."
        )


def _overview(summaries: Sequence[Summary]) -> str:
    head = (
        "evaluation | suite | recipe | models | >questions | >answered | >EX ± s.e., % | >calls | "
        ">tokens in | >tokens out | >price | >seconds"
    )
    rows: list[tuple[str | int, ...]] = [
        (
            markdown(summary.name),
            markdown(summary.suite),
            markdown(summary.recipe),
            markdown(", ".join(summary.models)),
            summary.overall.questions,
            summary.overall.answered,
            plus_minus(summary.overall.ex),
            *(amount(summary.cost(name).mean) for name in ("model_calls", "input_tokens", "output_tokens")),
            price(summary.cost("usd"), "mean"),
            amount(summary.cost("seconds").mean),
        )
        for summary in summaries
    ]
    return table(head, rows) + (
        "\n\nEX: execution accuracy, the share of all questions asked for whose answer is right; s.e.: its "
        "standard error, in percentage points. Calls, tokens, price and seconds are means per question."
    )


def _unlike(summaries: Sequence[Summary]) -> Iterator[str]:
    """Why rows of the table cannot be compared with each other."""
    if len({(summary.suite, summary.rules) for summary in summaries}) > 1:
        yield "The suites or their rules differ: only figures of the same suite can be compared."
    elif len({frozenset(line.id for line in summary.lines) for summary in summaries}) > 1:
        yield "Not all ask the same questions: `quorum eval compare` compares those that two share."


def _head(summary: Summary) -> Iterator[str]:
    yield f"## {markdown(summary.name)}"
    options = ", ".join(f"{name} = {value}" for name, value in sorted(summary.changed_options.items()))
    facts = [
        f"{count(summary.overall.questions, 'question')} of {markdown(summary.suite)}, recipe "
        f"{markdown(summary.recipe)}, models {markdown(', '.join(summary.models))}, "
        f"Quorum {markdown(summary.version)}"
        + (f", begun {clock(summary.started)} UTC" if summary.started else ""),
        f"options: {markdown(options, 1_000)}" if options else "options: all as by default",
        f"judged by: {markdown(summary.rules, 1_000)}",
    ]
    if summary.demonstration:
        part = percent(summary.demonstration / summary.overall.recorded)
        answers = f"{summary.demonstration:,} of {count(summary.overall.recorded, 'record')}"
        facts.append(f"**demonstration**: the offline model took part in {answers} ({part})")
    if summary.shard_count > 1:
        facts.append(f"{len(summary.shards)} of {summary.shard_count} shards, put together")
    facts += [f"**note**: {markdown(note, 1_000)}" for note in (*summary.notes, *summary.missing)]
    yield "\n".join(f"- {fact}" for fact in facts)
