"""The suite mirrors the floors."""
