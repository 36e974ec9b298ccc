/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * All collectives with data, and MPI_Barrier: parameters, arguments, and what they mean (uci_mpi_collective_t). Included where wrappers are made of it, as
 * often as there are bindings, by who defines what a parameter is there:
 *
 *     UCI_MPI_COLLECTIVE(name, lower, params, args, description...)
 *     P_IN P_OUT P_COUNT P_COUNTS P_DISPLS P_BYTES P_TYPE P_TYPES P_RANK P_OP P_COMM    a parameter, by its name
 *     UCI_MPI_ONE(count, type) UCI_MPI_MANY(counts, displs, type) UCI_MPI_TYPES(counts, displs, types)  a side's members; UCI_MPI_AT(buffer): may be in place
 *     UCI_MPI_BUF(buffer)                                                               its address; NULL: in place, or MPI_BOTTOM
 *     V_RANK V_OP                                                                       the value of a parameter
 */
/* clang-format off */
#define UCI_MPI_ROOTLESS .root = UCI_MPI_NO_ROOT
#define UCI_MPI_ROOTED   .root = V_RANK(root)
#define UCI_MPI_REDUCES  .has_op = true, .op = V_OP(op)
#define UCI_MPI_BUFFERS  .send_buf = UCI_MPI_BUF(sendbuf), .recv_buf = UCI_MPI_BUF(recvbuf)
#define V_ONE(...) {UCI_MPI_ONE(__VA_ARGS__)}
#define V_MANY(...) {UCI_MPI_MANY(__VA_ARGS__)}
#define V_TYPES(...) {UCI_MPI_TYPES(__VA_ARGS__)}
#define V_TYPES_BYTES(_counts, _displs, _types) {UCI_MPI_TYPES(_counts, NULL, _types), .displs_bytes = (_displs)}
#define V_ONE_AT(_buf, ...) {UCI_MPI_AT(_buf), UCI_MPI_ONE(__VA_ARGS__)}
#define V_MANY_AT(_buf, ...) {UCI_MPI_AT(_buf), UCI_MPI_MANY(__VA_ARGS__)}
#define V_TYPES_AT(_buf, ...) {UCI_MPI_AT(_buf), UCI_MPI_TYPES(__VA_ARGS__)}

UCI_MPI_COLLECTIVE(Bcast, bcast,
    (P_OUT(buffer), P_COUNT(count), P_TYPE(datatype), P_RANK(root), P_COMM(comm)),
    (buffer, count, datatype, root, comm),
    .flow = UCI_MPI_FROM_ROOT, .recv_buf = UCI_MPI_BUF(buffer), UCI_MPI_ROOTED, .send = V_ONE(count, datatype), .recv = V_ONE(count, datatype))
UCI_MPI_COLLECTIVE(Gather, gather,
    (P_IN(sendbuf), P_COUNT(sendcount), P_TYPE(sendtype), P_OUT(recvbuf), P_COUNT(recvcount), P_TYPE(recvtype), P_RANK(root), P_COMM(comm)),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),
    .flow = UCI_MPI_TO_ROOT, UCI_MPI_BUFFERS, UCI_MPI_ROOTED, .send = V_ONE_AT(sendbuf, sendcount, sendtype), .recv = V_ONE(recvcount, recvtype))
UCI_MPI_COLLECTIVE(Gatherv, gatherv,
    (P_IN(sendbuf), P_COUNT(sendcount), P_TYPE(sendtype), P_OUT(recvbuf), P_COUNTS(recvcounts), P_DISPLS(displs), P_TYPE(recvtype), P_RANK(root), P_COMM(comm)),
    (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm),
    .flow = UCI_MPI_TO_ROOT, UCI_MPI_BUFFERS, UCI_MPI_ROOTED, .send = V_ONE_AT(sendbuf, sendcount, sendtype), .recv = V_MANY(recvcounts, displs, recvtype))
UCI_MPI_COLLECTIVE(Scatter, scatter,
    (P_IN(sendbuf), P_COUNT(sendcount), P_TYPE(sendtype), P_OUT(recvbuf), P_COUNT(recvcount), P_TYPE(recvtype), P_RANK(root), P_COMM(comm)),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),
    .flow = UCI_MPI_FROM_ROOT, UCI_MPI_BUFFERS, UCI_MPI_ROOTED, .send = V_ONE(sendcount, sendtype), .recv = V_ONE_AT(recvbuf, recvcount, recvtype))
UCI_MPI_COLLECTIVE(Scatterv, scatterv,
    (P_IN(sendbuf), P_COUNTS(sendcounts), P_DISPLS(displs), P_TYPE(sendtype), P_OUT(recvbuf), P_COUNT(recvcount), P_TYPE(recvtype), P_RANK(root), P_COMM(comm)),
    (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm),
    .flow = UCI_MPI_FROM_ROOT, UCI_MPI_BUFFERS, UCI_MPI_ROOTED, .send = V_MANY(sendcounts, displs, sendtype), .recv = V_ONE_AT(recvbuf, recvcount, recvtype))
UCI_MPI_COLLECTIVE(Allgather, allgather,
    (P_IN(sendbuf), P_COUNT(sendcount), P_TYPE(sendtype), P_OUT(recvbuf), P_COUNT(recvcount), P_TYPE(recvtype), P_COMM(comm)),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
    .flow = UCI_MPI_TO_ALL, UCI_MPI_BUFFERS, UCI_MPI_ROOTLESS, .send = V_ONE_AT(sendbuf, sendcount, sendtype), .recv = V_ONE(recvcount, recvtype))
UCI_MPI_COLLECTIVE(Allgatherv, allgatherv,
    (P_IN(sendbuf), P_COUNT(sendcount), P_TYPE(sendtype), P_OUT(recvbuf), P_COUNTS(recvcounts), P_DISPLS(displs), P_TYPE(recvtype), P_COMM(comm)),
    (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm),
    .flow = UCI_MPI_TO_ALL, UCI_MPI_BUFFERS, UCI_MPI_ROOTLESS, .send = V_ONE_AT(sendbuf, sendcount, sendtype), .recv = V_MANY(recvcounts, displs, recvtype))
UCI_MPI_COLLECTIVE(Alltoall, alltoall,
    (P_IN(sendbuf), P_COUNT(sendcount), P_TYPE(sendtype), P_OUT(recvbuf), P_COUNT(recvcount), P_TYPE(recvtype), P_COMM(comm)),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
    .flow = UCI_MPI_TO_ALL, UCI_MPI_BUFFERS, UCI_MPI_ROOTLESS, .send = V_ONE_AT(sendbuf, sendcount, sendtype), .recv = V_ONE(recvcount, recvtype))
UCI_MPI_COLLECTIVE(Alltoallv, alltoallv,
    (P_IN(sendbuf), P_COUNTS(sendcounts), P_DISPLS(sdispls), P_TYPE(sendtype), P_OUT(recvbuf), P_COUNTS(recvcounts), P_DISPLS(rdispls), P_TYPE(recvtype), P_COMM(comm)),
    (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm),
    .flow = UCI_MPI_TO_ALL, UCI_MPI_BUFFERS, UCI_MPI_ROOTLESS, .send = V_MANY_AT(sendbuf, sendcounts, sdispls, sendtype), .recv = V_MANY(recvcounts, rdispls, recvtype))
UCI_MPI_COLLECTIVE(Alltoallw, alltoallw,
    (P_IN(sendbuf), P_COUNTS(sendcounts), P_DISPLS(sdispls), P_TYPES(sendtypes), P_OUT(recvbuf), P_COUNTS(recvcounts), P_DISPLS(rdispls), P_TYPES(recvtypes), P_COMM(comm)),
    (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm),
    .flow = UCI_MPI_TO_ALL, UCI_MPI_BUFFERS, UCI_MPI_ROOTLESS, .send = V_TYPES_AT(sendbuf, sendcounts, sdispls, sendtypes), .recv = V_TYPES(recvcounts, rdispls, recvtypes))
UCI_MPI_COLLECTIVE(Reduce, reduce,
    (P_IN(sendbuf), P_OUT(recvbuf), P_COUNT(count), P_TYPE(datatype), P_OP(op), P_RANK(root), P_COMM(comm)),
    (sendbuf, recvbuf, count, datatype, op, root, comm),
    .flow = UCI_MPI_TO_ROOT, UCI_MPI_BUFFERS, UCI_MPI_ROOTED, UCI_MPI_REDUCES, .send = V_ONE(count, datatype), .recv = V_ONE(count, datatype))
UCI_MPI_COLLECTIVE(Allreduce, allreduce,
    (P_IN(sendbuf), P_OUT(recvbuf), P_COUNT(count), P_TYPE(datatype), P_OP(op), P_COMM(comm)),
    (sendbuf, recvbuf, count, datatype, op, comm),
    .flow = UCI_MPI_SAME, UCI_MPI_BUFFERS, UCI_MPI_ROOTLESS, UCI_MPI_REDUCES, .recv = V_ONE(count, datatype))
UCI_MPI_COLLECTIVE(Scan, scan,
    (P_IN(sendbuf), P_OUT(recvbuf), P_COUNT(count), P_TYPE(datatype), P_OP(op), P_COMM(comm)),
    (sendbuf, recvbuf, count, datatype, op, comm),
    .flow = UCI_MPI_SAME, UCI_MPI_BUFFERS, UCI_MPI_ROOTLESS, UCI_MPI_REDUCES, .recv = V_ONE(count, datatype))
UCI_MPI_COLLECTIVE(Exscan, exscan,
    (P_IN(sendbuf), P_OUT(recvbuf), P_COUNT(count), P_TYPE(datatype), P_OP(op), P_COMM(comm)),
    (sendbuf, recvbuf, count, datatype, op, comm),
    .flow = UCI_MPI_SAME, UCI_MPI_BUFFERS, UCI_MPI_ROOTLESS, UCI_MPI_REDUCES, .recv = V_ONE(count, datatype))
UCI_MPI_COLLECTIVE(Reduce_scatter, reduce_scatter,
    (P_IN(sendbuf), P_OUT(recvbuf), P_COUNTS(recvcounts), P_TYPE(datatype), P_OP(op), P_COMM(comm)),
    (sendbuf, recvbuf, recvcounts, datatype, op, comm),
    .flow = UCI_MPI_SCATTERED, UCI_MPI_BUFFERS, UCI_MPI_ROOTLESS, UCI_MPI_REDUCES, .recv = V_MANY(recvcounts, NULL, datatype))
UCI_MPI_COLLECTIVE(Reduce_scatter_block, reduce_scatter_block,
    (P_IN(sendbuf), P_OUT(recvbuf), P_COUNT(recvcount), P_TYPE(datatype), P_OP(op), P_COMM(comm)),
    (sendbuf, recvbuf, recvcount, datatype, op, comm),
    .flow = UCI_MPI_SCATTERED, UCI_MPI_BUFFERS, UCI_MPI_ROOTLESS, UCI_MPI_REDUCES, .recv = V_ONE(recvcount, datatype))
UCI_MPI_COLLECTIVE(Neighbor_allgather, neighbor_allgather,
    (P_IN(sendbuf), P_COUNT(sendcount), P_TYPE(sendtype), P_OUT(recvbuf), P_COUNT(recvcount), P_TYPE(recvtype), P_COMM(comm)),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
    .flow = UCI_MPI_NEIGHBOURS, UCI_MPI_BUFFERS, UCI_MPI_ROOTLESS, .send = V_ONE(sendcount, sendtype), .recv = V_ONE(recvcount, recvtype))
UCI_MPI_COLLECTIVE(Neighbor_allgatherv, neighbor_allgatherv,
    (P_IN(sendbuf), P_COUNT(sendcount), P_TYPE(sendtype), P_OUT(recvbuf), P_COUNTS(recvcounts), P_DISPLS(displs), P_TYPE(recvtype), P_COMM(comm)),
    (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm),
    .flow = UCI_MPI_NEIGHBOURS, UCI_MPI_BUFFERS, UCI_MPI_ROOTLESS, .send = V_ONE(sendcount, sendtype), .recv = V_MANY(recvcounts, displs, recvtype))
UCI_MPI_COLLECTIVE(Neighbor_alltoall, neighbor_alltoall,
    (P_IN(sendbuf), P_COUNT(sendcount), P_TYPE(sendtype), P_OUT(recvbuf), P_COUNT(recvcount), P_TYPE(recvtype), P_COMM(comm)),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
    .flow = UCI_MPI_NEIGHBOURS, UCI_MPI_BUFFERS, UCI_MPI_ROOTLESS, .send = V_ONE(sendcount, sendtype), .recv = V_ONE(recvcount, recvtype))
UCI_MPI_COLLECTIVE(Neighbor_alltoallv, neighbor_alltoallv,
    (P_IN(sendbuf), P_COUNTS(sendcounts), P_DISPLS(sdispls), P_TYPE(sendtype), P_OUT(recvbuf), P_COUNTS(recvcounts), P_DISPLS(rdispls), P_TYPE(recvtype), P_COMM(comm)),
    (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm),
    .flow = UCI_MPI_NEIGHBOURS, UCI_MPI_BUFFERS, UCI_MPI_ROOTLESS, .send = V_MANY(sendcounts, sdispls, sendtype), .recv = V_MANY(recvcounts, rdispls, recvtype))
UCI_MPI_COLLECTIVE(Neighbor_alltoallw, neighbor_alltoallw,
    (P_IN(sendbuf), P_COUNTS(sendcounts), P_BYTES(sdispls), P_TYPES(sendtypes), P_OUT(recvbuf), P_COUNTS(recvcounts), P_BYTES(rdispls), P_TYPES(recvtypes), P_COMM(comm)),
    (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm),
    .flow = UCI_MPI_NEIGHBOURS, UCI_MPI_BUFFERS, UCI_MPI_ROOTLESS, .send = V_TYPES_BYTES(sendcounts, sdispls, sendtypes), .recv = V_TYPES_BYTES(recvcounts, rdispls, recvtypes))

#undef UCI_MPI_COLLECTIVE
#undef UCI_MPI_ROOTLESS
#undef UCI_MPI_ROOTED
#undef UCI_MPI_REDUCES
#undef UCI_MPI_BUFFERS
#undef V_ONE
#undef V_MANY
#undef V_TYPES
#undef V_ONE_AT
#undef V_MANY_AT
#undef V_TYPES_AT
#undef V_TYPES_BYTES
/* clang-format on */
