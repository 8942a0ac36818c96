"""Free motion on locked cables: no effort acts, B(q)^T W chi = 0, parameters per unit mass."""
