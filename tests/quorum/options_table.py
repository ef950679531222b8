"""The table of options in ``docs/settings.md``; ``python -m tests.quorum.options_table`` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path

from quorum.settings import Settings

SETTINGS = Path(__file__).parents[2] / "docs" / "settings.md"
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
    SETTINGS.write_text(with_table(SETTINGS.read_text()))
