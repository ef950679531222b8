"""BIRD's rules on the rows of two results: set match and soft F1.

Source: bird-bench/mini_dev (Li et al., 2024), ``evaluation_ex.py`` and ``evaluation_f1.py`` of commit
2932a2b, which pairs rows by their place; an earlier one took the order of Python's sets, which is chance. Set
match is that of BIRD's first program (2023) as well.
"""

from __future__ import annotations

from quorum.evals.scorers.rows import Rows


def set_difference(gold: Rows, found: Rows) -> str:
    """How the set of rows differs from the gold's, in words; empty if they are the same.

    Order and repetition of rows do not count; order of columns does, their names do not.
    """
    expected, given = set(gold), set(found)
    if expected == given:
        return ""
    missing, surplus = len(expected - given), len(given - expected)
    return f"{missing} of the gold's {len(expected)} different rows are missing, {surplus} are surplus"


def soft_f1(gold: Rows, found: Rows) -> float:
    """F1 of the cells, rows paired by their place once repeated ones are left out, 0 to 1.

    Within a pair, each value of one row is looked for anywhere in the other, and weighs one part in the
    number of the gold's columns; a row without a partner weighs 1. Two empty results score 1.
    """
    if not gold and not found:
        return 1.0
    expected, given = list(dict.fromkeys(gold)), list(dict.fromkeys(found))
    hits = surplus = missing = 0.0
    for right, row in zip(expected, given, strict=False):
        hit = sum(value in right for value in row)
        hits += hit / len(right)
        surplus += (len(row) - hit) / len(right)
        missing += sum(value not in row for value in right) / len(right)
    surplus += max(0, len(given) - len(expected))
    missing += max(0, len(expected) - len(given))
    precision = hits / (hits + surplus) if hits else 0.0
    recall = hits / (hits + missing) if hits else 0.0
    return 2 * precision * recall / (precision + recall) if hits else 0.0
