"""Commands of the command line in separate files; each imports the library when it runs.

To add one: a file here, and one line at the end of `dynid/cli.py`.
"""
