"""The pages: one module for each step. Whole pages without scripts of their own, so that they work without any."""
