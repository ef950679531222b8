"""Engines that only SQLAlchemy speaks to."""
