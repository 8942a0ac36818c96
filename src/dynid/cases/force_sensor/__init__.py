"""A force/torque sensor: measured = s W(motion) chi + bias, with unknown mounting angles."""
