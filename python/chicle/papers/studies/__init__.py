"""Studies of the papers, one file each: NOT PRIVATE."""
