"""What a fit leaves: the release, its file, its tables for others, and the error bounds that follow from it."""
