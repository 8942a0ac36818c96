"""What the robot is: a tree of bodies, its joints, drives and parameters.

W_tree(q, dq, ddq) chi = B tau            chi: ten parameters per body, then drive terms

To add a friction or other drive term: an entry in DRIVE_TERMS of `drive_terms.py`. To add a format of
descriptions: a reader here, and one line in DESCRIPTIONS of `load.py`.
"""
