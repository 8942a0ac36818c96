"""Built-in robots: one description file each, with true parameters and an exciting motion."""
