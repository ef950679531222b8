"""The sections of a report on one evaluation, in Markdown; the page shows the same.

A section yields a heading and what belongs under it, piece by piece, or nothing if it has nothing to say. Its
figures are plain data (``DATA``), which `--json` prints.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from quorum.evals.records import Effort, Linking, Record
from quorum.evals.reports import taxonomy
from quorum.evals.reports.calibration import Calibration, RiskPoint
from quorum.evals.reports.evaluations import Opened
from quorum.evals.reports.format import (
    LONG,
    NONE,
    PARTS,
    Field,
    amount,
    count,
    field_table,
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
    costs_known,
    number,
    right,
    share_of_meanings,
    tokens_per_call,
    voted,
)
from quorum.evals.reports.statistics import Mean, Share, mean_of, share_of, spread_of

Section: TypeAlias = Callable[[Opened], Iterator[str]]
Rows: TypeAlias = list[dict[str, Any]]

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
        means = {"without a question": False, "with one question": True}
        yield table(
            "in the mean over all readings that the user may mean | >% | >s.e. | >questions",
            [
                (
                    title,
                    *mean_cells(
                        mean_of(
                            share_of_meanings(it, question=question) if it else 0.0 for _, it in frame.rows
                        )
                    ),
                )
                for title, question in means.items()
            ],
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


def gold(found: Opened) -> Rows:
    """Return the questions whose gold is not sound, by its state; they count in EX all the same."""
    records = [record for record in found.frame.records if record.gold != "ok"]
    return [
        {
            "state": state,
            "meaning": WHY.get(state, ""),
            "ids": [record.id for record in own],
            "scored": sum(record.match is not None for record in own),
            "right": sum(map(right, own)),
        }
        for state, own in sorted(grouped(records, lambda record: record.gold).items())
    ]


def grouped(records: Iterable[Record], key: Callable[[Record], str]) -> dict[str, list[Record]]:
    """Return the records by group, in the order in which groups appear."""
    members: dict[str, list[Record]] = {}
    for record in records:
        members.setdefault(key(record), []).append(record)
    return members


IDS: tuple[Field, ...] = (("ids", "ids", listed),)
MEANING: tuple[Field, ...] = (("meaning", "meaning", markdown),)
GOLD: tuple[Field, ...] = (
    ("state", "state", markdown), *MEANING, ("ids", ">questions", len), ("scored", ">scored", whole),
    ("right", ">right", whole), *IDS,
)  # fmt: skip


def unsound_gold(found: Opened) -> Iterator[str]:
    if rows := gold(found):
        yield "### Gold that could not be used"
        yield field_table(GOLD, rows)


def unanswered(found: Opened) -> Rows:
    """Return the questions without an answer by kind of error, the most frequent first."""
    return taxonomy.unanswered(found.frame.records)


def wrong(found: Opened) -> Rows:
    """Return the wrong answers by the kind of mistake, the most frequent first."""
    return taxonomy.wrong(found.frame.records)


def errors(found: Opened) -> Iterator[str]:
    for title, noun, rows in (
        ("Questions without an answer", "why", unanswered(found)),
        ("Wrong answers", "what is wrong", wrong(found)),
    ):
        if total := sum(len(row["ids"]) for row in rows):
            fields: tuple[Field, ...] = (
                ("name", noun, markdown), ("ids", ">questions", len), ("share", ">% of these", level),
            )  # fmt: skip
            yield f"### {title}: {total:,}"
            yield field_table((*fields, *MEANING, *IDS), rows)


# Confidence

COVERAGES = (0.25, 0.5, 0.75, 1.0)
"""Points of the risk-coverage curve that the report shows."""


def confidence(found: Opened) -> Iterator[str]:
    fit = found.calibration
    yield "### Confidence"
    if fit is None:
        yield "Not measurable: no answer is known to be right or wrong."
        return
    yield (
        f"Over {count(fit.n, 'answer')} known to be right or wrong: mean confidence "
        f"{fit.confidence:.3f}, accuracy {fit.accuracy:.3f}."
    )
    orders = f"{fit.aurc_best:.3f} in the best order, {1 - fit.accuracy:.3f} in a random one"
    yield table(
        "measure (lower is better) | >here | for comparison",
        [
            ("Brier score", f"{fit.brier:.3f}", f"{fit.brier_base:.3f} if always {fit.accuracy:.3f}"),
            (
                "AUROC (higher is better)",
                "–" if fit.auroc is None else f"{fit.auroc:.3f}",
                "0.5 is chance: does confidence tell right answers from wrong ones?",
            ),
            ("expected calibration error", f"{fit.ece:.3f}", "0 is perfect"),
            ("area under the risk-coverage curve", f"{fit.aurc:.3f}", orders),
        ],
    )
    yield table(
        "confidence | >answers | >mean confidence | >accuracy",
        [
            (f"{it.low:.1f} – {it.high:.1f}", it.n, f"{it.confidence:.3f}", f"{it.accuracy:.3f}")
            for it in fit.bins
            if it.n
        ],
    )
    yield table(
        ">given only if the confidence is at least | >answers given, % | >of them wrong, %",
        [(_least(it.threshold), level(it.coverage), level(it.risk)) for it in _read_off(fit)],
    )


def _read_off(fit: Calibration) -> list[RiskPoint]:
    """Return the first points of the curve that cover at least as much as ``COVERAGES``, each once."""
    reached = (
        next((point for point in fit.curve if point.coverage >= coverage), fit.curve[-1])
        for coverage in COVERAGES
    )
    return list(dict.fromkeys(reached))


def _least(threshold: float) -> str:
    """Return the threshold rounded down: set as ``abstain_below`` it lets these answers through."""
    return f"{math.floor(1000 * threshold) / 1000:.3f}"


# Linking


def _linked(what: str, linkings: Iterable[Linking | None]) -> Rows:
    """Return the recall and precision of tables and of columns; ``strict`` is a recall of 1."""
    found = [linking for linking in linkings if linking is not None]
    return [
        {
            "what": f"{what}{part}s",
            "recall": mean_of(recalls),
            "precision": mean_of(getattr(each, f"{part}_precision") for each in found),
            "strict": share_of(recall >= 1 for recall in recalls if recall is not None),
        }
        for part in ("table", "column")
        if found and (recalls := [getattr(each, f"{part}_recall") for each in found])
    ]


def linking(found: Opened) -> Rows:
    """Return the linking of the answers' SQL: its tables and columns against those of the gold SQL."""
    return _linked("", (record.linking for record in found.frame.records))


def schema_linking(found: Opened) -> Rows:
    """Return the linking of large schemas (ReFoRCE, Table 5): of those linked, and recall over all questions.

    A question that saw the whole schema has a recall of 1.
    """
    records = found.frame.records
    if not any(record.linked for record in records):
        return []
    every = (record.schema_linking for record in records)
    recalls = (dataclasses.replace(it, table_precision=None, column_precision=None) for it in every if it)
    linked = (record.schema_linking for record in records if record.linked)
    return (_linked("linked: ", linked) + _linked("all: ", recalls)) or [{}]


LINKING: tuple[Field, ...] = (
    ("what", "", str),
    ("recall", ">mean recall, % | >s.e. | >n", mean_cells),
    ("precision", ">mean precision, % | >s.e. | >n", mean_cells),
    ("strict", ">recall is 100 %, % | >of", lambda share: (level(share.share), share.n)),
)


def answers_linking(found: Opened) -> Iterator[str]:
    if not (rows := linking(found)):
        return
    yield "### Linking of the answers' SQL"
    both = found.frame.count(lambda record: record.linking)
    lacking = found.frame.count(lambda record: record.linking is None and not record.sql)
    verb = "is" if lacking == 1 else "are"
    without = f" {count(lacking, 'question')} without SQL {verb} in no mean." if lacking else ""
    yield (
        "Tables and columns that the SQL uses against those of the gold SQL, in "
        f"{count(both, 'question')} with both.{without}"
    )
    yield field_table(LINKING, rows)


def schemas_linked(found: Opened) -> Iterator[str]:
    if not (rows := schema_linking(found)):
        return
    yield "### Schema linking"
    linked = found.frame.count(lambda record: record.linked)
    unknown = found.frame.count(lambda record: record.linked and record.schema_linking is None)
    without = f" {unknown:,} of them in no figure: no gold, or no schema text." if unknown else ""
    yield (
        "What the schema as linked keeps of the tables and columns of the gold: "
        f"{count(linked, 'question')} linked.{without} "
        "In the mean over all, a question that saw the whole schema has a recall of 100 %."
    )
    if rows != [{}]:
        yield field_table(LINKING, rows)


# Votes and experts


def votes(found: Opened) -> dict[str, Any]:
    """Return how candidates voted, over the questions with a vote.

    ``agreeing`` is the share of a question's candidates in the winner's cluster. ``settled`` counts the votes
    that were settled beyond counting (``judge``, ``user``).
    """
    records = [record for record in found.frame.records if voted(record)]
    cast = [(record, record.vote or {}) for record in records]
    return {
        "questions": len(records),
        "candidates": mean_of(len(record.voters) for record in records),
        "agreeing": mean_of(_agreeing(record, vote) for record, vote in cast),
        "ties": found.frame.share("ties"),
        "saved": spread_of(vote.get("saved") for _, vote in cast),
        "settled": dict(
            sorted(Counter(str(vote["settled"]) for _, vote in cast if vote.get("settled")).items())
        ),
    }


def _agreeing(record: Record, vote: Mapping[str, Any]) -> float | None:
    """Return the winner's cluster's share of the last round's candidates; None without a winner."""
    if not record.voters or not vote.get("winner"):
        return None
    clusters = [cluster.get("candidates") or [] for cluster in vote.get("clusters") or []]
    own = next((members for members in clusters if vote.get("winner") in members), [])
    return len(own) / len(record.voters)


def how_they_voted(found: Opened) -> Iterator[str]:
    vote = votes(found)
    if not vote["questions"]:
        return
    yield "### Votes"
    yield table(
        f"over {count(vote['questions'], 'question')} with a vote | >",
        [
            ("candidates per question, mean", amount(vote["candidates"].mean)),
            ("candidates that agree with the answer, mean share, %", level(vote["agreeing"].mean)),
            ("votes that were a tie", vote["ties"].count),
            *((f"settled by {markdown(how)}", times) for how, times in vote["settled"].items()),
            ("candidates that the stopping rule spared, per question", amount(vote["saved"].mean)),
            ("candidates that the stopping rule spared, in all", whole(vote["saved"].known_total)),
        ],
    )


# Exploration and repairs

LEVELS: dict[str, Callable[[Effort], bool]] = {
    "no repair": lambda effort: not effort.explored and effort.repairs == 0,
    "one or two repairs": lambda effort: not effort.explored and effort.repairs in (1, 2),
    "three repairs or more": lambda effort: not effort.explored and effort.repairs > 2,
    "with an exploration": lambda effort: effort.explored,
}
"""ReFoRCE, paper 000, Tables 6 and 7; a candidate belongs to one of them."""


def levels(found: Opened) -> Rows:
    """Return the effort of candidates by level; empty if none was repaired and nothing explored."""
    efforts = [it for record in found.frame.records if record.course for it in record.course.efforts]
    if not any(effort.repairs or effort.explored for effort in efforts):
        return []
    return [
        {
            "title": title,
            "candidates": len(own),
            "calls": mean_of(effort.calls for effort in own),
            "queries": mean_of(effort.queries for effort in own),
            "tokens": sum(effort.tokens for effort in own) / calls if calls else None,
        }
        for title, fits in LEVELS.items()
        if (own := [effort for effort in efforts if fits(effort)])
        for calls in [sum(effort.calls for effort in own)]
    ]


def _mean_amount(mean: Mean) -> str:
    return amount(mean.mean)


EFFORTS: tuple[Field, ...] = (
    ("title", "a candidate", str), ("candidates", ">candidates", whole),
    ("calls", ">model calls each", _mean_amount), ("queries", ">database calls each", _mean_amount),
    ("tokens", ">tokens a model call", amount),
)  # fmt: skip


def exploration(found: Opened) -> Iterator[str]:
    if rows := levels(found):
        yield "### Exploration and repairs"
        known = [name for name in EXPLORATION if (share := found.frame.share(name)) and share.n]
        yield _shares("questions | here | %", found.frame, known)
        yield field_table(EFFORTS, rows)


# Costs and speed


def by_agent(found: Opened) -> Rows:
    """Return what each agent used in all questions together, the one with the most calls first."""
    return _accounts(found, "by_agent")


def by_model(found: Opened) -> Rows:
    """Return what each model used. Ledgers of earlier versions have no account of a model."""
    return _accounts(found, "by_model")


def _accounts(found: Opened, by: str) -> Rows:
    ledgers: dict[str, list[dict[str, Any]]] = {}
    for record in found.frame.records:
        for name, usage in (record.usage.get(by) or {}).items():
            ledgers.setdefault(name, []).append(usage)
    rows: Rows = [{"name": name} | _account(own) for name, own in ledgers.items()]
    return sorted(rows, key=lambda row: (-row["model_calls"], row["name"]))


def _account(ledgers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    amounts = [key for key, _, _ in ACCOUNTS if key not in ("name", "tokens_per_call", "usd")]
    sums = {key: spread_of(number(usage.get(key)) for usage in ledgers) for key in (*amounts, "usd")}
    used = {key: int(sums[key].known_total or 0) for key in amounts}
    return used | {"usd": sums["usd"].total, "tokens_per_call": tokens_per_call(used)}


READ = ("read_bytes", "estimated_bytes")
ACCOUNTS: tuple[Field, ...] = (
    ("name", "", markdown), ("model_calls", ">model calls", whole), ("input_tokens", ">tokens in", whole),
    ("cached_tokens", ">of them cached", whole), ("output_tokens", ">tokens out", whole),
    ("tokens_per_call", ">tokens a call", amount), ("queries", ">database calls", whole),
    ("read_bytes", ">read", size), ("estimated_bytes", ">read, estimated", size),
    ("usd", ">price", lambda usd: "unknown" if usd is None else f"${usd:,.4f}"),
)  # fmt: skip


def costs(found: Opened) -> Iterator[str]:
    ledgers = found.frame.count(lambda record: record.usage)
    yield "### Cost per question"
    if not ledgers:
        yield "Not known: no record has a ledger."
        return
    head = f"over {count(ledgers, 'question')} | >mean | >p50 | >p95 | >highest | >total"
    yield table(head, [_cost(found.frame, name) for name in costs_known(found.frame.records)])
    for noun, rows in (("agent", by_agent(found)), ("model", by_model(found))):
        read = any(row[key] for row in rows for key in READ)
        fields = [(key, head or noun, show) for key, head, show in ACCOUNTS if read or key not in READ]
        if rows:
            yield folded(f"by {noun}, all questions together", field_table(fields, rows))


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
    scores, one_question, metrics, groups, unsound_gold, execution, errors, confidence, answers_linking,
    schemas_linked, how_they_voted, exploration, costs,
)  # fmt: skip
"""The sections of a report, in its order."""

DATA: tuple[Callable[[Opened], Any], ...] = (
    gold, unanswered, wrong, linking, schema_linking, votes, levels, by_agent, by_model,
)  # fmt: skip
"""The figures behind them that are not columns of the table of questions; `--json` names them so."""
