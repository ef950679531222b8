"""The `offline` model: a rule-based demonstration that needs no key and no network."""
