"""The dossier of a release, for a review board and for a reader in ten years, and its verification."""

from chicle.dossier.checks import Check, verify
from chicle.dossier.make import write_dossier

__all__ = ["Check", "verify", "write_dossier"]
