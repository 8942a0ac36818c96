"""Accuracy of an estimate: sigma, intervals, essential parameters, prediction of other logs.

C_chi = sigma_rho^2 (W^T W)^-1
"""
