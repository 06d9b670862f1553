"""Noisy counts: what was measured, what was scored, and the one door to private counts."""
