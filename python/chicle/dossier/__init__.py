"""The dossier of a release, for a review board and for a reader in ten years, and its verification."""

from chicle.dossier.make import write_dossier
from chicle.dossier.verify import Check, verify

__all__ = ["Check", "verify", "write_dossier"]
