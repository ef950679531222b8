"""The outside world: databases, SQL analysis, guard, results, models, ledger."""
