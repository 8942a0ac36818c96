"""Simulated robots: motion, sensors, logs with known true parameters, and rehearsals of experiments."""
