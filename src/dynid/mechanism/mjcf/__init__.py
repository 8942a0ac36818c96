"""Reader of MJCF files."""
