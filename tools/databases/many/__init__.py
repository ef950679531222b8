"""Several databases in one question."""
