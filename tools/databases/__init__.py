"""Connectors: one module per engine, one abstract base, one contract test for all."""
