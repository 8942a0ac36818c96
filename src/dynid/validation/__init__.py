"""Errors on samples that a fit has not seen: other logs, folds, comparisons, the gate against the prior."""
