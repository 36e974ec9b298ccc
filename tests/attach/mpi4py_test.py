# SPDX-License-Identifier: BSD-3-Clause
"""Two ranks of a program that opens its MPI at run time, out of the global scope, exchange messages of several sizes.

Ends with "PASS" from rank 0.
"""
from mpi4py import MPI

SIZES = (0, 1, 8, 1000, 8192, 9000, 100000, 3000000)


def content(size, seed):
    """SIZE bytes that depend on SEED."""
    return bytes((seed * 37 + i * 11 + i // 251) % 256 for i in range(min(size, 4096))) * (size // 4096 + 1)


def main():
    comm = MPI.COMM_WORLD
    other = 1 - comm.rank
    for tag, size in enumerate(SIZES):
        expected = content(size, tag + 10 * other)[:size]
        buffer = bytearray(size)
        request = comm.Irecv([buffer, MPI.BYTE], source=other, tag=tag)
        comm.Send([content(size, tag + 10 * comm.rank)[:size], MPI.BYTE], dest=other, tag=tag)
        request.Wait()
        assert buffer == expected, f"wrong content of {size} bytes"
        assert comm.sendrecv({"size": size}, dest=other, source=other) == {"size": size}
    comm.Barrier()
    if comm.rank == 0:
        print("PASS", flush=True)


main()
