"""Motions that make W well conditioned, and simulated logs of them.

q(t) = q_0 + sum_l [ a_l sin(l w t) - b_l cos(l w t) ] / (l w),    sum a_l = 0,  sum l b_l = 0

so that velocity and acceleration are zero at the start and the end of every period.
On a closed robot the series moves independent joints; the loops determine all others.
"""
