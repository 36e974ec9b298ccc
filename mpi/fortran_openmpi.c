/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Fortran programs on Open MPI. Its bindings for mpif.h and `use mpi` (mpi_send_) and those for `use mpi_f08` (mpi_send_f08_, which calls
 * ompi_send_f) call C by PMPI names, so that the wrappers of p2p.c never see them: these names are wrapped as well, and pass everything on to
 * pmpi_send_. MPICH's bindings call MPI_Send: there this file is left out.
 */
#include "attach.h"
#include "requests.h"

/* Under the names that Fortran compilers give a subroutine, and that which Open MPI's f08 module calls */
#define UCI_MPI_FORTRAN(_name, _params) \
    UCI_MPI_EXPORT void mpi_##_name##_ _params; \
    UCI_MPI_EXPORT void mpi_##_name _params __attribute__((alias("mpi_" #_name "_"))); \
    UCI_MPI_EXPORT void mpi_##_name##__ _params __attribute__((alias("mpi_" #_name "_"))); \
    UCI_MPI_EXPORT void ompi_##_name##_f _params __attribute__((alias("mpi_" #_name "_"))); \
    extern void pmpi_##_name##_ _params __attribute__((weak)); \
    UCI_MPI_EXPORT void mpi_##_name##_ _params

#define UCI_MPI_FORTRAN_SEND(_name, _call) \
    UCI_MPI_FORTRAN(_name, (char *buf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *dest, MPI_Fint *tag, \
                            MPI_Fint *comm, MPI_Fint *ierror)) \
    { \
        uci_signature_t signature; \
\
        uci_mpi_send_next(&signature, _call, (uint64_t)(int64_t)*count, PMPI_Type_f2c(*datatype), \
                          PMPI_Comm_f2c(*comm)); \
        pmpi_##_name##_(buf, count, datatype, dest, tag, comm, ierror); \
        uci_mpi_done(); \
    }

#define UCI_MPI_FORTRAN_ISEND(_name, _call) \
    UCI_MPI_FORTRAN(_name, (char *buf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *dest, MPI_Fint *tag, \
                            MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)) \
    { \
        uci_signature_t signature; \
\
        uci_mpi_send_next(&signature, _call, (uint64_t)(int64_t)*count, PMPI_Type_f2c(*datatype), \
                          PMPI_Comm_f2c(*comm)); \
        pmpi_##_name##_(buf, count, datatype, dest, tag, comm, request, ierror); \
        uci_mpi_done(); \
    }

#define UCI_MPI_FORTRAN_INIT(_name, _call, _starts) \
    UCI_MPI_FORTRAN(_name, (char *buf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *peer, MPI_Fint *tag, \
                            MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)) \
    { \
        MPI_Fint error = MPI_SUCCESS; \
\
        pmpi_##_name##_(buf, count, datatype, peer, tag, comm, request, &error); \
        if (error == MPI_SUCCESS) { \
            uci_mpi_requests_add(PMPI_Request_f2c(*request), _starts, _call, (uint64_t)(int64_t)*count, \
                                 PMPI_Type_f2c(*datatype), PMPI_Comm_f2c(*comm)); \
        } \
        if (ierror != NULL) { /* of mpi_f08 it may be left out */ \
            *ierror = error; \
        } \
    }

UCI_MPI_FORTRAN_SEND(send, "MPI_Send")
UCI_MPI_FORTRAN_SEND(bsend, "MPI_Bsend")
UCI_MPI_FORTRAN_SEND(ssend, "MPI_Ssend")
UCI_MPI_FORTRAN_SEND(rsend, "MPI_Rsend")
UCI_MPI_FORTRAN_ISEND(isend, "MPI_Isend")
UCI_MPI_FORTRAN_ISEND(ibsend, "MPI_Ibsend")
UCI_MPI_FORTRAN_ISEND(issend, "MPI_Issend")
UCI_MPI_FORTRAN_ISEND(irsend, "MPI_Irsend")
UCI_MPI_FORTRAN_INIT(send_init, "MPI_Send_init", UCI_MPI_STARTS_SEND)
UCI_MPI_FORTRAN_INIT(bsend_init, "MPI_Bsend_init", UCI_MPI_STARTS_SEND)
UCI_MPI_FORTRAN_INIT(ssend_init, "MPI_Ssend_init", UCI_MPI_STARTS_SEND)
UCI_MPI_FORTRAN_INIT(rsend_init, "MPI_Rsend_init", UCI_MPI_STARTS_SEND)
UCI_MPI_FORTRAN_INIT(recv_init, "MPI_Recv_init", UCI_MPI_STARTS_RECV)

UCI_MPI_FORTRAN(recv, (char *buf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *source, MPI_Fint *tag, MPI_Fint *comm,
                       MPI_Fint *status, MPI_Fint *ierror))
{
    uci_signature_t signature;

    uci_mpi_recv_next(&signature, "MPI_Recv", (uint64_t)(int64_t)*count, PMPI_Type_f2c(*datatype),
                      PMPI_Comm_f2c(*comm));
    pmpi_recv_(buf, count, datatype, source, tag, comm, status, ierror);
    uci_mpi_done();
}

UCI_MPI_FORTRAN(irecv, (char *buf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *source, MPI_Fint *tag, MPI_Fint *comm,
                        MPI_Fint *request, MPI_Fint *ierror))
{
    uci_signature_t signature;

    uci_mpi_recv_next(&signature, "MPI_Irecv", (uint64_t)(int64_t)*count, PMPI_Type_f2c(*datatype),
                      PMPI_Comm_f2c(*comm));
    pmpi_irecv_(buf, count, datatype, source, tag, comm, request, ierror);
    uci_mpi_done();
}

UCI_MPI_FORTRAN(mrecv,
                (char *buf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *message, MPI_Fint *status, MPI_Fint *ierror))
{
    uci_signature_t signature;

    uci_mpi_recv_next(&signature, "MPI_Mrecv", (uint64_t)(int64_t)*count, PMPI_Type_f2c(*datatype), MPI_COMM_NULL);
    pmpi_mrecv_(buf, count, datatype, message, status, ierror);
    uci_mpi_done();
}

UCI_MPI_FORTRAN(imrecv, (char *buf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *message, MPI_Fint *request,
                         MPI_Fint *ierror))
{
    uci_signature_t signature;

    uci_mpi_recv_next(&signature, "MPI_Imrecv", (uint64_t)(int64_t)*count, PMPI_Type_f2c(*datatype), MPI_COMM_NULL);
    pmpi_imrecv_(buf, count, datatype, message, request, ierror);
    uci_mpi_done();
}

UCI_MPI_FORTRAN(sendrecv, (char *sendbuf, MPI_Fint *sendcount, MPI_Fint *sendtype, MPI_Fint *dest, MPI_Fint *sendtag,
                           char *recvbuf, MPI_Fint *recvcount, MPI_Fint *recvtype, MPI_Fint *source, MPI_Fint *recvtag,
                           MPI_Fint *comm, MPI_Fint *status, MPI_Fint *ierror))
{
    uci_signature_t sent, received;

    uci_mpi_send_next(&sent, "MPI_Sendrecv", (uint64_t)(int64_t)*sendcount, PMPI_Type_f2c(*sendtype),
                      PMPI_Comm_f2c(*comm));
    uci_mpi_recv_next(&received, "MPI_Sendrecv", (uint64_t)(int64_t)*recvcount, PMPI_Type_f2c(*recvtype),
                      PMPI_Comm_f2c(*comm));
    pmpi_sendrecv_(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm,
                   status, ierror);
    uci_mpi_done();
}

UCI_MPI_FORTRAN(sendrecv_replace,
                (char *buf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *dest, MPI_Fint *sendtag, MPI_Fint *source,
                 MPI_Fint *recvtag, MPI_Fint *comm, MPI_Fint *status, MPI_Fint *ierror))
{
    uci_signature_t sent, received;

    uci_mpi_send_next(&sent, "MPI_Sendrecv_replace", (uint64_t)(int64_t)*count, PMPI_Type_f2c(*datatype),
                      PMPI_Comm_f2c(*comm));
    uci_mpi_recv_next(&received, "MPI_Sendrecv_replace", (uint64_t)(int64_t)*count, PMPI_Type_f2c(*datatype),
                      PMPI_Comm_f2c(*comm));
    pmpi_sendrecv_replace_(buf, count, datatype, dest, sendtag, source, recvtag, comm, status, ierror);
    uci_mpi_done();
}

UCI_MPI_FORTRAN(start, (MPI_Fint * request, MPI_Fint *ierror))
{
    uci_mpi_requests_start(PMPI_Request_f2c(*request));
    pmpi_start_(request, ierror);
    uci_mpi_done();
}

UCI_MPI_FORTRAN(startall, (MPI_Fint * count, MPI_Fint *requests, MPI_Fint *ierror))
{
    MPI_Fint i, error = MPI_SUCCESS;

    if (!uci_mpi_is_on()) {
        pmpi_startall_(count, requests, ierror);
        return;
    }
    for (i = 0; (i < *count) && (error == MPI_SUCCESS); ++i) {
        mpi_start_(&requests[i], &error);
    }
    if (ierror != NULL) {
        *ierror = error;
    }
}

UCI_MPI_FORTRAN(request_free, (MPI_Fint * request, MPI_Fint *ierror))
{
    uci_mpi_requests_remove(PMPI_Request_f2c(*request));
    pmpi_request_free_(request, ierror);
}
