/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Fortran programs on Open MPI (fortran_openmpi.h): point to point.
 */
#include "fortran_openmpi.h"
#include "requests.h"

/* One that sends or receives: what (_next, which may use `sent` and `received`), what it is for who watches calls, then itself */
#define UCI_MPI_FORTRAN_WRAP(_name, ...) UCI_MPI_FORTRAN_WRAP_AS(_name, pmpi_##_name##_, __VA_ARGS__)

/* @param _real  what carries it out */
#define UCI_MPI_FORTRAN_WRAP_AS(_name, _real, _call, _params, _args, _request, _what, _next) \
    UCI_MPI_FORTRAN(_name, _params) \
    { \
        uci_signature_t sent, received; \
        uci_mpi_call_t watched; \
\
        (void)sent, (void)received; /* most have one of them */ \
        _next; \
        UCI_MPI_ENTER(watched, _call, UCI_MPI_UNPACK _what); \
        (_real) _args; \
        uci_mpi_done(); \
        UCI_MPI_FORTRAN_LEAVE(watched, _request, ierror); \
    }

#define UCI_MPI_FORTRAN_HALF(_buf, _count, _type, _peer, _tag) \
    UCI_MPI_HALF(uci_mpi_fortran_buf(_buf), (int64_t) * (_count), PMPI_Type_f2c(*(_type)), *(_peer), *(_tag))

#define UCI_MPI_FORTRAN_BLOCKS .comm = PMPI_Comm_f2c(*comm)
#define UCI_MPI_FORTRAN_STARTS .manner = UCI_MPI_STARTS, .comm = PMPI_Comm_f2c(*comm)

static const MPI_Fint uci_mpi_any_tag = MPI_ANY_TAG;

/* Where a matched message is from: nobody knows, or MPI_PROC_NULL, as in p2p.c */
static const MPI_Fint *uci_mpi_matched_source(const MPI_Fint *message)
{
    static const MPI_Fint any_source = MPI_ANY_SOURCE, none = MPI_PROC_NULL;

    return (PMPI_Message_f2c(*message) == MPI_MESSAGE_NO_PROC) ? &none : &any_source;
}

#define UCI_MPI_FORTRAN_SENDS(_call, _count, _datatype) \
    uci_mpi_send_next(&sent, _call, (uint64_t)(int64_t) * (_count), PMPI_Type_f2c(*(_datatype)), PMPI_Comm_f2c(*comm))

#define UCI_MPI_FORTRAN_RECEIVES(_call, _count, _datatype) \
    uci_mpi_recv_next(&received, _call, (uint64_t)(int64_t) * (_count), PMPI_Type_f2c(*(_datatype)), \
                      PMPI_Comm_f2c(*comm))

#define UCI_MPI_FORTRAN_EXCHANGES(_call, _sendcount, _sendtype, _recvcount, _recvtype) \
    if (uci_mpi_passes(*dest, PMPI_Comm_f2c(*comm))) { \
        UCI_MPI_FORTRAN_SENDS(_call, _sendcount, _sendtype); \
    } \
    if (uci_mpi_passes(*source, PMPI_Comm_f2c(*comm))) { \
        UCI_MPI_FORTRAN_RECEIVES(_call, _recvcount, _recvtype); \
    }

#define UCI_MPI_FORTRAN_RECEIVES_MATCHED(_call) \
    uci_mpi_recv_next(&received, _call, (uint64_t)(int64_t)*count, PMPI_Type_f2c(*datatype), MPI_COMM_NULL)

#define UCI_MPI_FORTRAN_SEND(_name, _real, _call) \
    UCI_MPI_FORTRAN_WRAP_AS(_name, _real, _call, \
                            (char *buf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *dest, MPI_Fint *tag, \
                             MPI_Fint *comm, MPI_Fint *ierror), \
                            (buf, count, datatype, dest, tag, comm, ierror), NULL, \
                            (UCI_MPI_FORTRAN_BLOCKS, .send = UCI_MPI_FORTRAN_HALF(buf, count, datatype, dest, tag)), \
                            UCI_MPI_FORTRAN_SENDS(_call, count, datatype))

#define UCI_MPI_FORTRAN_ISEND(_name, _real, _call) \
    UCI_MPI_FORTRAN_WRAP_AS(_name, _real, _call, \
                            (char *buf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *dest, MPI_Fint *tag, \
                             MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror), \
                            (buf, count, datatype, dest, tag, comm, request, ierror), request, \
                            (UCI_MPI_FORTRAN_STARTS, .send = UCI_MPI_FORTRAN_HALF(buf, count, datatype, dest, tag)), \
                            UCI_MPI_FORTRAN_SENDS(_call, count, datatype))

#define UCI_MPI_FORTRAN_INIT(_name, _real, _call, _starts, _half) \
    UCI_MPI_FORTRAN(_name, (char *buf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *peer, MPI_Fint *tag, \
                            MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)) \
    { \
        MPI_Fint error = MPI_SUCCESS; \
        uci_mpi_call_t watched; \
\
        UCI_MPI_ENTER(watched, _call, .manner = UCI_MPI_MAKES, .comm = PMPI_Comm_f2c(*comm), \
                      ._half = UCI_MPI_FORTRAN_HALF(buf, count, datatype, peer, tag)); \
        (_real)(buf, count, datatype, peer, tag, comm, request, &error); \
        UCI_MPI_FORTRAN_LEAVE(watched, request, &error); \
        if (error == MPI_SUCCESS) { \
            uci_mpi_requests_add(PMPI_Request_f2c(*request), _starts, _call, (uint64_t)(int64_t)*count, \
                                 PMPI_Type_f2c(*datatype), PMPI_Comm_f2c(*comm)); \
        } \
        if (ierror != NULL) { /* of mpi_f08 it may be left out */ \
            *ierror = error; \
        } \
    }

/* Standard sends may wait for their receives: with UCI_UNBUFFERED they do */
#define UCI_MPI_FORTRAN_STANDARD(_synchronous, _standard) \
    (uci_mpi_is_unbuffered ? pmpi_##_synchronous##_ : pmpi_##_standard##_)

UCI_MPI_FORTRAN_SEND(ssend, pmpi_ssend_, "MPI_Ssend")
UCI_MPI_FORTRAN_SEND(send, UCI_MPI_FORTRAN_STANDARD(ssend, send), "MPI_Send")
UCI_MPI_FORTRAN_SEND(bsend, pmpi_bsend_, "MPI_Bsend")
UCI_MPI_FORTRAN_SEND(rsend, pmpi_rsend_, "MPI_Rsend")
UCI_MPI_FORTRAN_ISEND(issend, pmpi_issend_, "MPI_Issend")
UCI_MPI_FORTRAN_ISEND(isend, UCI_MPI_FORTRAN_STANDARD(issend, isend), "MPI_Isend")
UCI_MPI_FORTRAN_ISEND(ibsend, pmpi_ibsend_, "MPI_Ibsend")
UCI_MPI_FORTRAN_ISEND(irsend, pmpi_irsend_, "MPI_Irsend")
UCI_MPI_FORTRAN_INIT(ssend_init, pmpi_ssend_init_, "MPI_Ssend_init", UCI_MPI_STARTS_SEND, send)
UCI_MPI_FORTRAN_INIT(send_init, UCI_MPI_FORTRAN_STANDARD(ssend_init, send_init), "MPI_Send_init", UCI_MPI_STARTS_SEND,
                     send)
UCI_MPI_FORTRAN_INIT(bsend_init, pmpi_bsend_init_, "MPI_Bsend_init", UCI_MPI_STARTS_SEND, send)
UCI_MPI_FORTRAN_INIT(rsend_init, pmpi_rsend_init_, "MPI_Rsend_init", UCI_MPI_STARTS_SEND, send)
UCI_MPI_FORTRAN_INIT(recv_init, pmpi_recv_init_, "MPI_Recv_init", UCI_MPI_STARTS_RECV, recv)

UCI_MPI_FORTRAN_WRAP(recv, "MPI_Recv",
                     (char *buf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *source, MPI_Fint *tag, MPI_Fint *comm,
                      MPI_Fint *status, MPI_Fint *ierror),
                     (buf, count, datatype, source, tag, comm, status, ierror), NULL,
                     (UCI_MPI_FORTRAN_BLOCKS, .recv = UCI_MPI_FORTRAN_HALF(buf, count, datatype, source, tag)),
                     UCI_MPI_FORTRAN_RECEIVES("MPI_Recv", count, datatype))
UCI_MPI_FORTRAN_WRAP(irecv, "MPI_Irecv",
                     (char *buf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *source, MPI_Fint *tag, MPI_Fint *comm,
                      MPI_Fint *request, MPI_Fint *ierror),
                     (buf, count, datatype, source, tag, comm, request, ierror), request,
                     (UCI_MPI_FORTRAN_STARTS, .recv = UCI_MPI_FORTRAN_HALF(buf, count, datatype, source, tag)),
                     UCI_MPI_FORTRAN_RECEIVES("MPI_Irecv", count, datatype))
UCI_MPI_FORTRAN_WRAP(
        mrecv, "MPI_Mrecv",
        (char *buf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *message, MPI_Fint *status, MPI_Fint *ierror),
        (buf, count, datatype, message, status, ierror), NULL,
        (.comm = MPI_COMM_NULL,
         .recv = UCI_MPI_FORTRAN_HALF(buf, count, datatype, uci_mpi_matched_source(message), &uci_mpi_any_tag)),
        UCI_MPI_FORTRAN_RECEIVES_MATCHED("MPI_Mrecv"))
UCI_MPI_FORTRAN_WRAP(
        imrecv, "MPI_Imrecv",
        (char *buf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *message, MPI_Fint *request, MPI_Fint *ierror),
        (buf, count, datatype, message, request, ierror), request,
        (.manner = UCI_MPI_STARTS, .comm = MPI_COMM_NULL,
         .recv = UCI_MPI_FORTRAN_HALF(buf, count, datatype, uci_mpi_matched_source(message), &uci_mpi_any_tag)),
        UCI_MPI_FORTRAN_RECEIVES_MATCHED("MPI_Imrecv"))
UCI_MPI_FORTRAN_WRAP(sendrecv, "MPI_Sendrecv",
                     (char *sendbuf, MPI_Fint *sendcount, MPI_Fint *sendtype, MPI_Fint *dest, MPI_Fint *sendtag,
                      char *recvbuf, MPI_Fint *recvcount, MPI_Fint *recvtype, MPI_Fint *source, MPI_Fint *recvtag,
                      MPI_Fint *comm, MPI_Fint *status, MPI_Fint *ierror),
                     (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm,
                      status, ierror),
                     NULL,
                     (UCI_MPI_FORTRAN_BLOCKS, .send = UCI_MPI_FORTRAN_HALF(sendbuf, sendcount, sendtype, dest, sendtag),
                      .recv = UCI_MPI_FORTRAN_HALF(recvbuf, recvcount, recvtype, source, recvtag)),
                     UCI_MPI_FORTRAN_EXCHANGES("MPI_Sendrecv", sendcount, sendtype, recvcount, recvtype))
UCI_MPI_FORTRAN_WRAP(sendrecv_replace, "MPI_Sendrecv_replace",
                     (char *buf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *dest, MPI_Fint *sendtag,
                      MPI_Fint *source, MPI_Fint *recvtag, MPI_Fint *comm, MPI_Fint *status, MPI_Fint *ierror),
                     (buf, count, datatype, dest, sendtag, source, recvtag, comm, status, ierror), NULL,
                     (UCI_MPI_FORTRAN_BLOCKS, .replaces = true,
                      .send = UCI_MPI_FORTRAN_HALF(buf, count, datatype, dest, sendtag),
                      .recv = UCI_MPI_FORTRAN_HALF(buf, count, datatype, source, recvtag)),
                     UCI_MPI_FORTRAN_EXCHANGES("MPI_Sendrecv_replace", count, datatype, count, datatype))
