"""Results of queries: their canonical form, comparing them, showing and storing them."""
