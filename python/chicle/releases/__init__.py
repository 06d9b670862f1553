"""Releases: the public outcome of a fit, its file, its tables for others, and error bounds."""
