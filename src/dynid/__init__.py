"""Identify the dynamics of robots: parameters you can trust, from a description and a log."""
