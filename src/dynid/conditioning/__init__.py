"""The same linear filter over Y and every column of W, then triangular factors.

F Y = (F W) chi + F rho           for any F, so filtering never biases the parameters
"""
