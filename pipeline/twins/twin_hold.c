/* SPDX-License-Identifier: BSD-3-Clause */
#include "twin_hold.h"

#include <stdlib.h>

#include "util/log.h"
#include "util/process.h"
#include "transfer/repair.h"
#include "twin_report.h"
#include "base/worker_state.h"

typedef enum { UCI_TWIN_HELD, UCI_TWIN_TAKING, UCI_TWIN_GIVING, UCI_TWIN_READY } uci_twin_hold_state_t;

struct uci_twin_hold {
    uci_list_t link; /* in uci_twin_waiting, or uci_twin_ready */
    uci_twin_hold_state_t state;
    uci_request_t *req;
    uci_worker_t *worker;
    ucs_status_t status;
    uint64_t time;
    void *content; /* packed, of what is not contiguous */
    uci_twin_verdict_t verdict;
    const uci_mark_t *sender;
};

static uci_list_t uci_twin_waiting = {.prev = &uci_twin_waiting, .next = &uci_twin_waiting};
static uci_list_t uci_twin_ready   = {.prev = &uci_twin_ready, .next = &uci_twin_ready};

uci_twin_hold_t *uci_twin_hold_create(uci_request_t *req, ucs_status_t status)
{
    uci_twin_hold_t *hold = calloc(1, sizeof(*hold));

    if (hold == NULL) {
        uci_error("failed to allocate what a vote needs: a message is not corrected");
        return NULL;
    }
    hold->req    = req;
    hold->worker = req->worker;
    hold->status = status;
    hold->time   = uci_process_time_ns();
    uci_list_add_tail(&uci_twin_waiting, &hold->link);
    uci_worker_work_begins(hold->worker); /* progress is made each turn */
    return hold;
}

static void uci_twin_hold_destroy(uci_twin_hold_t *hold)
{
    uci_worker_work_ends(hold->worker);
    uci_list_del(&hold->link);
    free(hold->content);
    free(hold);
}

static void uci_twin_hold_set_ready(uci_twin_hold_t *hold)
{
    hold->state = UCI_TWIN_READY;
    uci_list_del(&hold->link);
    uci_list_add_tail(&uci_twin_ready, &hold->link);
}

void uci_twin_hold_give_up(uci_twin_hold_t *hold)
{
    uci_twin_hold_set_ready(hold);
}

bool uci_twin_hold_forget(uci_twin_hold_t *hold)
{
    if (hold->state != UCI_TWIN_READY) {
        return false;
    }
    uci_twin_hold_destroy(hold);
    return true;
}

unsigned uci_twin_hold_complete(uci_worker_t *worker, bool all)
{
    unsigned count = 0;
    ucs_status_t status;
    uci_request_t *req;

    if (all) {
        uci_list_for_each_safe(hold, &uci_twin_waiting, uci_twin_hold_t, link)
        {
            if ((hold->worker == worker) && (hold->state == UCI_TWIN_HELD)) {
                uci_twin_hold_set_ready(hold);
            }
        }
    }
    uci_list_for_each_safe(hold, &uci_twin_ready, uci_twin_hold_t, link)
    {
        if (hold->worker == worker) {
            req    = hold->req;
            status = hold->status;
            uci_twin_hold_destroy(hold);
            uci_request_complete(req, status);
            ++count;
        }
    }
    return count;
}

static bool uci_twin_list_has(uci_list_t *list, const uci_worker_t *worker)
{
    uci_list_for_each(hold, list, uci_twin_hold_t, link)
    {
        if (hold->worker == worker) {
            return true;
        }
    }
    return false;
}

bool uci_twin_hold_has(const uci_worker_t *worker)
{
    return uci_twin_list_has(&uci_twin_waiting, worker) || uci_twin_list_has(&uci_twin_ready, worker);
}

uint64_t uci_twin_hold_oldest(void)
{
    return uci_list_is_empty(&uci_twin_waiting) ? UINT64_MAX
                                                : uci_container_of(uci_twin_waiting.next, uci_twin_hold_t, link)->time;
}

/* ---------------------------------------------------------- correcting */

/* What both sides call the message: its number, and as much of its channel as there is room for. Whatever else had the same name would be
 * found out by its digest */
static uint64_t uci_twin_content_id(const uci_twin_verdict_t *verdict)
{
    uint64_t name[2] = {verdict->tag, verdict->source};

    return ((uci_digest_table[UCI_DIGEST_XXH3].digest(name, sizeof(name)) & 0x7fffffff) << 32) | verdict->number;
}

static int uci_twin_first_healthy(const uci_twin_verdict_t *verdict)
{
    unsigned twin;

    for (twin = 0; twin < UCI_TWINS_MAX; ++twin) {
        if ((verdict->have & (1u << twin)) && ((int)twin != verdict->wrong)) {
            return (int)twin;
        }
    }
    return -1;
}

/* The digest of what is there now, formed as the sender's was */
static uint64_t uci_twin_digest(const void *data, size_t length, uint32_t form)
{
    const uci_digest_ops_t *digest = uci_digest_by_id((uint8_t)form);
    uint32_t chunk_size            = form >> 8;
    uint32_t i, chunks;
    uint64_t *leaves, value;

    if (chunk_size == 0) {
        return digest->digest(data, length);
    }
    chunks = (uint32_t)uci_div_up(length, chunk_size);
    leaves = malloc(chunks * sizeof(*leaves));
    if (leaves == NULL) {
        uci_fatal("no memory to digest what twins compare");
    }
    for (i = 0; i < chunks; ++i) {
        leaves[i] = digest->digest((const char *)data + ((size_t)i * chunk_size),
                                   uci_chunk_length(length, chunk_size, i));
    }
    value = digest->digest(leaves, chunks * sizeof(*leaves));
    free(leaves);
    return value;
}

uint64_t uci_twin_hold_digest(uci_request_t *req, uint32_t form)
{
    size_t length = req->info.length;
    void *packed  = malloc(uci_max(length, 1ul));
    uint64_t value;

    if (packed == NULL) {
        uci_fatal("no memory to digest what twins compare");
    }
    if (uci_buffer_read_back(&req->buffer, packed, length) != UCS_OK) {
        uci_fatal("a message that twins compare can't be packed again");
    }
    value = uci_twin_digest(packed, length, form);
    free(packed);
    return value;
}

int uci_twin_hold_takes_from(uint64_t time)
{
    uci_list_for_each(hold, &uci_twin_waiting, uci_twin_hold_t, link)
    {
        if ((hold->state == UCI_TWIN_TAKING) && (hold->time < time)) {
            return uci_twin_first_healthy(&hold->verdict);
        }
    }
    return -1;
}

/* Nothing is known to be right: as with any message that can't be delivered intact */
static void uci_twin_give_up(uci_twin_hold_t *hold, const char *why)
{
    uci_error("message %u of rank %u (tag 0x%lx) is not what the other twins have, and could not be corrected: %s",
              hold->verdict.number, hold->verdict.source, (unsigned long)hold->verdict.tag, why);
    hold->status = uci_repair_policy();
    uci_twin_hold_set_ready(hold);
}

static void uci_twin_content_taken(void *arg, const void *data)
{
    uci_twin_hold_t *hold         = arg;
    const uci_twin_value_t *right = &hold->verdict.values[uci_twin_first_healthy(&hold->verdict)];
    uci_buffer_t *buffer          = &hold->req->buffer;

    if (data == NULL) {
        uci_twin_give_up(hold, "the twin that has it is gone");
        return;
    }
    if (uci_twin_digest(data, right->length, right->form) != right->digest) {
        uci_twin_give_up(hold, "a twin gave something else");
        return;
    }
    uci_buffer_renew(buffer);
    uci_buffer_store(buffer, 0, data, right->length);
    hold->req->info.length = right->length;
    hold->status           = buffer->status;
    uci_twin_report_corrected(&hold->verdict, hold->sender);
    uci_twin_hold_set_ready(hold);
}

static void uci_twin_take(uci_twin_hold_t *hold, uci_twin_link_t *link)
{
    unsigned healthy              = (unsigned)uci_twin_first_healthy(&hold->verdict);
    const uci_twin_value_t *right = &hold->verdict.values[healthy];

    if ((right->form == UCI_TWIN_FORM_NONE) || (right->length > hold->req->buffer.length)) {
        uci_twin_give_up(hold, "its receive is not of the size of the others'");
        return;
    }
    hold->state = UCI_TWIN_TAKING;
    hold->time  = uci_process_time_ns();
    uci_list_del(&hold->link);
    uci_list_add_tail(&uci_twin_waiting, &hold->link);
    uci_twin_link_take(link, healthy, uci_twin_content_id(&hold->verdict), right->length, uci_twin_content_taken, hold);
}

static void uci_twin_content_given(void *arg)
{
    uci_twin_hold_set_ready(arg);
}

/* Pack what has just been unpacked */
static bool uci_twin_pack(uci_twin_hold_t *hold, size_t length)
{
    uci_buffer_t *buffer = &hold->req->buffer;

    if (buffer->kind == UCI_BUFFER_CONTIG) {
        return true;
    }
    hold->content = malloc(uci_max(length, 1ul));
    if (hold->content == NULL) {
        uci_error("no memory to give a twin the content of a message");
        return false;
    }
    return uci_buffer_read_back(buffer, hold->content, length) == UCS_OK;
}

static void uci_twin_give(uci_twin_hold_t *hold, uci_twin_link_t *link)
{
    size_t length = hold->req->info.length;

    if ((hold->status != UCS_OK) || !uci_twin_pack(hold, length)) {
        uci_twin_hold_set_ready(hold);
        return;
    }
    hold->state = UCI_TWIN_GIVING;
    uci_twin_link_give(link, (unsigned)hold->verdict.wrong, uci_twin_content_id(&hold->verdict),
                       (hold->content != NULL) ? hold->content : hold->req->buffer.data, length, uci_twin_content_given,
                       hold);
}

void uci_twin_hold_decide(uci_twin_hold_t *hold, uci_twin_link_t *link, const uci_twin_verdict_t *verdict,
                          const uci_mark_t *sender)
{
    int me = (int)uci_settings.twins.twin;

    hold->verdict = *verdict;
    hold->sender  = sender;
    switch (verdict->outcome) {
    case UCI_TWIN_WRONG:
        if (verdict->wrong == me) {
            uci_twin_take(hold, link);
            return;
        }
        if (uci_twin_first_healthy(verdict) == me) {
            uci_twin_give(hold, link);
            return;
        }
        break;
    case UCI_TWIN_SPLIT:
        if (!uci_twin_report_is_random()) {
            uci_twin_give_up(hold, "there is no majority");
            return;
        }
        break;
    default:
        break;
    }
    uci_twin_hold_set_ready(hold);
}
