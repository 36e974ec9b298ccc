#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: mpi/weak.sh FOLDER
#
# What the headers in FOLDER name of an MPI, weak: included before everything else, so that a process without one (a shell of the job's, a
# launcher) can load the library all the same. Nothing of it is used there. tests/signatures looks whether one is missing.
names=$(grep -ohE '\<(PMPI|OMPI_C|ompi_message|ompi_mpi|ompi_request)_[A-Za-z0-9_]+' "$1"/mpi*.h)
if [ -z "$names" ]; then
    echo "mpi/weak.sh: no names of an MPI in $1/mpi*.h" >&2
    exit 1
fi
echo "$names" | sort -u | sed 's/^/#pragma weak /'
