"""Private rows that can be counted: in memory, in passes over their source, or through maps of codes."""
