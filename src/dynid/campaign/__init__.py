"""Many identifications: robots x logs x settings, and what their results say together.

Every run is one identification with a folder of its own. Runs are independent: a pool of processes or a Dask
scheduler computes them in any order, a journal remembers which are done, and a log that fails is set aside.
"""
