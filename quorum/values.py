"""Values as people write them in flags, variables and files: times, sizes, lists, names, places."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator
from pydantic_settings import NoDecode

from quorum.knowledge.errors import ConfigurationError

AUTO = "auto"
"""As a strategy or a stopping rule: the recipe's own."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def seconds(value: Any) -> Any:
    """``90``, ``90s``, ``5m``, ``1h30m``, ``500ms`` as seconds; anything else as it is."""
    if not isinstance(value, str):
        return value
    parts = re.findall(r"([0-9.]+)\s*(ms|s|m|h)", value.strip().lower())
    if parts and "".join(number + unit for number, unit in parts) == re.sub(r"\s", "", value.lower()):
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    return value


def size(value: Any) -> Any:
    """``64MiB``, ``10 MB``, ``4096`` as bytes; anything else as it is."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-zA-Z]*)\s*", value) if isinstance(value, str) else None
    if found is None or found[2].lower() not in _BYTES:
        return value
    return int(float(found[1]) * _BYTES[found[2].lower()])


def items(value: Any) -> Any:
    """A comma list as a list; anything else as it is."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def switches(value: Any) -> Any:
    """``name=value`` pairs as a dict, each value JSON where it is (``false``, ``3``, ``["a"]``), else a text.

    Raises:
        ValueError: One is no pair.
    """
    if not isinstance(value, (tuple, list)):
        return value
    pairs = {}
    for pair in value:
        name, equals, text = str(pair).partition("=")
        if not (name.strip() and equals):
            raise ValueError(f"{pair!r} is not NAME=VALUE")
        try:
            pairs[name.strip()] = json.loads(text)
        except ValueError:
            pairs[name.strip()] = text.strip()
    return pairs


def strategy(name: str) -> str:
    """A name that the consensus knows, or ``auto``.

    Raises:
        ValueError: It is neither.
    """
    from quorum.graph.strategies import find_strategy

    if name == AUTO:
        return name
    try:
        find_strategy(name)
    except ConfigurationError as error:
        raise ValueError(str(error).removesuffix(".")) from None
    return name


def stopping(name: str) -> str:
    """A stopping rule, or ``auto``.

    Raises:
        ValueError: It is neither.
    """
    from quorum.graph.stopping import find_stopping

    if name == AUTO:
        return name
    try:
        find_stopping(name)
    except ConfigurationError as error:
        raise ValueError(str(error).removesuffix(".")) from None
    return name


def place(path: Path) -> Path:
    """A path with ``~`` spelt out.

    Raises:
        ValueError: There is no such home folder.
    """
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError(f"{path}: {error}".removesuffix(".")) from None


def prices(given: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Prices by model, each checked, so that a misspelt key is told before a model is asked.

    Raises:
        ValueError: One is not ``{"input": …, "cached": …, "output": …}``.
    """
    from quorum.tools.models.prices import as_price

    try:
        for name, price in given.items():
            as_price(name, price)
    except ConfigurationError as error:
        raise ValueError(str(error).removesuffix(".")) from None
    return given


Seconds = Annotated[float, BeforeValidator(seconds)]
Bytes = Annotated[int, BeforeValidator(size)]
Names = Annotated[list[str], NoDecode, BeforeValidator(items)]
Strategy = Annotated[str, AfterValidator(strategy)]
StoppingRule = Annotated[str, AfterValidator(stopping)]
Place = Annotated[Path, AfterValidator(place)]
Switches = Annotated[dict[str, Any], BeforeValidator(switches)]
Prices = Annotated[dict[str, dict[str, float]], AfterValidator(prices)]
