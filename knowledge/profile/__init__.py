"""The profile of a column: in which forms its values are written, and what is odd about them."""
