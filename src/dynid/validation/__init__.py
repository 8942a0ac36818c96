"""Errors on samples that a fit has not seen: other logs, folds, comparisons, the gate against the prior.

`verdict.py` judges a result by them; `causes.py` searches what may be wrong with the description or the logs.
To add a test of the description: a generator in `hypotheses.py`, and a line in `_candidates` of `causes.py`.
"""
