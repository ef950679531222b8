"""Asking a suite's questions: many at a time, each record kept as it ends, resumable after any stop."""
