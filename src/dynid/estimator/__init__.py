"""Estimators: each solves W chi = Y + rho from triangular factors.

chi = argmin sum_g w_g^2 |Y_g - W_g chi|^2

To add one: a weighting, a solver or a rework in a file here, and one line in MAKERS of `estimator.py`.
"""
