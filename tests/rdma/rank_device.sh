#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: mpirun ... tests/rdma/rank_device.sh PROGRAM [ARGUMENT]...
#
# Become PROGRAM, bound to this rank's device: even ranks to rxe0, odd ones to rxe1.
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:?not started by mpirun}}
export UCX_NET_DEVICES=rxe$((rank % 2)):1
exec "$@"
