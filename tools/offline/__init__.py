"""The `offline` model: a rule-based demonstration that needs no key and no network.

``lexicon`` cuts a question into words, ``schema`` tells which tables, columns and values they name, the
``rules`` fill a ``draft`` of the query, ``roles`` make each agent's reply of it, and ``model`` is LangChain's
interface. What it cannot read it passes over: there is always a query, and no claim that it is the right one.
"""
