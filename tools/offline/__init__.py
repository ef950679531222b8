"""The `offline` model: a rule-based demonstration that needs no key and no network.

A reading goes through the modules in this order::

    model     LangChain's interface               prompt   what stands in the tags
    roles     one function per role               repair   what to do about a failed query
    build     the rules in their order            terms    business terms from the documents
    filters   rules for conditions                shape    rules for order, groups, aggregates, columns
    reader    one question's tokens and mentions  draft    the query so far, and its SQL
    link      words to tables, columns, values    schema   tables, families of shards, joins
    lexicon   tokens, stems, synonyms             cues     words that ask for an operation; dates: periods
"""
