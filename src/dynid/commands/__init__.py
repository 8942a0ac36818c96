"""Commands of the command line that have files of their own; each imports the library when it runs."""
