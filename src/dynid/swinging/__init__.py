"""Free motion on locked cables: parameters per unit mass, refinement and validation by simulation."""
