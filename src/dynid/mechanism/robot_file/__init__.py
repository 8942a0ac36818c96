"""Readers of the robot file, one per section."""
