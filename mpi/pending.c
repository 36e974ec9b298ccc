/* SPDX-License-Identifier: BSD-3-Clause */
#include "pending.h"

#include <stdlib.h>

#include "comms.h"
#include "digest/digest.h"
#include "gpu.h"
#include "handles.h"
#include "threads.h"
#include "util/list.h"

#define UCI_MPI_FINDINGS_MAX     200u /* lines of a process */
#define UCI_MPI_FINDINGS_A_PLACE 3u
#define UCI_MPI_PENDING_ALIKE    1024u /* of one handle: any more are not looked at */

typedef struct uci_mpi_pending {
    uci_mpi_handle_t handle;
    uci_list_t link; /* of all that are active */
    uci_calls_wait_t wait;
    uci_mpi_touched_t touched;
    uci_mpi_half_t send; /* its type is a duplicate of ours */
    uint64_t bytes;      /* that are sent, as `send` says */
    uint64_t digest;     /* of what is sent, when it was begun */
    unsigned alike;      /* how many have the same handle, and were begun before it */
    bool has_digest, has_type, persists, active;
    bool is_settled; /* it, or another one of its handle, is complete */
    /* of one that persists: what each start gives */
    bool sends;
    uci_calls_sent_t sent; /* a message, whose place is where the request was made; of a collective its bytes alone */
} uci_mpi_pending_t;

static uci_mpi_handles_t uci_mpi_pending = {.lock = PTHREAD_MUTEX_INITIALIZER};
static uci_list_t uci_mpi_active         = {.next = &uci_mpi_active, .prev = &uci_mpi_active};
static unsigned uci_mpi_findings;

/* ------------------------------------------------------------- findings */

/* Not more than a few of a place. @return whether one more is to be written */
static bool uci_mpi_finding_is_new(int place)
{
    static uint8_t seen[UCI_CALLS_PLACES];
    unsigned before = (place != UCI_CALLS_NONE) ? __atomic_fetch_add(&seen[place], 1, __ATOMIC_RELAXED) : 0;

    if (before >= UCI_MPI_FINDINGS_A_PLACE) {
        __atomic_store_n(&seen[place], UCI_MPI_FINDINGS_A_PLACE, __ATOMIC_RELAXED);
        return false;
    }
    return __atomic_fetch_add(&uci_mpi_findings, 1, __ATOMIC_RELAXED) < UCI_MPI_FINDINGS_MAX;
}

static bool uci_mpi_finding_begin(uci_json_t *json, const char *what, int place)
{
    if (!uci_mpi_finding_is_new(place) || !uci_calls_finding_begin(json, what)) {
        return false;
    }
    uci_json_int(json, "place", place);
    return true;
}

static void uci_mpi_finding_about(uci_json_t *json, const uci_calls_wait_t *wait)
{
    uci_json_int(json, "peer", wait->peer);
    uci_json_int(json, "tag", wait->tag);
    uci_json_int(json, "comm", wait->comm);
    uci_json_string(json, "way", wait->collective ? "collective" : wait->receives ? "receive" : "send");
}

/* -------------------------------------------------------------- buffers */

/* From MPI_BOTTOM, which MPICH's MPI_Pack does not take: the same from where its first byte is. @return of MPI */
static int uci_mpi_pack_absolute(const uci_mpi_half_t *half, void *packed, int length, int *position)
{
    MPI_Datatype shifted = MPI_DATATYPE_NULL;
    int ret, count = (int)half->count;
    MPI_Aint lb, extent, shift;

    PMPI_Type_get_true_extent(half->type, &lb, &extent);
    shift = -lb;
    ret   = PMPI_Type_create_hindexed(1, &count, &shift, half->type, &shifted);
    if (ret != MPI_SUCCESS) {
        return ret;
    }
    PMPI_Type_commit(&shifted);
    ret = PMPI_Pack((const void *)lb, 1, shifted, packed, length, position, MPI_COMM_SELF);
    PMPI_Type_free(&shifted);
    return ret;
}

static int uci_mpi_half_pack(const uci_mpi_half_t *half, void *packed, int length, int *position)
{
    return (half->buf == MPI_BOTTOM)
                   ? uci_mpi_pack_absolute(half, packed, length, position)
                   : PMPI_Pack(half->buf, (int)half->count, half->type, packed, length, position, MPI_COMM_SELF);
}

/* Of what is sent, gaps left out. None where buffers may be a GPU's: reading one here would be a SIGSEGV (no test has a GPU). @return whether there is one */
static bool uci_mpi_half_digest(const uci_mpi_half_t *half, uint64_t *digest_p)
{
    const uci_digest_ops_t *xxh3 = uci_digest_by_id(UCI_DIGEST_XXH3);
    uint64_t length              = uci_mpi_bytes(half->count, half->type);
    int position                 = 0;
    void *packed;

    if (uci_mpi_has_gpu()) {
        return false;
    }
    if (uci_mpi_is_dense(half->type, half->count)) {
        *digest_p = xxh3->digest(half->buf, length);
        return true;
    }
    packed = ((length <= INT32_MAX) && (half->count <= INT32_MAX)) ? malloc(length + 1) : NULL;
    if ((packed == NULL) || (uci_mpi_half_pack(half, packed, (int)length, &position) != MPI_SUCCESS)) {
        free(packed);
        return false;
    }
    *digest_p = xxh3->digest(packed, (size_t)position);
    free(packed);
    return true;
}

/* -------------------------------------------------------------- overlap */

/* Who touches a region */
typedef struct uci_mpi_toucher {
    int place;
    bool collective;
} uci_mpi_toucher_t;

static const char *uci_mpi_way(uci_mpi_toucher_t by, bool writes)
{
    return by.collective ? (writes ? "write" : "read") : (writes ? "receive" : "send");
}

static void uci_mpi_compare_regions(uci_mpi_toucher_t by, const uci_mpi_region_t *ours, bool writes,
                                    uci_mpi_toucher_t other, const uci_mpi_region_t *theirs, bool other_writes)
{
    intptr_t offset = 0;
    uint64_t bytes  = uci_mpi_region_shared(ours, theirs, &offset);
    uci_json_t json;

    if ((bytes > 0) && uci_mpi_finding_begin(&json, "overlap", by.place)) {
        uci_json_int(&json, "other", other.place);
        uci_json_uint(&json, "bytes", bytes);
        uci_json_int(&json, "offset", offset);
        uci_json_string(&json, "way", uci_mpi_way(by, writes));
        uci_json_string(&json, "other_way", uci_mpi_way(other, other_writes));
        uci_calls_line_end(&json);
    }
}

static uci_mpi_region_t uci_mpi_half_region(const uci_mpi_half_t *half)
{
    return (half->is_there && (half->peer != MPI_PROC_NULL)) ? uci_mpi_region_create(half->buf, half->count, half->type)
                                                             : (uci_mpi_region_t){0};
}

static uci_mpi_touched_t uci_mpi_touched_by(const uci_mpi_call_t *call)
{
    return (uci_mpi_touched_t){.read    = call->replaces ? (uci_mpi_region_t){0} : uci_mpi_half_region(&call->send),
                               .written = uci_mpi_half_region(&call->recv)};
}

/* With those of all that are active: who only reads what others only read may. The lock is held */
static void uci_mpi_compare_with_active(uci_mpi_toucher_t by, const uci_mpi_touched_t *ours)
{
    uci_list_for_each(pending, &uci_mpi_active, uci_mpi_pending_t, link)
    {
        const uci_mpi_touched_t *theirs = &pending->touched;
        const uci_mpi_toucher_t other   = {pending->wait.place, pending->wait.collective != 0};

        uci_mpi_compare_regions(by, &ours->read, false, other, &theirs->written, true);
        uci_mpi_compare_regions(by, &ours->written, true, other, &theirs->read, false);
        uci_mpi_compare_regions(by, &ours->written, true, other, &theirs->written, true);
    }
}

/* Of an operation that does both, it is the receive that is waited for */
static const uci_mpi_half_t *uci_mpi_pending_half(const uci_mpi_call_t *call)
{
    return call->recv.is_there ? &call->recv : &call->send;
}

void uci_mpi_pending_check(uci_mpi_call_t *call)
{
    const uci_mpi_toucher_t by = {call->place, call->collective};
    const uci_mpi_half_t *half = uci_mpi_pending_half(call);

    if (half->is_there) {
        call->peer = uci_mpi_comms_peer(call->comm, half->peer);
    }
    if (call->manner == UCI_MPI_PROBES) { /* it touches nothing, and again and again */
        return;
    }
    if (!call->collective) {
        call->touched = uci_mpi_touched_by(call);
    }
    if (call->manner != UCI_MPI_MAKES) {
        uci_mpi_compare_regions(by, &call->touched.read, false, by, &call->touched.written, true);
        pthread_mutex_lock(&uci_mpi_pending.lock);
        uci_mpi_compare_with_active(by, &call->touched);
        pthread_mutex_unlock(&uci_mpi_pending.lock);
    }
}

/* ------------------------------------------------------------- requests */

/* All of these: the lock is held */
static uci_mpi_handle_t **uci_mpi_pending_place(MPI_Request request)
{
    return uci_mpi_handles_find(&uci_mpi_pending, UCI_MPI_HANDLE(request));
}

static uci_mpi_pending_t *uci_mpi_pending_of(MPI_Request request)
{
    return (uci_mpi_pending_t *)*uci_mpi_pending_place(request);
}

static void uci_mpi_pending_release(uci_mpi_pending_t *pending)
{
    if (pending->has_type) {
        PMPI_Type_free(&pending->send.type);
    }
    uci_mpi_touched_release(&pending->touched);
    free(pending);
}

static void uci_mpi_pending_drop(uci_mpi_handle_t **link)
{
    uci_mpi_pending_t *pending = (uci_mpi_pending_t *)*link;

    if (pending == NULL) {
        return;
    }
    uci_mpi_handles_take(link);
    if (pending->active) {
        uci_list_del(&pending->link);
    }
    uci_mpi_pending_release(pending);
}

/* MPI gives one handle to several operations that are complete at once, such as small sends. An entry whose handle was not so has been completed unseen, and its
 * handle is another one's now */
static bool uci_mpi_pending_may_share(const uci_mpi_pending_t *one, const uci_mpi_pending_t *other, MPI_Request request)
{
    int is_complete = 0;

    return !one->persists && !other->persists &&
           (PMPI_Request_get_status(request, &is_complete, MPI_STATUS_IGNORE) == MPI_SUCCESS) && is_complete;
}

/* @return whether there is room for it among those of its handle */
static bool uci_mpi_pending_put(uci_mpi_pending_t *pending, MPI_Request request)
{
    uci_mpi_handle_t **link  = uci_mpi_pending_place(request);
    uci_mpi_pending_t *other = (uci_mpi_pending_t *)*link;

    if ((other != NULL) && !uci_mpi_pending_may_share(pending, other, request)) {
        uci_mpi_pending_drop(link);
        return uci_mpi_pending_put(pending, request);
    }
    pending->alike = (other != NULL) ? other->alike + 1 : 0;
    if (pending->alike >= UCI_MPI_PENDING_ALIKE) {
        return false;
    }
    uci_mpi_handles_put(link, &pending->handle, UCI_MPI_HANDLE(request));
    return true;
}

static void uci_mpi_pending_activate(uci_mpi_pending_t *pending)
{
    pending->active = true;
    uci_list_add_tail(&uci_mpi_active, &pending->link);
    pending->has_digest = uci_calls->head.checks && pending->send.is_there && (pending->send.peer != MPI_PROC_NULL) &&
                          (pending->bytes > 0) && uci_mpi_half_digest(&pending->send, &pending->digest);
}

/* The program may free its type before the request is complete. MPI_Type_dup() would call its copy callbacks, which count, or refuse */
static bool uci_mpi_half_keep(uci_mpi_half_t *half, uint64_t bytes)
{
    MPI_Datatype copy;

    if (uci_mpi_is_dense(half->type, half->count)) {
        half->type  = MPI_BYTE;
        half->count = bytes;
        return false;
    }
    if (PMPI_Type_contiguous(1, half->type, &copy) != MPI_SUCCESS) {
        half->is_there = false;
        return false;
    }
    PMPI_Type_commit(&copy);
    half->type = copy;
    return true;
}

static void uci_mpi_pending_keep(uci_mpi_pending_t *pending, uci_mpi_call_t *call)
{
    pending->touched = call->touched;
    call->touched    = (uci_mpi_touched_t){0};
    pending->send    = call->send;
    if (call->replaces || (call->send.type == MPI_DATATYPE_NULL)) {
        pending->send.is_there = false;
    }
    if (pending->send.is_there) {
        pending->bytes    = uci_mpi_bytes(call->send.count, call->send.type);
        pending->has_type = uci_mpi_half_keep(&pending->send, pending->bytes);
    }
}

void uci_mpi_pending_add(uci_mpi_call_t *call, MPI_Request request)
{
    uci_mpi_pending_t *pending;

    if ((request == MPI_REQUEST_NULL) || ((pending = calloc(1, sizeof(*pending))) == NULL)) {
        return;
    }
    pending->persists = (call->manner == UCI_MPI_MAKES);
    pending->sends    = uci_mpi_call_sends(call, &pending->sent);
    if (!pending->sends) {
        pending->sent.bytes = call->bytes;
    }
    pending->wait = uci_mpi_call_wait(call, uci_mpi_pending_half(call));
    if (uci_calls->head.checks) {
        uci_mpi_pending_keep(pending, call);
    }
    pthread_mutex_lock(&uci_mpi_pending.lock);
    if (!uci_mpi_pending_put(pending, request)) {
        uci_mpi_pending_release(pending);
    } else if (!pending->persists) {
        uci_mpi_pending_activate(pending);
    }
    pthread_mutex_unlock(&uci_mpi_pending.lock);
}

static void uci_mpi_pending_count(const uci_mpi_pending_t *pending, const uci_mpi_call_t *call)
{
    uci_mpi_calls_add_bytes(call->place, pending->sent.bytes);
    if (pending->sends) {
        uci_mpi_calls_add_sent(&pending->sent);
    }
}

void uci_mpi_pending_start(MPI_Request request, const uci_mpi_call_t *call)
{
    uci_mpi_pending_t *pending;

    pthread_mutex_lock(&uci_mpi_pending.lock);
    pending = uci_mpi_pending_of(request);
    if ((pending != NULL) && pending->persists && !pending->active) {
        uci_mpi_pending_count(pending, call);
        uci_mpi_compare_with_active((uci_mpi_toucher_t){pending->wait.place, pending->wait.collective != 0},
                                    &pending->touched);
        uci_mpi_pending_activate(pending);
    }
    pthread_mutex_unlock(&uci_mpi_pending.lock);
}

bool uci_mpi_pending_find(MPI_Request request, uci_calls_wait_t *wait_p)
{
    static const uci_calls_wait_t unknown = {
            .peer = UCI_CALLS_NONE, .tag = UCI_CALLS_NONE, .comm = UCI_CALLS_NONE, .place = UCI_CALLS_NONE};
    const uci_mpi_pending_t *pending;
    bool is_active;

    if (request == MPI_REQUEST_NULL) {
        return false;
    }
    pthread_mutex_lock(&uci_mpi_pending.lock);
    pending   = uci_mpi_pending_of(request);
    is_active = (pending == NULL) || pending->active;
    if (is_active) {
        *wait_p = (pending != NULL) ? pending->wait : unknown;
    }
    pthread_mutex_unlock(&uci_mpi_pending.lock);
    return is_active;
}

static void uci_mpi_pending_compare(uci_mpi_pending_t *pending)
{
    uint64_t digest;
    uci_json_t json;

    if (pending->has_digest && uci_mpi_half_digest(&pending->send, &digest) && (digest != pending->digest) &&
        uci_mpi_finding_begin(&json, "changed", pending->wait.place)) {
        uci_mpi_finding_about(&json, &pending->wait);
        uci_json_uint(&json, "bytes", pending->bytes);
        uci_calls_line_end(&json);
    }
}

/* One of those that have this handle is complete, and which can't be told. Until now none was; from now on each may be, and is not looked at any more */
static void uci_mpi_pending_settle(uci_mpi_pending_t *pending)
{
    unsigned i, count = pending->alike + 1;

    for (i = 0; (count > 1) && (i < count); ++i) {
        uci_mpi_pending_compare(pending);
        uci_mpi_touched_release(&pending->touched);
        pending->has_digest = false;
        pending->is_settled = true;
        pending             = (uci_mpi_pending_t *)pending->handle.next;
    }
}

void uci_mpi_pending_end(MPI_Request request, bool persistent)
{
    uci_mpi_pending_t *pending;
    uci_mpi_handle_t **link;

    pthread_mutex_lock(&uci_mpi_pending.lock);
    link    = uci_mpi_pending_place(request);
    pending = (uci_mpi_pending_t *)*link;
    if ((pending != NULL) && pending->active && (pending->persists == persistent)) {
        uci_mpi_pending_settle(pending);
        uci_mpi_pending_compare(pending);
        if (pending->persists) {
            pending->active = false;
            uci_list_del(&pending->link);
        } else {
            uci_mpi_pending_drop(link);
        }
    }
    pthread_mutex_unlock(&uci_mpi_pending.lock);
}

void uci_mpi_pending_free(MPI_Request request)
{
    uci_mpi_handle_t **link;

    pthread_mutex_lock(&uci_mpi_pending.lock);
    link = uci_mpi_pending_place(request);
    if (*link != NULL) {
        uci_mpi_pending_settle((uci_mpi_pending_t *)*link);
    }
    uci_mpi_pending_drop(link);
    pthread_mutex_unlock(&uci_mpi_pending.lock);
}

/* ------------------------------------------------------ what is left over */

void uci_mpi_pending_finalize(void)
{
    uci_json_t json;

    if (!uci_calls->head.checks) {
        return;
    }
    pthread_mutex_lock(&uci_mpi_pending.lock);
    uci_list_for_each(pending, &uci_mpi_active, uci_mpi_pending_t, link)
    {
        if (!pending->is_settled && uci_mpi_finding_begin(&json, "unfinished", pending->wait.place)) {
            uci_mpi_finding_about(&json, &pending->wait);
            uci_calls_line_end(&json);
        }
    }
    pthread_mutex_unlock(&uci_mpi_pending.lock);
}

/* In an error handler MPICH has its lock, if the program has threads: what takes that, such as asking for an attribute, ends the program */
void uci_mpi_pending_error(const uci_mpi_call_t *call, int ret)
{
    const uci_mpi_half_t *half      = uci_mpi_pending_half(call);
    char text[MPI_MAX_ERROR_STRING] = "";
    int length, class = ret;
    uci_json_t json;

    if (!uci_calls->head.checks || !uci_mpi_finding_begin(&json, "error", call->place)) {
        return;
    }
    PMPI_Error_class(ret, &class);
    PMPI_Error_string(ret, text, &length);
    uci_json_string(&json, "error", text);
    uci_json_string(&json, "class", (class == MPI_ERR_TRUNCATE) ? "truncate" : "other");
    if (half->is_there) {
        uci_json_int(&json, "peer", call->peer);
        uci_json_int(&json, "tag", (half->tag == MPI_ANY_TAG) ? UCI_CALLS_NONE : half->tag);
        uci_json_int(&json, "comm", call->comm_index);
        uci_json_uint(&json, "bytes", uci_mpi_bytes(half->count, half->type));
    }
    uci_calls_line_end(&json);
}
