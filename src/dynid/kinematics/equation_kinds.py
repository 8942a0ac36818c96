"""Kinds of closure equations, as the kernel numbers them."""

ALONG, NORMAL, ROD = range(3)
