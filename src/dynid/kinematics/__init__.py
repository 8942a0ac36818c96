"""Every body from the measured coordinates: poses, twists, accelerations, tangent directions.

V_i = X_i V_parent + S_i dq_i,   dV_i = its classical rate, minus gravity
"""
