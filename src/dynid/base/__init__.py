"""Base parameters: which columns of W are independent, and how the others are grouped.

W chi = W_B (chi_B + K chi_D)     W_D = W_B K
"""
