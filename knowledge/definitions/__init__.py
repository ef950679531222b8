"""Descriptions that a team keeps outside its database."""
