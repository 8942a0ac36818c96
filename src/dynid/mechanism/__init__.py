"""What the robot is: a tree of bodies, its joints, drives and parameters.

W_tree(q, dq, ddq) chi = B tau            chi: ten parameters per body, then drive terms
"""
