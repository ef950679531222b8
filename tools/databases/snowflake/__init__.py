"""Snowflake."""
