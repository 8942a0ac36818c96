"""The settings: the experiment, its file, and how a result records both."""
