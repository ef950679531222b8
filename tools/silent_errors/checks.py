"""The checks, those first that are rarely wrong to doubt: in a long query not all are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from quorum.tools.silent_errors import (
    days,
    division,
    fan_out,
    literals,
    lost_rows,
    names,
    nulls,
    text_values,
    ties,
)
from quorum.tools.silent_errors.query import Query
from quorum.tools.silent_errors.suspicion import Look, Trial

Check = Callable[[Query], Iterator[Look | Trial]]

ALL: tuple[Check, ...] = (
    fan_out.trials,
    division.trials,
    names.trials,
    days.trials,
    ties.trials,
    lost_rows.trials,
    nulls.trials,
    text_values.trials,
    literals.trials,
)
