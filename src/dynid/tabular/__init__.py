"""Tables of bodies as multibody programs print them."""
