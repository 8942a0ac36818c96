"""Settings that nobody fixed, chosen by the error on samples that a fit has not seen.

    error(candidate) = 100 |Y - W chi_k| / |Y|    over all folds k; chi_k fitted without fold k

[W Y] are reference rows: one filter and the same samples for every candidate. Only the rows that a candidate
is fitted to depend on its own cutoff, mask and velocities.
"""
