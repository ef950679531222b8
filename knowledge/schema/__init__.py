"""Schema text: a catalog written for a language model."""
