"""Hot kernel of conditioning: FIR decimation that computes kept outputs only."""

from __future__ import annotations

from dynid.common.compiled import summing


@summing
def decimate(packed, kernel, at, first, step, out):
    """Add the contribution of samples at .. at + n to outputs centred at first + k step.

    packed: (entries, n) samples. out: (entries, k) sums so far. The compiler may choose the order
    of summation: this allows vectorisation and changes rounding only. Four entries share each read of the
    kernel; at the end of the entries the last one is read again and not used.
    """
    n, half, last = packed.shape[1], kernel.size // 2, packed.shape[0] - 1
    lowest = max(0, -((first + half - at) // step))
    for e in range(0, last + 1, 4):
        e1, e2, e3 = min(e + 1, last), min(e + 2, last), min(e + 3, last)
        for k in range(lowest, out.shape[1]):
            begin = first + k * step - half - at
            if begin >= n:
                break
            lo, hi = max(begin, 0), min(begin + kernel.size, n)
            weights = kernel[lo - begin : hi - begin]
            x0, x1, x2, x3 = packed[e, lo:hi], packed[e1, lo:hi], packed[e2, lo:hi], packed[e3, lo:hi]
            y0, y1, y2, y3 = 0.0, 0.0, 0.0, 0.0
            for m in range(hi - lo):
                w = weights[m]
                y0 += w * x0[m]
                y1 += w * x1[m]
                y2 += w * x2[m]
                y3 += w * x3[m]
            out[e, k] += y0
            if e1 > e:
                out[e1, k] += y1
            if e2 > e1:
                out[e2, k] += y2
            if e3 > e2:
                out[e3, k] += y3
