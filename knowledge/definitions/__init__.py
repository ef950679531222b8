"""Definitions that a team keeps outside its database: descriptions, keys, metrics."""
