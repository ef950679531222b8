"""Values of a result as people read them; JSON and CSV keep all digits."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

DIGITS = 6
"""Decimals of a number that is shown; of one below 1, digits that say something."""


def readable(value: Any) -> str:
    """Return a value as text: ``257624.1`` for 257624.10000000003, ``5`` for 5.0, ``NULL`` for None.

    Numbers inside nested values, which are JSON, are rounded alike.
    """
    if value is None:
        return "NULL"
    shown = _rounded(value)
    if isinstance(shown, float) and 1e-9 <= abs(shown) < 1e16:  # Python writes 0.0000123 as 1.23e-05
        return format(Decimal(repr(shown)), "f")
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, default=str)


def size_text(size: int) -> str:
    """``812 B``, ``1.2 KiB``, ``210 MiB``, ``3 GiB``: bytes by the units that options are given in."""
    amount, units = float(size), ["B", "KiB", "MiB", "GiB", "TiB"]
    while amount >= 999.5 and len(units) > 1:
        amount /= 1024
        del units[0]
    return f"{amount:.3g} {units[0]}" if amount < 999.5 else f"{amount:,.0f} {units[0]}"


def _rounded(value: Any) -> Any:
    if isinstance(value, float) and math.isfinite(value):
        near = round(value, DIGITS) if abs(value) >= 1 else float(f"{value:.{DIGITS}g}")
        return int(near) if near.is_integer() and abs(near) < 1e16 else near
    if isinstance(value, dict):
        return {str(key): _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value
