"""Linked tables: wide rows from parents and their children, and back. Everything works on whole arrays of codes."""
