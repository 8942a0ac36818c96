"""Output error: simulate windows of the logs and refine the linear estimate on exact derivatives.

minimise  sum |y - y_simulated(chi)|^2 / sigma^2
"""
