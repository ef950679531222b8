"""DuckDB and data files."""
