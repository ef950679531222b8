"""Benchmarks: datasets, metrics, runner, reports."""
