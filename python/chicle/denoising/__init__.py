"""Denoise measured tables before records are made from them. Free: nothing here sees private data."""
