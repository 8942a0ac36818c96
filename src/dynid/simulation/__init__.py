"""Simulated robots: motion, sensors, logs with a known truth, and rehearsals of whole experiments."""
