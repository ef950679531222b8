"""DuckDB and data files."""


def text(value: str) -> str:
    """Return a value as an SQL string."""
    return "'" + value.replace("'", "''") + "'"
