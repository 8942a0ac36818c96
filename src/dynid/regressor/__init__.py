"""Quantities linear in the parameters: wrench and energy of a body, friction, rotor, extra terms.

wrench_b = W_body(V, dV) chi_b,   energy_b = h_body(V, pose) chi_b
"""
