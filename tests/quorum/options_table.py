"""The README's table of options, as declared; ``python -m tests.quorum.options_table`` rewrites it."""

from __future__ import annotations

import re
from pathlib import Path

from quorum.settings import Settings

README = Path(__file__).parents[2] / "README.md"
HEAD = "| setting | default | meaning |\n|---|---|---|\n"


def table() -> str:
    """One row an option."""
    rows = []
    for name, option in Settings.declared().items():
        value = Settings.model_fields[name].default
        default = option.shown(value) or "–"
        default = f"`{default}`" if value and isinstance(value, str | Path) and not option.unset else default
        rows.append(f"| `{name}` | {default} | {option.explanation} |\n")
    return HEAD + "".join(rows)


def with_table(text: str) -> str:
    """A text with the table in it as it should be."""
    return re.sub(re.escape(HEAD) + r"(?:\|.*\n)*", lambda _: table(), text, count=1)


if __name__ == "__main__":
    README.write_text(with_table(README.read_text()))
