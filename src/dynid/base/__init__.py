"""Base parameters: which columns of W are independent, and what the others group into.

W chi = W_B (chi_B + K chi_D)     W_D = W_B K
"""
