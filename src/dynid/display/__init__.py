"""What pages draw of a result besides its numbers: the robot along its logs, parts of the efforts, friction.

`drawing_of` gives one tree of names, numbers and arrays (`Estimate.drawing`), at some samples of some logs:

    efforts W chi = gravity W(q, 0, 0) chi_bodies + inertia + Coriolis + friction,
    inertia = W(q, 0, ddq) chi - gravity,    Coriolis = what the velocities add

It is a tree and no class: pages turn it into JSON as it is.
"""
