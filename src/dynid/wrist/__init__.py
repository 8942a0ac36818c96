"""Force/torque sensors at a wrist: bias, mounting, tool, payload, and the function that compensates them."""
