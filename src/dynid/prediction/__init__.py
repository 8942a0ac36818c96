"""Use of a result: efforts for a desired trajectory, with sigma; values for every body."""
