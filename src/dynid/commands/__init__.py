"""Commands of the command line in separate files; each imports the library when it runs."""
