"""An independent plant: MuJoCo moves a robot whose true parameters are known.

    M(q) ddq + h(q, dq) = B tau - friction(dq) + J^T f,        J ddq = -b J dq - k r - softness

MuJoCo composes M and h from bodies, and holds loops with springs and dampers (k, b) on what they
leave open (r); dynid's regressor, closure and projection have no part in it. What dynid says about
such a log is therefore said about motion that another program made.
"""
