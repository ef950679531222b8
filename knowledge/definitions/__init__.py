"""What a team has defined beside its database: descriptions, keys, metrics."""
