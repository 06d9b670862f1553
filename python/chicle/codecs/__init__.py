"""Codecs: encode the columns of a table as codes, and decode synthetic records, according to a schema."""

from chicle.codecs.codec import Codec

__all__ = ["Codec"]
