"""Unknowns x in W(x) chi = Y(x) that any robot may have: friction speeds and loads, drive gains, the robot
without its load, dimensions and zeros of the description. The contract is in `dynid/unknown.py`; unknowns of
one case only are in its folder. To add one: a file here, and one line in UNKNOWNS of `dynid/unknown.py`."""
