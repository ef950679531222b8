"""The sections of a report on one evaluation, in Markdown; the page shows the same.

A section yields a heading and what belongs under it, piece by piece, or nothing if it has nothing to say.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from quorum.evals.records import Effort, Record
from quorum.evals.reports.evaluations import Opened
from quorum.evals.reports.format import (
    LONG,
    NONE,
    PARTS,
    amount,
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
from quorum.evals.reports.frame import (
    COSTS,
    EXECUTION_ACCURACY,
    EXPLORATION,
    ONE_QUESTION,
    SHARES,
    SQL,
    Frame,
    answered,
    costs_known,
    number,
    right,
    share_of_meanings,
    voted,
)
from quorum.evals.reports.statistics import Share, mean_of, share_of, spread_of
from quorum.evals.reports.taxonomy import UNANSWERED, WRONG, category

Section: TypeAlias = Callable[[Opened], Iterator[str]]

WHY = {
    "missing": "the suite has no gold",
    "fails": "no gold SQL runs",
    "differs": "the gold SQL no longer gives the published result",
    "empty": "the gold SQL returns no row",
    "not_live": "no live database",
}
"""``quorum.evals.scorers.base.GoldState`` in words."""


# Shares of the questions


def _share_cells(share: Share | None, questions: int = 0) -> tuple[int | None, int, str, str, str]:
    """Return the cells: how many, of how many, the share, its standard error and interval."""
    if share is None:
        return None, questions, "not measurable", NONE, NONE
    shown = level(share.share) if share.n else "not measurable"
    return share.count, share.n, shown, level(share.se), interval(share)


def _shares(head: str, frame: Frame, names: Iterable[str]) -> str:
    """Return a table of shares, ``head`` names its first two columns and the share's."""
    first, second, share = head.split(" | ")
    return table(
        f"{first} | >{second} | >of | >{share} | >s.e. | >95 % interval, %",
        [(SHARES[name].title, *_share_cells(frame.share(name), len(frame.rows))) for name in names],
    )


def scores(found: Opened) -> Iterator[str]:
    frame = found.frame
    same = frame.share("ex")
    dull = [name for name in ("ex_effort", "some_reading") if frame.share(name) == same]
    yield "### Execution accuracy"
    yield _shares("over | right | EX, %", frame, [name for name in EXECUTION_ACCURACY if name not in dull])
    yield (
        "Over all questions, one without a record, an answer or usable gold counts as wrong. s.e.: standard "
        "error, in percentage points; intervals are Wilson's. k: a question's candidates (see Votes)."
    )


def one_question(found: Opened) -> Iterator[str]:
    frame = found.frame
    if not frame.simulated:
        return
    yield "### With one question to the user"
    yield _shares("over | questions | %", frame, ONE_QUESTION)
    if any(record.asking and record.asking.readings > 1 for record in frame.records):
        rows = []
        for title, question in (("without a question", False), ("with one question", True)):
            shares = (share_of_meanings(it, question=question) if it else 0.0 for _, it in frame.rows)
            rows.append((title, *mean_cells(mean_of(shares))))
        yield table(
            "in the mean over all readings that the user may mean | >% | >s.e. | >questions",
            rows,
        )
    yield (
        "A simulated user, who knows the gold, chose the answer that meets it wherever another reading has "
        "another result (`--clarify always`); of several right readings they mean one, drawn by the seed. "
        "All other figures are those of the run without a reply: this is not EX."
    )


def metrics(found: Opened) -> Iterator[str]:
    rows = [
        (
            markdown(metric["title"]),
            *mean_cells(asked, metric["unit"]),
            *mean_cells(given, metric["unit"]),
            "%" if metric["unit"] == "share" else "points",
            markdown(metric["meaning"]),
        )
        for metric, asked, given in found.frame.declared().values()
    ]
    if rows:
        yield "### Other metrics"
        yield table("metric | >all questions | >s.e. | >n | >answered | >s.e. | >n | unit | meaning", rows)


def groups(found: Opened) -> Iterator[str]:
    frame = found.frame
    if not frame.measurable:
        return
    heads = ["EX with one question, %"] if frame.simulated else []
    heads += [
        metric["title"] + ", %" * (metric["unit"] == "share") for metric, _, _ in frame.declared().values()
    ]
    for name, parts in frame.groups():
        yield f"### By {name}"
        head = f"{name} | >questions | >answered | >right | >EX, % | >s.e. | >95 % | >pass@k, %"
        text = table(
            " | >".join([head, *map(markdown, heads)]),
            [_group(label, part, simulated=frame.simulated) for label, part in parts.items()],
        )
        yield text if len(parts) <= LONG else folded(count(len(parts), name), text)


def _group(label: str, part: Frame, *, simulated: bool) -> tuple[str | int | None, ...]:
    correct, _, *figures = _share_cells(part.share("ex"), len(part.rows))
    others = [part.share("possible"), *([part.share("with_question")] if simulated else [])]
    means = [level(asked.mean, metric["unit"]) for metric, asked, _ in part.declared().values()]
    shown = [level(share.share if share else None) for share in others]
    return (markdown(label), len(part.rows), part.answers, correct, *figures, *shown, *means)


def execution(found: Opened) -> Iterator[str]:
    yield "### SQL"
    yield _shares("SQL | questions | %", found.frame, SQL)


# Questions by what happened to them


def grouped(records: Iterable[Record], key: Callable[[Record], str]) -> dict[str, list[Record]]:
    """Return the records by group, the largest first."""
    members: dict[str, list[Record]] = {}
    for record in records:
        members.setdefault(key(record), []).append(record)
    return dict(sorted(members.items(), key=lambda item: (-len(item[1]), item[0])))


def ids(records: Iterable[Record]) -> str:
    """Return the ids of records, of many the first."""
    return markdown(listed([record.id for record in records]), 1_000)


def unsound_gold(found: Opened) -> Iterator[str]:
    """Show the questions whose gold is not sound, by its state; they count in EX all the same."""
    states = grouped((it for it in found.frame.records if it.gold != "ok"), lambda record: record.gold)
    rows = [
        (
            markdown(state),
            WHY.get(state, ""),
            len(own),
            sum(it.match is not None for it in own),
            sum(map(right, own)),
            ids(own),
        )
        for state, own in states.items()
    ]
    if rows:
        yield "### Gold that could not be used"
        yield table("state | meaning | >questions | >scored | >right | ids", rows)


def errors(found: Opened) -> Iterator[str]:
    records = found.frame.records
    lacking = [it for it in records if not answered(it)]
    wrong = [it for it in records if answered(it) and it.match is False]
    for title, noun, own, meanings in (
        ("Questions without an answer", "why", lacking, UNANSWERED),
        ("Wrong answers", "what is wrong", wrong, WRONG),
    ):
        if own:
            yield f"### {title}: {len(own):,}"
            yield table(
                f"{noun} | >questions | >% of these | meaning | ids",
                [
                    (
                        markdown(name),
                        len(each),
                        level(len(each) / len(own)),
                        meanings.get(name, ""),
                        ids(each),
                    )
                    for name, each in grouped(own, category).items()
                ],
            )


# Confidence

COVERAGES = (0.25, 0.5, 0.75, 1.0)
"""Points of the risk-coverage curve that the report shows."""


def confidence(found: Opened) -> Iterator[str]:
    fit = found.calibration
    yield "### Confidence"
    if fit is None:
        yield "Not measurable: no answer is known to be right or wrong."
        return
    auroc = NONE if fit.auroc is None else f"{fit.auroc:.3f}"
    yield (
        f"Over {count(fit.n, 'answer')} known to be right or wrong: mean confidence {fit.confidence:.3f}, "
        f"accuracy {fit.accuracy:.3f}. Brier score {fit.brier:.3f} (0 is perfect; {fit.brier_base:.3f} if "
        f"always {fit.accuracy:.3f}), AUROC {auroc} (0.5 is chance: does confidence tell right answers from "
        "wrong ones?)."
    )
    yield table(
        "confidence | >answers | >mean confidence | >accuracy",
        [
            (f"{it.low:.1f} – {it.high:.1f}", it.n, f"{it.confidence:.3f}", f"{it.accuracy:.3f}")
            for it in fit.bins
        ],
    )
    reached = (next(point for point in fit.curve if point.coverage >= least) for least in COVERAGES)
    yield table(
        ">given only if the confidence is at least | >answers given, % | >of them wrong, %",
        [(_least(it.threshold), level(it.coverage), level(it.risk)) for it in dict.fromkeys(reached)],
    )


def _least(threshold: float) -> str:
    """Return the threshold rounded down: set as ``abstain_below`` it lets these answers through."""
    return f"{math.floor(1000 * threshold) / 1000:.3f}"


# Linking


def linking(found: Opened) -> Iterator[str]:
    """Show the tables and columns of SQL, and of schemas as linked (ReFoRCE, Table 5), against the gold's."""
    records = found.frame.records
    linked = [record for record in records if record.linked]
    parts = {
        "of the answers' SQL": [record.linking for record in records],
        "of linked schemas": [record.schema_linking for record in linked],
        "of all schemas": [record.schema_linking for record in records if linked],
    }
    rows = [
        (
            f"{part}s {what}",
            *mean_cells(mean_of(recalls)),
            *mean_cells(mean_of(getattr(each, f"{part}_precision") for each in known)),
            level(strict.share),
            strict.n,
        )
        for what, own in parts.items()
        if (known := [each for each in own if each is not None])
        for part in ("table", "column")
        for recalls in [[getattr(each, f"{part}_recall") for each in known]]
        for strict in [share_of(recall >= 1 for recall in recalls if recall is not None)]
    ]
    if rows or linked:
        yield "### Linking"
    if rows:
        head = ">mean recall, % | >s.e. | >n | >mean precision, % | >s.e. | >n | >recall is 100 %, % | >of"
        yield table(f"against the gold's | {head}", rows)
    if lacking := found.frame.count(lambda record: record.linking is None and not record.sql):
        yield f"Without SQL, and so in no mean of answers: {count(lacking, 'question')}."
    if linked:
        unknown = sum(record.schema_linking is None for record in linked)
        without = f" {unknown:,} of them in no figure: no gold, or no schema text." if unknown else ""
        yield (f"Schemas linked: {count(len(linked), 'question')}.{without} A whole schema has recall 100 %.")


# Votes


def votes(found: Opened) -> Iterator[str]:
    records = [record for record in found.frame.records if voted(record)]
    if not records:
        return
    cast = [(record, record.vote or {}) for record in records]
    saved = spread_of(vote.get("saved") for _, vote in cast)
    settled = Counter(str(vote["settled"]) for _, vote in cast if vote.get("settled"))
    agreeing = mean_of(_agreeing(record, vote) for record, vote in cast)
    yield "### Votes"
    yield table(
        f"over {count(len(records), 'question')} with a vote | >",
        [
            ("candidates per question, mean", amount(mean_of(len(it.voters) for it in records).mean)),
            ("candidates that agree with the answer, mean share, %", level(agreeing.mean)),
            ("votes that were a tie", sum(bool(vote.get("tie")) for _, vote in cast)),
            *((f"settled by {markdown(how)}", times) for how, times in sorted(settled.items())),
            ("candidates that the stopping rule spared, per question", amount(saved.mean)),
            ("candidates that the stopping rule spared, in all", whole(saved.known_total)),
        ],
    )


def _agreeing(record: Record, vote: Mapping[str, Any]) -> float | None:
    """Return the winner's cluster's share of the last round's candidates; None without a winner."""
    if not record.voters or not vote.get("winner"):
        return None
    clusters = [cluster.get("candidates") or [] for cluster in vote.get("clusters") or []]
    own = next((members for members in clusters if vote.get("winner") in members), [])
    return len(own) / len(record.voters)


# Exploration and repairs

LEVELS: dict[str, Callable[[Effort], bool]] = {
    "no repair": lambda effort: not effort.explored and effort.repairs == 0,
    "one or two repairs": lambda effort: not effort.explored and effort.repairs in (1, 2),
    "three repairs or more": lambda effort: not effort.explored and effort.repairs > 2,
    "with an exploration": lambda effort: effort.explored,
}
"""ReFoRCE, paper 000, Tables 6 and 7; a candidate belongs to one of them."""


def exploration(found: Opened) -> Iterator[str]:
    """Show the effort of candidates by level, if any was repaired or explored."""
    efforts = [it for record in found.frame.records if record.course for it in record.course.efforts]
    if not any(effort.repairs or effort.explored for effort in efforts):
        return
    rows = [
        (
            title,
            len(own),
            amount(calls / len(own)),
            amount(sum(effort.queries for effort in own) / len(own)),
            amount(sum(effort.tokens for effort in own) / calls if calls else None),
        )
        for title, fits in LEVELS.items()
        if (own := [effort for effort in efforts if fits(effort)])
        for calls in [sum(effort.calls for effort in own)]
    ]
    yield "### Exploration and repairs"
    known = [name for name in EXPLORATION if (share := found.frame.share(name)) and share.n]
    yield _shares("questions | here | %", found.frame, known)
    yield table(
        "a candidate | >candidates | >model calls each | >database calls each | >tokens a model call", rows
    )


# Costs

ACCOUNTS = ("model_calls", "input_tokens", "output_tokens", "queries")


def costs(found: Opened) -> Iterator[str]:
    ledgers = [record.usage for record in found.frame.records if record.usage]
    yield "### Cost per question"
    if not ledgers:
        yield "Not known: no record has a ledger."
        return
    head = f"over {count(len(ledgers), 'question')} | >mean | >p50 | >p95 | >highest | >total"
    yield table(head, [_cost(found.frame, name) for name in costs_known(found.frame.records)])
    for noun in ("agent", "model"):
        shares = [share for ledger in ledgers for share in (ledger.get(f"by_{noun}") or {}).items()]
        accounts = [_account(name, [own for each, own in shares if each == name]) for name in dict(shares)]
        accounts.sort(key=lambda account: (-account[0], account[1]))
        if accounts:
            head = f"{noun} | >model calls | >tokens in | >tokens out | >database calls | >price"
            rows = [(markdown(name), whole(calls), *rest) for calls, name, *rest in accounts]
            yield folded(f"by {noun}, all questions together", table(head, rows))


def _account(name: str, ledgers: list[Mapping[str, Any]]) -> tuple[float, str, str, str, str, str]:
    """Return what an agent or a model used in all questions: its calls, its name, the other cells."""
    calls, *others = (
        spread_of(number(own.get(key)) for own in ledgers).known_total or 0.0 for key in ACCOUNTS
    )
    taken, given, queries = map(whole, others)
    return (
        calls,
        name,
        taken,
        given,
        queries,
        price(spread_of(number(it.get("usd")) for it in ledgers), "total"),
    )


def _cost(frame: Frame, name: str) -> tuple[str, ...]:
    (title, unit), spread = COSTS[name], frame.cost(name)
    if unit == "dollars":
        return (title, *(price(spread, part) for part in PARTS))
    shown = size if unit == "bytes" else amount
    summed = shown if unit in ("bytes", "seconds") else whole
    each = map(shown, (spread.mean, spread.p50, spread.p95))
    total = NONE if unit == "tokens a call" else summed(spread.known_total)
    return (title + ", s" * (unit == "seconds"), *each, summed(spread.high), total)


SECTIONS: tuple[Section, ...] = (
    scores, one_question, metrics, groups, unsound_gold, execution, errors, confidence, linking, votes,
    exploration, costs,
)  # fmt: skip
"""The sections of a report, in its order."""
