#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: times.py FOLDER: a table of what gpu_p2p wrote there with and without UCI (uci.N, plain.N): medians, and of the pairs' ratios."""
import statistics
import sys
from pathlib import Path


def read(path):
    """{(from, to, bytes): (microseconds, MB/s)}"""
    rows = (line.split() for line in path.read_text().splitlines())
    return {(row[0], row[1], int(row[2])): (float(row[3]), float(row[4])) for row in rows if len(row) == 5}


def main():
    folder = Path(sys.argv[1])
    pairs = [(read(plain), read(folder / f"uci.{plain.suffix[1:]}")) for plain in sorted(folder.glob("plain.*")) if plain.suffix[1:].isdigit()]
    print(f"{'from':8}{'to':8}{'bytes':>10}{'plain us':>11}{'UCI us':>11}{'ratio':>8}{'plain MB/s':>12}{'UCI MB/s':>11}{'ratio':>8}")
    for key in pairs[0][0]:
        plain, uci = [p[key] for p, _ in pairs], [u[key] for _, u in pairs]
        cells = []
        for i, form in ((0, "11.2f"), (1, "11.0f")):
            cells += [format(statistics.median(x[i] for x in plain), form), format(statistics.median(x[i] for x in uci), form),
                      format(statistics.median(u[i] / p[i] for p, u in zip(plain, uci)), "8.2f")]
        print(f"{key[0]:8}{key[1]:8}{key[2]:>10}{''.join(cells)}")


if __name__ == "__main__":
    main()
