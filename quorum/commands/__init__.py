"""One module per command, each with its click command named ``command``; loaded when called."""
