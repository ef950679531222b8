"""The weighted vote drawn: weights, error and regret over the questions, as in SSEV's Figures 15-20."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import cycle
from pathlib import Path

from quorum.evals.paths import write_bytes
from quorum.evals.recorded.weights import DRAWN_EXPERT, DRAWN_ONCE, OnlineWeights
from quorum.evals.reports.format import one_line
from quorum.evals.reports.vega import Spec, axis, draw, legend, over

VOTES = {
    "wma": ("WMA (weighted majority)", "#6aa5e0"),
    DRAWN_EXPERT: ("RWMA (expected)", "#d95f02"),
    DRAWN_ONCE: ("RWMA (drawn once)", "#f4b183"),
    "sql_majority": ("naive (majority of SQL)", "#7a7a7a"),
    "majority": ("majority of results", "#1b9e77"),
}
"""The votes that the paper compares: label and colour."""

EXPERTS = ("#4c1d6b", "#b8860b", "#a5173c", "#2a7f9e", "#5d7a1f", "#8c564b", "#222222", "#c0559e")
DASHED, DOTTED = (5, 3), (1, 3)
FORMS = ("svg", "png")

Line = tuple[str, tuple[int, ...], Iterable[float]]
"""Colour, dashes, and the values after each question."""


def draw_curves(learned: OnlineWeights, folder: Path) -> list[Path]:
    """Write ``weights``, ``error`` and ``regret`` as SVG and PNG; returns the files.

    Raises:
        ConfigurationError: The extra ``plots`` is not installed, or the folder cannot be written to.
    """
    written = []
    for name, (title, made) in CURVES.items():
        for form in FORMS:
            path = folder / f"{name}.{form}"
            picture = draw(made(learned) | {"title": title}, form)
            write_bytes(path, picture)
            written.append(path)
    return written


def weights(learned: OnlineWeights) -> Spec:
    """Figures 15, 17, 19: how fast the weight goes to the stronger models."""
    lines: dict[str, Line] = {
        one_line(expert): (colour, (), learned.shares(expert))
        for expert, colour in zip(learned.experts, cycle(EXPERTS), strict=False)
    }
    lines["unweighted vote"] = ("#7a7a7a", DOTTED, [1 / len(learned.experts)] * (learned.questions + 1))
    return _curves(lines, "share of all weight", (0, 1), first=0)


def error(learned: OnlineWeights) -> Spec:
    """Figures 16, 18, 20: error rate so far, of the votes and of each expert."""
    lines: dict[str, Line] = {
        label: (colour, (), [each.mistakes / each.rounds for each in learned.bounds(vote)])
        for vote, (label, colour) in VOTES.items()
    }
    for (expert, lost), colour in zip(learned.experts.items(), cycle(EXPERTS), strict=False):
        rates = [sum(lost[:number]) / number for number in range(1, len(lost) + 1)]
        lines[f"{one_line(expert)} alone"] = (colour, DASHED, rates)
    lines |= _bound(learned, DRAWN_EXPERT, 0, 1) | _bound(learned, "wma", 0, 1)
    return _curves(lines, "mistakes / questions", (0, 1))


def regret(learned: OnlineWeights) -> Spec:
    """Figures 16, 18, 20: mistakes beyond those of the best expert so far, per question."""
    lines: dict[str, Line] = {
        label: (colour, (), [each.regret or 0.0 for each in learned.bounds(vote)])
        for vote, (label, colour) in VOTES.items()
    }
    low, high = (edge(edge(values) for _, _, values in lines.values()) for edge in (min, max))
    top = high + max(0.05, 0.2 * (high - low))
    lines |= _bound(learned, DRAWN_EXPERT, 1, top)
    return _curves(lines, "(mistakes - best expert's) / questions", (low - 0.05, top))


CURVES: dict[str, tuple[str, Callable[[OnlineWeights], Spec]]] = {
    "weights": ("Weights of the experts (WMA and RWMA)", weights),
    "error": ("Error rate so far", error),
    "regret": ("Average regret against the best expert so far", regret),
}


def _curves(lines: Mapping[str, Line], title: str, domain: tuple[float, float], first: int = 1) -> Spec:
    low, high = domain  # a clipped line would be drawn under another id each time
    rows = [
        {"question": number, "line": label, "value": value if low <= value <= high else None}
        for label, (_, _, values) in lines.items()
        for number, value in enumerate(values, first)
    ]
    looks = {label: (colour, dashes) for label, (colour, dashes, _) in lines.items()}
    return over(
        rows,
        height=190,
        mark={"type": "line", "point": False, "interpolate": "linear" if first else "step-after"},
        encoding={
            "x": axis("question", "question, in the order of ids", axis={"tickMinStep": 1}),
            "y": axis("value", title, scale={"domain": list(domain), "nice": False}),
            **legend("line", looks),
        },
    )


def _bound(learned: OnlineWeights, vote: str, less: int, top: float) -> dict[str, Line]:
    """Return a vote's bound per question, ``less`` times the best expert's mistakes; {} if none holds."""
    bounds = learned.bounds(vote)
    limits = [each.wma if vote == "wma" else each.rwma for each in bounds]
    values = [(limit - less * it.best) / it.rounds for limit, it in zip(limits, bounds, strict=True)]
    if learned.no_bound(vote) or min(values) >= top:
        return {}
    label, colour = VOTES[vote]
    return {f"bound of {label.split()[0]}": (colour, DOTTED, values)}
