"""What answering took: costs and throughput."""

from __future__ import annotations

from collections.abc import Iterator

from quorum.evals.reports.costs import Cost
from quorum.evals.reports.format import amount, count, markdown
from quorum.evals.reports.summary import Summary
from quorum.evals.reports.tables import LONG, PARTS, clock, folded, price, size, table, whole


def costs(summary: Summary) -> Iterator[str]:
    """What a question takes."""
    ledgers = summary.overall.recorded - summary.without_ledger
    yield "### Cost per question"
    if not ledgers:
        yield "Not known: no record has a ledger."
        return
    yield table(
        (f"over {count(ledgers, 'question')}", "mean", "p50", "p95", "highest", "total"),
        [_cost(cost) for cost in summary.costs],
        right=range(1, 6),
    )
    if summary.agents:
        yield folded("by agent, all questions together", _agents(summary))


def _cost(cost: Cost) -> tuple[str, ...]:
    spread = cost.spread
    if cost.unit == "dollars":
        return (cost.title, *(price(spread, part) for part in PARTS))
    shown = size if cost.unit == "bytes" else amount
    summed = shown if cost.unit in ("bytes", "seconds") else whole
    return (
        cost.title + (", s" if cost.unit == "seconds" else ""),
        *(shown(value) for value in (spread.mean, spread.p50, spread.p95)),
        *(summed(value) for value in (spread.high, spread.known_total)),
    )


def _agents(summary: Summary) -> str:
    return table(
        ("agent", "model calls", "tokens in", "of them cached", "tokens out", "database calls", "price"),
        [
            (
                markdown(agent.agent),
                *(
                    f"{number:,}"
                    for number in (
                        agent.model_calls,
                        agent.input_tokens,
                        agent.cached_tokens,
                        agent.output_tokens,
                        agent.queries,
                    )
                ),
                "unknown" if agent.usd is None else f"${agent.usd:,.4f}",
            )
            for agent in summary.agents
        ],
        right=range(1, 7),
    )


def throughput(summary: Summary) -> Iterator[str]:
    """How fast the sessions were."""
    found = summary.throughput
    if not found.sessions:
        return
    yield "### Throughput"
    head = (
        "session",
        "questions",
        "from (UTC)",
        "to (UTC)",
        "wall clock, s",
        "questions per minute",
        "peak memory",
    )
    rows = [
        (
            markdown(each.session),
            f"{each.questions:,}",
            clock(each.first),
            clock(each.last),
            amount(each.seconds),
            amount(each.per_minute),
            size(each.memory),
        )
        for each in found.sessions
    ]
    if len(rows) > 1:
        rows.append(
            (
                "all",
                f"{found.questions:,}",
                clock(found.sessions[0].first),
                clock(max(each.last for each in found.sessions)),
                amount(found.seconds),
                amount(found.per_minute),
                size(found.memory),
            )
        )
    text = table(head, rows, right=(1, 4, 5, 6))
    yield text if len(rows) <= LONG else folded(count(len(found.sessions), "session"), text)
    yield (
        "Peak memory is that of the process and of its children. Questions that were interrupted and "
        f"went on: {found.resumed:,}."
    )
