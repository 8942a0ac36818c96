"""Hot kernel of conditioning: FIR decimation that computes kept outputs only."""

from __future__ import annotations

from numba import int64

from dynid.common.compiled import F1, F2, summing, takes


@takes(F2, F1, int64, int64, int64, F2)
@summing
def decimate(packed, padded, at, first, step, out):
    """Add the contribution of samples at .. at + n to outputs centred at first + k step.

    packed: (entries, n) samples. padded: the filter with `step` zeros before and behind it. out: (entries, k)
    sums so far. The compiler may choose the order of summation: this allows vectorisation and changes
    rounding only. Four entries and two outputs share each read: the second output begins `step` samples
    later, and where only one of the two has weights the zeros of the other add nothing. At the end of the
    entries the last one is read again and not used. Entries that are zero at all samples add nothing.
    """
    n, size, last, count = packed.shape[1], padded.size - 2 * step, packed.shape[0] - 1, out.shape[1]
    lowest = max(0, -((first + size // 2 - at) // step))
    for e in range(0, last + 1, 4):
        e1, e2, e3 = min(e + 1, last), min(e + 2, last), min(e + 3, last)
        m = 0
        while m < n and packed[e, m] == 0.0 and packed[e1, m] == 0.0 and packed[e2, m] == 0.0:
            if packed[e3, m] != 0.0:
                break
            m += 1
        if m == n:
            continue
        for k in range(lowest, count, 2):
            begin = first + k * step - size // 2 - at
            if begin >= n:
                break
            lo, hi = max(begin, 0), min(begin + step + size, n)
            now, later = padded[lo - begin + step : hi - begin + step], padded[lo - begin : hi - begin]
            x0, x1, x2, x3 = packed[e, lo:hi], packed[e1, lo:hi], packed[e2, lo:hi], packed[e3, lo:hi]
            y0, y1, y2, y3, z0, z1, z2, z3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for m in range(hi - lo):
                w, v = now[m], later[m]
                y0, z0 = y0 + w * x0[m], z0 + v * x0[m]
                y1, z1 = y1 + w * x1[m], z1 + v * x1[m]
                y2, z2 = y2 + w * x2[m], z2 + v * x2[m]
                y3, z3 = y3 + w * x3[m], z3 + v * x3[m]
            y, z = (y0, y1, y2, y3), (z0, z1, z2, z3)
            for i in range(min(4, last + 1 - e)):
                out[e + i, k] += y[i]
                if k + 1 < count:
                    out[e + i, k + 1] += z[i]
