"""Answers that other systems gave and that were recorded: scored, and voted on again."""
