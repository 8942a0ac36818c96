"""Identification models: each is a choice of tangent directions N.

N^T W_tree chi = N^T B tau        (reactions of loops and cables vanish: A N = 0)

To add one: a file here, and one line in MODELS of `model.py`.
"""
