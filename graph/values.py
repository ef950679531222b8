"""Types of options as people write them in flags, variables, files and forms: times, sizes, lists, places."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from quorum.graph.stopping import find_stopping
from quorum.graph.strategies import find_strategy
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.urls import urls_in

AUTO = "auto"
"""As a strategy or a stopping rule: the recipe's own."""

NEVER, ALWAYS, COSTLY = "never", "always", "costly"
"""Before which queries the user is asked, beside sizes."""
COSTLY_BYTES = 10 * 2**30
"""What ``costly`` means: 6 US cents where a TiB read costs 6.25 dollars, seconds of a fast disk."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_BYTES |= {"tb": 10**12, "tib": 2**40}


def _seconds(value: Any) -> Any:
    """``90``, ``90s``, ``5m``, ``1h30m``, ``500ms`` as seconds; anything else as it is."""
    if not isinstance(value, str):
        return value
    parts = re.findall(r"([0-9.]+)\s*(ms|s|m|h)", value.strip().lower())
    if parts and "".join(number + unit for number, unit in parts) == re.sub(r"\s", "", value.lower()):
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    return value


def _size(value: Any) -> Any:
    """``64MiB``, ``10 MB``, ``4096`` as bytes; anything else as it is."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-zA-Z]*)\s*", value) if isinstance(value, str) else None
    if found is None or found[2].lower() not in _BYTES:
        return value
    return int(float(found[1]) * _BYTES[found[2].lower()])


def _switched(value: Any) -> Any:
    """Return ``on`` or ``off`` for a truth value, or a word for one."""
    word = str(value).strip().lower()
    return "on" if word in ("true", "yes", "1") else "off" if word in ("false", "no", "0") else word


def _approval(value: Any) -> Any:
    """One of the words in small letters, or a size as it was written."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    word = value.strip().lower() if isinstance(value, str) else value
    return word if word in (NEVER, ALWAYS, COSTLY) else value


def approval_bytes(value: str) -> int | None:
    """Estimates above how many bytes are asked for; None for ``never`` and ``always``.

    Raises:
        ConfigurationError: It is neither one of the words nor a size.
    """
    if value in (NEVER, ALWAYS):
        return None
    size = COSTLY_BYTES if value == COSTLY else _size(value)
    if not isinstance(size, int):
        raise ConfigurationError(f"{value!r} is neither {NEVER}, {ALWAYS}, {COSTLY} nor a size such as 1GiB")
    return size


def _names(value: Any) -> Any:
    """A comma list as a list; anything else as it is."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _databases(value: Any) -> Any:
    """A comma list of databases as a list; anything else as it is."""
    return urls_in(value) if isinstance(value, str) else value


def _once(names: list[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _json(value: Any) -> Any:
    """JSON text as its value, or ValueError; anything but a text as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None


def _pairs(value: Any) -> Any:
    """``name=value`` pairs as a dict, each value JSON where it is (``false``, ``3``, ``["a"]``), else a text.

    Raises:
        ValueError: One is no pair, or a single text is no JSON.
    """
    if not isinstance(value, (tuple, list)):
        return _json(value)
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


def _checked(check: Callable[[Any], object], value: Any) -> Any:
    """``value``, if ``check`` raises no ConfigurationError for it."""
    try:
        check(value)
    except ConfigurationError as error:
        raise ValueError(str(error).removesuffix(".")) from None
    return value


def _check_unless_auto(check: Callable[[str], object], name: str) -> None:
    if name != AUTO:
        check(name)


def _check_prices(given: dict[str, dict[str, float]]) -> None:
    """Report a misspelt key before a model is asked."""
    from quorum.tools.models.prices import as_price

    for name, price in given.items():
        as_price(name, price)


def _expanded(path: Path | None) -> Path | None:
    """A path with ``~`` spelt out."""
    try:
        return path.expanduser() if path else None
    except RuntimeError as error:
        raise ValueError(f"{path}: {error}".removesuffix(".")) from None


Seconds = Annotated[float, Field(gt=0), BeforeValidator(_seconds)]
Age = Annotated[float, Field(ge=0), BeforeValidator(_seconds)]
Bytes = Annotated[int, BeforeValidator(_size)]
Names = Annotated[list[str], BeforeValidator(_names), AfterValidator(_once)]
DatabaseUrls = Annotated[list[str], BeforeValidator(_databases), AfterValidator(_once)]
Switches = Annotated[dict[str, Any], BeforeValidator(_pairs)]
Prices = Annotated[
    dict[str, dict[str, float]], BeforeValidator(_pairs), AfterValidator(partial(_checked, _check_prices))
]
RoleModels = Annotated[dict[str, str], BeforeValidator(_pairs)]
StrategyName = Annotated[str, AfterValidator(partial(_checked, partial(_check_unless_auto, find_strategy)))]
Clarify = Annotated[Literal["off", "on", "always"], BeforeValidator(_switched)]
ApprovalRule = Annotated[str, BeforeValidator(_approval), AfterValidator(partial(_checked, approval_bytes))]
StoppingRule = Annotated[str, AfterValidator(partial(_checked, partial(_check_unless_auto, find_stopping)))]
UserPath = Annotated[Path, AfterValidator(_expanded)]
MaybePath = Annotated[Path | None, AfterValidator(_expanded), BeforeValidator(lambda path: path or None)]
"""A path, or none: a form gives an empty text for none."""
