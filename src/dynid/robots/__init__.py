"""Built-in robots: one description file each, with a true parameter set and an exciting motion."""
