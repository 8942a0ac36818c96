"""Payloads from joint torques: with a known one, or by difference to the robot without load."""
