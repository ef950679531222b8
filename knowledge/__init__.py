"""What is known about a database: catalog, field groups, compressed schema text, documents."""
