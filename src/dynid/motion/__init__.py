"""What the robot did: logs as arrays in SI units, filtered and differentiated in blocks.

q_f = low-pass(q),  dq = D q_f,  ddq = D D q_f        per segment, never across a gap

Where measured velocities are used: dq = low-pass(dq_log), ddq = D dq.

To add a format of logs: a reader `NAME_file.py` here, and one line in READERS of `logs.py`.
"""
