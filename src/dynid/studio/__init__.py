"""A page on this computer for the whole way from a robot and its logs to a result.

page <-> server (address, token) -> session (robot, logs, columns, settings) -> experiment file -> worker.
Everything that is computed starts from an experiment file, so that the command line repeats it exactly.
"""
