"""Noisy counts: measurements, scores, merges, their transcript, and the desk at which they are paid for."""
