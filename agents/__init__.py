"""One file per role: its output model, its prompt and one async function."""
