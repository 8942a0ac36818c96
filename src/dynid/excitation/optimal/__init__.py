"""Optimal exciting motions: q(t) = B(t) x per coordinate, criterion of the information W^T W.

    min f(G(x)),   G = G_0 + sum over samples of W_base^T Sigma^-1 W_base,   lower <= C x_j <= upper

Every family of motions is linear in its coefficients x, so limits on positions, velocities,
accelerations and jerk are linear, one block a coordinate; efforts, poses and distances are linearised.
"""
