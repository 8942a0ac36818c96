"""Motions that make W well conditioned, and simulated logs of them."""
