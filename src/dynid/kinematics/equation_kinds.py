"""Kinds of closure equations, as the kernel numbers them."""

ALONG, NORMAL, ROD, CABLE, SWIVEL = range(5)
