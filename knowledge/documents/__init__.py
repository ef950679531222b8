"""The user's documents: reading, cutting, searching."""
