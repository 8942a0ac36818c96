"""Results on other data: validation, cross-validation, the gate, and comparisons side by side."""
