/* SPDX-License-Identifier: BSD-3-Clause */
#include "rma.h"

#include <stdlib.h>
#include <string.h>

#include "base/wire_check.h"
#include "execute.h"
#include "flush.h"
#include "message/user_am.h"
#include "origin.h"
#include "util/log.h"

/* An operation that waits, or a large put that is being fetched */
typedef struct uci_rma_job {
    uci_list_t link;  /* in jobs of its peer */
    uci_peer_t *peer; /* NULL: that has gone */
    uci_rma_header_t what;
    void *data; /* memory of an active message, or its descriptor */
    size_t length;
    bool large, fetching;
    bool over; /* it has been fetched, or can't be: it ends when those before it have */
    ucs_status_t status;
} uci_rma_job_t;

/* -------------------------------------------------------------- answers */

static void uci_rma_owe(uci_peer_t *peer)
{
    if (uci_list_is_empty(&peer->rma.owing)) {
        uci_list_add_tail(&peer->worker->rma.owing, &peer->rma.owing);
        uci_worker_work_begins(peer->worker);
    }
}

static void uci_rma_executed(uci_peer_t *peer)
{
    ++peer->rma.executed;
    uci_rma_owe(peer);
}

static void uci_rma_failed(uci_peer_t *peer, const uci_rma_header_t *what, ucs_status_t status)
{
    peer->rma.failed        = peer->rma.executed + 1;
    peer->rma.failed_owner  = what->owner;
    peer->rma.failed_region = what->region;
    peer->rma.failed_status = status;
}

/* What is answered with a frame alone. @return as uci_user_am_send_own(), UCS_OK for a request */
static ucs_status_t uci_rma_say(uci_peer_t *peer, uci_own_am_t id, const void *header, size_t header_length,
                                const void *data, size_t length)
{
    static const ucp_request_param_t none;
    uci_ep_t *ep = uci_peer_ep_staying(peer);
    ucs_status_ptr_t ret;

    if (ep == NULL) {
        return UCS_ERR_NOT_CONNECTED; /* it has gone */
    }
    ret = uci_user_am_send_own(ep, id, UCP_AM_SEND_FLAG_EAGER, header, header_length, data, length, &none);
    if (UCS_PTR_IS_PTR(ret)) {
        uci_request_release(uci_request_from_user(ret));
        return UCS_OK;
    }
    return UCS_PTR_STATUS(ret);
}

/* @return false: it is to be told again */
static bool uci_rma_tell_peer(uci_peer_t *peer)
{
    uci_rma_done_t done = {.executed = peer->rma.executed,
                           .failed   = peer->rma.failed,
                           .owner    = peer->rma.failed_owner,
                           .region   = peer->rma.failed_region,
                           .status   = (peer->rma.failed != 0) ? peer->rma.failed_status : UCS_OK};

    if (uci_rma_say(peer, UCI_OWN_AM_RMA_DONE, &done, sizeof(done), NULL, 0) == UCS_ERR_NO_MEMORY) {
        return false;
    }
    peer->rma.failed = 0;
    return true;
}

void uci_rma_tell(uci_worker_t *worker)
{
    uci_list_t todo;
    uci_peer_t *peer;

    uci_list_move(&worker->rma.owing, &todo);
    while (!uci_list_is_empty(&todo)) {
        peer = uci_container_of(todo.next, uci_peer_t, rma.owing);
        uci_list_del(&peer->rma.owing);
        uci_worker_work_ends(worker);
        if (!uci_rma_tell_peer(peer)) {
            uci_rma_owe(peer);
        }
    }
}

/* ----------------------------------------------------------- executing */

static ucs_status_t uci_rma_reject(uci_peer_t *peer, const uci_rma_header_t *what, const char *why)
{
    uci_error("%s of %lu bytes at 0x%lx by %s is refused: it has a key of region %u of owner %016lx, %s",
              uci_rma_names[what->kind], (unsigned long)what->length, (unsigned long)what->address, uci_peer_name(peer),
              what->region, (unsigned long)what->owner, why);
    return UCS_ERR_INVALID_ADDR;
}

/* Large answers that one origin fetches at a time: each is a copy. What asks for more waits, and what is behind it */
#define UCI_RMA_REPLIES 16u

typedef struct uci_rma_answer {
    uci_peer_t *peer;
    char data[];
} uci_rma_answer_t;

static void uci_rma_resume(uci_peer_t *peer);

static void uci_rma_reply_sent(void *request, ucs_status_t status, void *arg)
{
    uci_rma_answer_t *answer = arg;
    uci_peer_t *peer         = answer->peer;

    uci_request_release(uci_request_from_user(request));
    free(answer);
    --peer->rma.replying;
    uci_rma_resume(peer);
}

/* Does an answer of so many bytes go as a descriptor, and not in pieces of @a piece bytes, or one frame? */
static bool uci_rma_is_large_answer(const uci_peer_t *peer, size_t length, size_t piece)
{
    return (piece == 0) && (length > uci_rma_frame_room(peer, sizeof(uci_rma_reply_t)));
}

static bool uci_rma_has_to_wait(uci_peer_t *peer, const uci_rma_header_t *what)
{
    return (peer->rma.replying >= UCI_RMA_REPLIES) && (what->kind == UCI_RMA_GET) &&
           uci_rma_is_large_answer(peer, what->length, uci_rma_piece(peer, what->length, sizeof(uci_rma_reply_t)));
}

/* What is read may change: what travels in pieces is a copy */
static ucs_status_t uci_rma_reply_large(uci_peer_t *peer, const uci_rma_reply_t *reply, const char *memory,
                                        size_t length)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.send = uci_rma_reply_sent};
    uci_rma_answer_t *answer  = malloc(sizeof(*answer) + length);
    uci_ep_t *ep              = uci_peer_ep_staying(peer);
    ucs_status_ptr_t ret;

    if ((answer == NULL) || (ep == NULL)) {
        free(answer);
        return (ep == NULL) ? UCS_ERR_NOT_CONNECTED : UCS_ERR_NO_MEMORY;
    }
    answer->peer    = peer;
    param.user_data = answer;
    memcpy(answer->data, memory, length);
    ret = uci_user_am_send_own(ep, UCI_OWN_AM_RMA_REPLY, 0, reply, sizeof(*reply), answer->data, length, &param);
    if (UCS_PTR_IS_ERR(ret)) {
        free(answer);
        return UCS_PTR_STATUS(ret);
    }
    ++peer->rma.replying;
    return UCS_OK;
}

/* Each piece is a copy. What could not be said ends with the error, behind those that were */
static ucs_status_t uci_rma_reply_pieces(uci_peer_t *peer, uci_rma_reply_t *reply, const char *memory, size_t length,
                                         size_t piece)
{
    ucs_status_t status = UCS_OK;
    size_t done, part;

    for (done = 0; (done < length) && (status == UCS_OK); done += part) {
        part          = uci_min(piece, length - done);
        reply->offset = (uint32_t)done;
        status        = uci_rma_say(peer, UCI_OWN_AM_RMA_REPLY, reply, sizeof(*reply), memory + done, part);
    }
    return status;
}

static ucs_status_t uci_rma_reply(uci_peer_t *peer, const uci_rma_header_t *what, ucs_status_t status, const void *data)
{
    uci_rma_reply_t reply = {.number = what->number, .status = status};
    size_t length         = (status == UCS_OK) ? what->length : 0;
    size_t piece          = uci_rma_piece(peer, length, sizeof(reply));

    if (piece > 0) {
        return uci_rma_reply_pieces(peer, &reply, data, length, piece);
    }
    if (uci_rma_is_large_answer(peer, length, piece)) {
        return uci_rma_reply_large(peer, &reply, data, length);
    }
    return uci_rma_say(peer, UCI_OWN_AM_RMA_REPLY, &reply, sizeof(reply), data, length);
}

/* @param word  what was there, if it is no more than that. @return where what is to be sent back lies */
static const void *uci_rma_do(const uci_rma_header_t *what, const void *data, char *memory, char *word)
{
    switch (what->kind) {
    case UCI_RMA_PUT:
        uci_rma_store(memory, data, what->length);
        return word;
    case UCI_RMA_GET:
        if (what->length > sizeof(uint64_t)) {
            return memory;
        }
        uci_rma_load(word, memory, what->length);
        return word;
    default:
        uci_rma_atomically((uci_rma_op_t)what->op, memory, what->length, data, word);
        return word;
    }
}

/* What waits for an answer gets the error, else the next flush does */
static void uci_rma_end_refused(uci_peer_t *peer, const uci_rma_header_t *what, ucs_status_t status)
{
    if (what->fetch) {
        (void)uci_rma_reply(peer, what, status, NULL);
    } else {
        uci_rma_failed(peer, what, status);
    }
}

/* Of no bytes, to no place: see look.c */
static bool uci_rma_is_probe(const uci_rma_header_t *what)
{
    return (what->kind == UCI_RMA_PUT) && (what->length == 0);
}

/* All but large puts. No lock is held while something is sent */
static void uci_rma_execute(uci_peer_t *peer, const uci_rma_header_t *what, const void *data)
{
    uci_rma_regions_t *regions = peer->worker->context->rma;
    char word[sizeof(uint64_t)];
    const char *why = NULL;
    char *memory    = NULL;
    ucs_status_t status;

    if (uci_rma_is_probe(what)) {
        uci_rma_executed(peer);
        return;
    }
    status = uci_rma_region_enter(regions, what, &memory, &why);
    if (status == UCS_OK) {
        data = uci_rma_do(what, data, memory, word);
        uci_rma_region_leave(regions);
        status = what->fetch ? uci_rma_reply(peer, what, UCS_OK, data) : UCS_OK;
    } else {
        (void)uci_rma_reject(peer, what, why);
    }
    if (status != UCS_OK) {
        uci_rma_end_refused(peer, what, status);
    }
    uci_rma_executed(peer);
}

/* ----------------------------------------------------------- large puts */

/* Large puts that are fetched at a time, of one origin */
#define UCI_RMA_FETCHES 16u

static void uci_rma_put_fetched(void *request, ucs_status_t status, size_t length, void *arg)
{
    uci_rma_job_t *job = arg;
    uci_peer_t *peer   = job->peer;

    uci_request_release(uci_request_from_user(request));
    if (peer == NULL) {
        free(job);
        return;
    }
    job->over   = true;
    job->status = status;
    uci_rma_resume(peer);
}

/* Into the region. @return an error: the put is over */
static ucs_status_t uci_rma_put_fetch(uci_rma_job_t *job)
{
    ucp_request_param_t param  = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                  UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                  .cb.recv_am = uci_rma_put_fetched,
                                  .user_data  = job};
    uci_worker_t *worker       = job->peer->worker;
    uci_rma_regions_t *regions = worker->context->rma;
    const char *why            = NULL;
    char *memory               = NULL;
    ucs_status_t status        = uci_rma_region_enter(regions, &job->what, &memory, &why);

    if (status != UCS_OK) {
        return uci_rma_reject(job->peer, &job->what, why);
    }
    uci_rma_region_leave(regions);
    job->fetching = true;
    return UCS_PTR_IS_ERR(uci_user_am_recv_data(worker, job->data, memory, job->length, &param)) ? UCS_ERR_NO_MEMORY
                                                                                                 : UCS_OK;
}

static uci_rma_job_t *uci_rma_first(uci_peer_t *peer)
{
    /* what has been freed is in no list: NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    return uci_list_is_empty(&peer->rma.jobs) ? NULL : uci_container_of(peer->rma.jobs.next, uci_rma_job_t, link);
}

/* One that does not use its descriptor gives it back */
static void uci_rma_job_end(uci_rma_job_t *job)
{
    if (!job->fetching) {
        uci_user_am_release(job->peer->worker, job->data);
    }
    uci_list_del(&job->link);
    free(job);
}

/* The first of those that wait. @return false: it waits yet */
static bool uci_rma_job_go_on(uci_rma_job_t *job)
{
    uci_peer_t *peer = job->peer;

    if (!job->large) {
        if (uci_rma_has_to_wait(peer, &job->what)) {
            return false;
        }
        uci_rma_execute(peer, &job->what, job->data);
        uci_rma_job_end(job);
        return true;
    }
    if (!job->over) {
        return false;
    }
    if (job->status != UCS_OK) {
        uci_rma_end_refused(peer, &job->what, job->status);
    }
    uci_rma_executed(peer);
    uci_rma_job_end(job);
    return true;
}

static bool uci_rma_is_apart(const uci_rma_header_t *one, const uci_rma_header_t *other)
{
    return (one->region != other->region) || (one->address + one->length <= other->address) ||
           (other->address + other->length <= one->address);
}

/* Nobody sees in which order large puts are done that go to different places, and have no fence between them */
static bool uci_rma_may_begin(uci_peer_t *peer, const uci_rma_job_t *job)
{
    unsigned count = 0;

    uci_list_for_each(other, &peer->rma.jobs, uci_rma_job_t, link)
    {
        if (other == job) {
            return true;
        }
        if (job->what.fence || !other->large || !uci_rma_is_apart(&job->what, &other->what) ||
            (++count >= UCI_RMA_FETCHES)) {
            return false;
        }
    }
    return false;
}

static void uci_rma_begin(uci_rma_job_t *job)
{
    ucs_status_t status = uci_rma_put_fetch(job);

    if (status != UCS_OK) {
        job->over   = true;
        job->status = status;
    }
}

/* @return one that is to be fetched now; or NULL */
static uci_rma_job_t *uci_rma_next_fetch(uci_peer_t *peer)
{
    uci_list_for_each(job, &peer->rma.jobs, uci_rma_job_t, link)
    {
        /* what has been freed is in no list: NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        if (!job->large || !uci_rma_may_begin(peer, job)) {
            return NULL;
        }
        if (!job->fetching && !job->over) {
            return job;
        }
    }
    return NULL;
}

/* An answer that is sent at once ends while its job is executed: then it is the caller who goes on */
static void uci_rma_go_on(uci_peer_t *peer)
{
    uci_rma_job_t *job;

    if (peer->rma.goes_on) {
        return;
    }
    peer->rma.goes_on = true;
    do {
        while (((job = uci_rma_first(peer)) != NULL) && uci_rma_job_go_on(job)) {
        }
        job = uci_rma_next_fetch(peer);
        if (job != NULL) {
            uci_rma_begin(job);
        }
    } while (job != NULL);
    peer->rma.goes_on = false;
}

/* Something has ended that others wait for. Origins are told now, as of what is executed within a turn */
static void uci_rma_resume(uci_peer_t *peer)
{
    uci_rma_go_on(peer);
    uci_rma_tell(peer->worker);
}

/* -------------------------------------------------------------- arriving */

static bool uci_rma_can_be(const uci_rma_header_t *what, size_t length, bool large)
{
    bool is_word = (what->length == sizeof(uint32_t)) || (what->length == sizeof(uint64_t));

    if ((what->fetch > 1) || (what->fence > 1) || (what->op >= UCI_RMA_OP_LAST)) {
        return false;
    }
    switch (what->kind) {
    case UCI_RMA_PUT:
        return (length == what->length) && !what->fetch && (what->op == 0);
    case UCI_RMA_GET:
        return (length == 0) && what->fetch && (what->op == 0) && !large;
    case UCI_RMA_ATOMIC:
        return is_word && !large && (what->address % what->length == 0) &&
               (length == uci_rma_operands((uci_rma_op_t)what->op, what->length));
    default:
        return false;
    }
}

/* Those that are lost the policy has reported: they have not been executed. @return false: it has been executed already */
static bool uci_rma_is_next(uci_peer_t *peer, uint64_t number)
{
    if (number < peer->rma.arrived) {
        return false;
    }
    if (number > peer->rma.arrived) {
        peer->rma.executed += number - peer->rma.arrived;
        peer->rma.failed        = peer->rma.executed;
        peer->rma.failed_owner  = 0;
        peer->rma.failed_region = 0;
        peer->rma.failed_status = UCS_ERR_IO_ERROR;
    }
    peer->rma.arrived = number + 1;
    return true;
}

/* It waits for those before it, or is a large one. @return UCS_INPROGRESS: its data are kept */
static ucs_status_t uci_rma_keep(uci_peer_t *peer, const uci_rma_header_t *what, void *data, size_t length, bool large)
{
    uci_rma_job_t *job = calloc(1, sizeof(*job));

    if (job == NULL) {
        uci_error("no memory for an operation by %s", uci_peer_name(peer));
        uci_rma_end_refused(peer, what, UCS_ERR_NO_MEMORY);
        uci_rma_executed(peer);
        return UCS_ERR_NO_MEMORY;
    }
    *job = (uci_rma_job_t){.peer = peer, .what = *what, .data = data, .length = length, .large = large};
    uci_list_add_tail(&peer->rma.jobs, &job->link);
    return UCS_INPROGRESS;
}

ucs_status_t uci_rma_arrived(void *arg, const void *header, size_t header_length, void *data, size_t length,
                             const ucp_am_recv_param_t *param)
{
    bool large       = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    uci_peer_t *peer = arg;
    uci_rma_header_t what;
    ucs_status_t status;

    if (header_length == sizeof(what)) {
        memcpy(&what, header, sizeof(what));
    }
    if ((header_length != sizeof(what)) || !uci_rma_can_be(&what, length, large) ||
        !uci_rma_is_next(peer, what.number)) {
        uci_wire_refuse(peer, "an operation on memory", "what none is");
        return UCS_OK;
    }
    if (!large && uci_list_is_empty(&peer->rma.jobs) && !uci_rma_has_to_wait(peer, &what)) {
        uci_rma_execute(peer, &what, data);
        return UCS_OK;
    }
    status = uci_rma_keep(peer, &what, data, length, large);
    if (large && (status == UCS_INPROGRESS)) {
        uci_rma_go_on(peer); /* which may take its descriptor */
    }
    return status;
}

/* ------------------------------------------------------------------ end */

/* What is being fetched ends in its own way */
void uci_rma_cleanup(uci_peer_t *peer)
{
    uci_list_for_each_safe(job, &peer->rma.jobs, uci_rma_job_t, link)
    {
        uci_list_del(&job->link);
        job->peer = NULL;
        if (job->over || !job->fetching) {
            free(job);
        }
    }
    uci_rma_fetch_cleanup(peer);
    uci_rma_flush_cleanup(peer);
    uci_list_del(&peer->rma.owing);
}
