/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Point to point: blocking and not, matched probes. Buffered and ready sends are sends; probes receive nothing.
 */
#include "attach.h"
#include "calls.h"
#include "pending.h"
#include "requests.h"

/* Standard sends may wait for their receives: with UCI_UNBUFFERED they do */
#define PMPI_Send(...)        (uci_mpi_is_unbuffered ? PMPI_Ssend : PMPI_Send)(__VA_ARGS__)
#define PMPI_Isend(...)       (uci_mpi_is_unbuffered ? PMPI_Issend : PMPI_Isend)(__VA_ARGS__)
#define PMPI_Send_init(...)   (uci_mpi_is_unbuffered ? PMPI_Ssend_init : PMPI_Send_init)(__VA_ARGS__)
#define PMPI_Send_c(...)      (uci_mpi_is_unbuffered ? PMPI_Ssend_c : PMPI_Send_c)(__VA_ARGS__)
#define PMPI_Isend_c(...)     (uci_mpi_is_unbuffered ? PMPI_Issend_c : PMPI_Isend_c)(__VA_ARGS__)
#define PMPI_Send_init_c(...) (uci_mpi_is_unbuffered ? PMPI_Ssend_init_c : PMPI_Send_init_c)(__VA_ARGS__)

/* A function of MPI's: what its messages consist of (_next, which may use `sent` and `received`), what it is for who watches calls (_what), then itself */
#define UCI_MPI_WRAP(_name, _params, _args, _what, _next) \
    UCI_MPI_EXPORT int MPI_##_name _params \
    { \
        uci_signature_t sent, received; \
        uci_mpi_call_t call; \
        int ret; \
\
        (void)sent, (void)received; /* most have one of them */ \
        _next; \
        UCI_MPI_ENTER(call, "MPI_" #_name, UCI_MPI_UNPACK _what); \
        ret = PMPI_##_name _args; \
        uci_mpi_done(); \
        UCI_MPI_LEAVE(call, ret); \
        return ret; \
    }

/* Nothing is sent, or received, yet: MPI_Start does that */
#define UCI_MPI_WRAP_INIT(_name, _params, _starts, _half) \
    UCI_MPI_EXPORT int MPI_##_name _params \
    { \
        uci_mpi_call_t call; \
        int ret; \
\
        UCI_MPI_ENTER(call, "MPI_" #_name, .manner = UCI_MPI_MAKES, .comm = comm, .request = request, \
                      ._half = UCI_MPI_HALF(buf, count, datatype, peer, tag)); \
        ret = PMPI_##_name(buf, count, datatype, peer, tag, comm, request); \
        UCI_MPI_LEAVE(call, ret); \
        if (ret == MPI_SUCCESS) { \
            uci_mpi_requests_add(*request, _starts, "MPI_" #_name, (uint64_t)count, datatype, comm); \
        } \
        return ret; \
    }

#define UCI_MPI_SENDS(_name)    uci_mpi_send_next(&sent, "MPI_" #_name, (uint64_t)count, datatype, comm)
#define UCI_MPI_RECEIVES(_name) uci_mpi_recv_next(&received, "MPI_" #_name, (uint64_t)count, datatype, comm)

/* A message knows its communicator, and does not tell */
#define UCI_MPI_RECEIVES_MATCHED(_name) \
    uci_mpi_recv_next(&received, "MPI_" #_name, (uint64_t)count, datatype, MPI_COMM_NULL)

#define UCI_MPI_EXCHANGES(_name, _sendcount, _sendtype, _recvcount, _recvtype) \
    if (uci_mpi_passes(dest, comm)) { \
        uci_mpi_send_next(&sent, "MPI_" #_name, (uint64_t)(_sendcount), _sendtype, comm); \
    } \
    if (uci_mpi_passes(source, comm)) { \
        uci_mpi_recv_next(&received, "MPI_" #_name, (uint64_t)(_recvcount), _recvtype, comm); \
    }

#define UCI_MPI_SEND(_name, _count_t) \
    UCI_MPI_WRAP(_name, (const void *buf, _count_t count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm), \
                 (buf, count, datatype, dest, tag, comm), \
                 (.comm = comm, .send = UCI_MPI_HALF(buf, count, datatype, dest, tag)), UCI_MPI_SENDS(_name))

#define UCI_MPI_ISEND(_name, _count_t) \
    UCI_MPI_WRAP(_name, \
                 (const void *buf, _count_t count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, \
                  MPI_Request *request), \
                 (buf, count, datatype, dest, tag, comm, request), \
                 (.manner = UCI_MPI_STARTS, .comm = comm, .request = request, \
                  .send = UCI_MPI_HALF(buf, count, datatype, dest, tag)), \
                 UCI_MPI_SENDS(_name))

#define UCI_MPI_SEND_INIT(_name, _count_t) \
    UCI_MPI_WRAP_INIT(_name, \
                      (const void *buf, _count_t count, MPI_Datatype datatype, int peer, int tag, MPI_Comm comm, \
                       MPI_Request *request), \
                      UCI_MPI_STARTS_SEND, send)

#define UCI_MPI_RECV(_name, _count_t) \
    UCI_MPI_WRAP(_name, \
                 (void *buf, _count_t count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, \
                  MPI_Status *status), \
                 (buf, count, datatype, source, tag, comm, status), \
                 (.comm = comm, .recv = UCI_MPI_HALF(buf, count, datatype, source, tag)), UCI_MPI_RECEIVES(_name))

#define UCI_MPI_IRECV(_name, _count_t) \
    UCI_MPI_WRAP(_name, \
                 (void *buf, _count_t count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, \
                  MPI_Request *request), \
                 (buf, count, datatype, source, tag, comm, request), \
                 (.manner = UCI_MPI_STARTS, .comm = comm, .request = request, \
                  .recv = UCI_MPI_HALF(buf, count, datatype, source, tag)), \
                 UCI_MPI_RECEIVES(_name))

#define UCI_MPI_RECV_INIT(_name, _count_t) \
    UCI_MPI_WRAP_INIT(_name, \
                      (void *buf, _count_t count, MPI_Datatype datatype, int peer, int tag, MPI_Comm comm, \
                       MPI_Request *request), \
                      UCI_MPI_STARTS_RECV, recv)

/* One that stands for a message from MPI_PROC_NULL brings nothing, and writes nothing */
#define UCI_MPI_MATCHED_HALF \
    UCI_MPI_HALF(buf, count, datatype, (*message == MPI_MESSAGE_NO_PROC) ? MPI_PROC_NULL : MPI_ANY_SOURCE, MPI_ANY_TAG)

#define UCI_MPI_MRECV(_name, _count_t) \
    UCI_MPI_WRAP(_name, (void *buf, _count_t count, MPI_Datatype datatype, MPI_Message *message, MPI_Status *status), \
                 (buf, count, datatype, message, status), (.comm = MPI_COMM_NULL, .recv = UCI_MPI_MATCHED_HALF), \
                 UCI_MPI_RECEIVES_MATCHED(_name))

#define UCI_MPI_IMRECV(_name, _count_t) \
    UCI_MPI_WRAP(_name, \
                 (void *buf, _count_t count, MPI_Datatype datatype, MPI_Message *message, MPI_Request *request), \
                 (buf, count, datatype, message, request), \
                 (.manner = UCI_MPI_STARTS, .comm = MPI_COMM_NULL, .request = request, .recv = UCI_MPI_MATCHED_HALF), \
                 UCI_MPI_RECEIVES_MATCHED(_name))

#define UCI_MPI_SENDRECV(_name, _count_t) \
    UCI_MPI_WRAP(_name, \
                 (const void *sendbuf, _count_t sendcount, MPI_Datatype sendtype, int dest, int sendtag, \
                  void *recvbuf, _count_t recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, \
                  MPI_Status *status), \
                 (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, \
                  status), \
                 (.comm = comm, .send = UCI_MPI_HALF(sendbuf, sendcount, sendtype, dest, sendtag), \
                  .recv = UCI_MPI_HALF(recvbuf, recvcount, recvtype, source, recvtag)), \
                 UCI_MPI_EXCHANGES(_name, sendcount, sendtype, recvcount, recvtype))

#define UCI_MPI_SENDRECV_REPLACE(_name, _count_t) \
    UCI_MPI_WRAP(_name, \
                 (void *buf, _count_t count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag, \
                  MPI_Comm comm, MPI_Status *status), \
                 (buf, count, datatype, dest, sendtag, source, recvtag, comm, status), \
                 (.comm = comm, .replaces = true, .send = UCI_MPI_HALF(buf, count, datatype, dest, sendtag), \
                  .recv = UCI_MPI_HALF(buf, count, datatype, source, recvtag)), \
                 UCI_MPI_EXCHANGES(_name, count, datatype, count, datatype))

#if UCI_MPI_HAS_MPI4_CALLS
#define UCI_MPI_ISENDRECV(_name, _count_t) \
    UCI_MPI_WRAP(_name, \
                 (const void *sendbuf, _count_t sendcount, MPI_Datatype sendtype, int dest, int sendtag, \
                  void *recvbuf, _count_t recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, \
                  MPI_Request *request), \
                 (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, \
                  request), \
                 (.manner = UCI_MPI_STARTS, .comm = comm, .request = request, \
                  .send = UCI_MPI_HALF(sendbuf, sendcount, sendtype, dest, sendtag), \
                  .recv = UCI_MPI_HALF(recvbuf, recvcount, recvtype, source, recvtag)), \
                 UCI_MPI_EXCHANGES(_name, sendcount, sendtype, recvcount, recvtype))

#define UCI_MPI_ISENDRECV_REPLACE(_name, _count_t) \
    UCI_MPI_WRAP(_name, \
                 (void *buf, _count_t count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag, \
                  MPI_Comm comm, MPI_Request *request), \
                 (buf, count, datatype, dest, sendtag, source, recvtag, comm, request), \
                 (.manner = UCI_MPI_STARTS, .comm = comm, .request = request, .replaces = true, \
                  .send = UCI_MPI_HALF(buf, count, datatype, dest, sendtag), \
                  .recv = UCI_MPI_HALF(buf, count, datatype, source, recvtag)), \
                 UCI_MPI_EXCHANGES(_name, count, datatype, count, datatype))
#else
#define UCI_MPI_ISENDRECV(_name, _count_t)
#define UCI_MPI_ISENDRECV_REPLACE(_name, _count_t)
#endif

#define UCI_MPI_P2P(_suffix, _count_t) \
    UCI_MPI_SEND(Send##_suffix, _count_t) \
    UCI_MPI_SEND(Bsend##_suffix, _count_t) \
    UCI_MPI_SEND(Ssend##_suffix, _count_t) \
    UCI_MPI_SEND(Rsend##_suffix, _count_t) \
    UCI_MPI_ISEND(Isend##_suffix, _count_t) \
    UCI_MPI_ISEND(Ibsend##_suffix, _count_t) \
    UCI_MPI_ISEND(Issend##_suffix, _count_t) \
    UCI_MPI_ISEND(Irsend##_suffix, _count_t) \
    UCI_MPI_SEND_INIT(Send_init##_suffix, _count_t) \
    UCI_MPI_SEND_INIT(Bsend_init##_suffix, _count_t) \
    UCI_MPI_SEND_INIT(Ssend_init##_suffix, _count_t) \
    UCI_MPI_SEND_INIT(Rsend_init##_suffix, _count_t) \
    UCI_MPI_RECV(Recv##_suffix, _count_t) \
    UCI_MPI_IRECV(Irecv##_suffix, _count_t) \
    UCI_MPI_RECV_INIT(Recv_init##_suffix, _count_t) \
    UCI_MPI_MRECV(Mrecv##_suffix, _count_t) \
    UCI_MPI_IMRECV(Imrecv##_suffix, _count_t) \
    UCI_MPI_SENDRECV(Sendrecv##_suffix, _count_t) \
    UCI_MPI_SENDRECV_REPLACE(Sendrecv_replace##_suffix, _count_t) \
    UCI_MPI_ISENDRECV(Isendrecv##_suffix, _count_t) \
    UCI_MPI_ISENDRECV_REPLACE(Isendrecv_replace##_suffix, _count_t)

UCI_MPI_P2P(, int)

#if MPI_VERSION >= 4
UCI_MPI_P2P(_c, MPI_Count)
#endif

/* A part of MPI_Start, or MPI_Startall */
static int uci_mpi_start_one(MPI_Request *request, const uci_mpi_call_t *call)
{
    int ret;

    uci_mpi_requests_start(*request);
    if (uci_mpi_watches()) {
        uci_mpi_pending_start(*request, call);
    }
    ret = PMPI_Start(request);
    uci_mpi_done();
    return ret;
}

UCI_MPI_EXPORT int MPI_Start(MPI_Request *request)
{
    uci_mpi_call_t call;
    int ret;

    UCI_MPI_ENTER(call, "MPI_Start", .comm = MPI_COMM_NULL);
    ret = uci_mpi_start_one(request, &call);
    UCI_MPI_LEAVE(call, ret);
    return ret;
}

/* Started one after the other, which MPI allows */
UCI_MPI_EXPORT int MPI_Startall(int count, MPI_Request requests[])
{
    int i, ret = MPI_SUCCESS;
    uci_mpi_call_t call;

    if (!uci_mpi_is_on() && !uci_mpi_watches()) {
        return PMPI_Startall(count, requests);
    }
    UCI_MPI_ENTER(call, "MPI_Startall", .comm = MPI_COMM_NULL);
    for (i = 0; (i < count) && (ret == MPI_SUCCESS); ++i) {
        ret = uci_mpi_start_one(&requests[i], &call);
    }
    UCI_MPI_LEAVE(call, ret);
    return ret;
}

UCI_MPI_EXPORT int MPI_Request_free(MPI_Request *request)
{
    uci_mpi_requests_remove(*request);
    if (uci_mpi_watches()) {
        uci_mpi_pending_free(*request);
    }
    return PMPI_Request_free(request);
}
