"""Private rows that can be counted: in memory, in passes, or seen through maps of codes."""
