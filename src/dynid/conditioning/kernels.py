"""Hot kernel of conditioning: FIR decimation that computes kept outputs only."""

from __future__ import annotations

from dynid.common.compiled import summing


@summing
def decimate(packed, kernel, at, first, step, out):
    """Add the contribution of samples at .. at + n to outputs centred at first + k step.

    packed: (entries, n) samples. out: (entries, k) sums so far. The compiler may choose the order
    of summation: this allows vectorisation and changes rounding only.
    """
    n, half = packed.shape[1], kernel.size // 2
    lowest = max(0, -((first + half - at) // step))
    for e in range(packed.shape[0]):
        row = packed[e]
        for k in range(lowest, out.shape[1]):
            begin = first + k * step - half - at
            if begin >= n:
                break
            lo, hi = max(begin, 0), min(begin + kernel.size, n)
            total = 0.0
            weights, values = kernel[lo - begin : hi - begin], row[lo:hi]
            for m in range(hi - lo):
                total += weights[m] * values[m]
            out[e, k] += total
