/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The protocol against a peer that says anything: active messages with valid checks and arbitrary content, frames
 * with valid headers, by active message and in a mailbox, in any order, while sends and receives of every kind are under way. UCX is
 * played by fakes: sends complete at once, or never, as the input says; gets bring zeros.
 *
 * The input is a sequence of steps, each beginning with a byte that chooses it.
 */
#include "../../pipeline/link/control.c"

#include <sys/mman.h>

#include "link/bounce.h"
#include "conn/close.h"
#include "transfer/descent.h"
#include "transfer/direct_recv.h"
#include "conn/endpoint.h"
#include "base/frame.h"
#include "transfer/get.h"
#include "link/link_send.h"
#include "link/mailbox.h"
#include "message/recv.h"
#include "transfer/repair.h"
#include "turn/resync.h"
#include "message/send.h"
#include "transfer/send_common.h"
#include "message/unexpected.h"
#include "turn/worker.h"

#define FUZZ_UID      0x11ul
#define FUZZ_PEER_UID 0x22ul
#define FUZZ_TAG      7
#define FUZZ_RECVS    16
#define FUZZ_BUFFER   70000
#define FUZZ_HELD     64
#define FUZZ_MAILBOX  (32ul << 20) /* bytes, more than it has */
#define FUZZ_TYPES    32 /* of messages: not as many as there are, or one more would give the seeds another meaning */

_Static_assert(UCI_AM_LAST < FUZZ_TYPES, "types");

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* -------------------------------------------------------------- fakes */

typedef struct fake_send {
    ucp_send_nbx_callback_t cb;
    ucp_am_recv_data_nbx_callback_t fetched; /* instead, for a segment */
    size_t length;                           /* of it */
    void *user_data;
} fake_send_t;

static ucp_am_recv_callback_t fuzz_handler, fuzz_frame_handler;
static fake_send_t fuzz_held[FUZZ_HELD];
static unsigned fuzz_held_count;
static bool fuzz_hold;
static char fuzz_user[FUZZ_RECVS][FUZZ_BUFFER];
static uci_slot_t fuzz_our_slots[UCI_SLOT_COUNT] __attribute__((aligned(UCI_CACHE_LINE)));
static uci_slot_t *fuzz_their_slots; /* shared memory, as they have to be */
static uint8_t *fuzz_our_mailbox, *fuzz_their_mailbox;

static ucs_status_t fake_set_handler(ucp_worker_h worker, const ucp_am_handler_param_t *param)
{
    *((param->id == UCI_FRAME_AM_ID) ? &fuzz_frame_handler : &fuzz_handler) = param->cb;
    return UCS_OK;
}

/* Complete at once, or hold the request until the input lets go of it */
static ucs_status_ptr_t fake_complete(const ucp_request_param_t *param)
{
    if (!fuzz_hold || (fuzz_held_count == FUZZ_HELD) || !(param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK)) {
        return NULL;
    }
    fuzz_held[fuzz_held_count] = (fake_send_t){.cb = param->cb.send, .user_data = param->user_data};
    return &fuzz_held[fuzz_held_count++];
}

static ucs_status_ptr_t fake_am_recv_data(ucp_worker_h worker, void *desc, void *buffer, size_t count,
                                          const ucp_request_param_t *param)
{
    fake_send_t *held;

    memset(buffer, 0, count);
    if (!fuzz_hold || (fuzz_held_count == FUZZ_HELD)) {
        return NULL;
    }
    held  = &fuzz_held[fuzz_held_count++];
    *held = (fake_send_t){.fetched = param->cb.recv_am, .length = count, .user_data = param->user_data};
    return held;
}

static ucs_status_ptr_t fake_am_send(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                     const void *buffer, size_t count, const ucp_request_param_t *param)
{
    XXH3_64bits(buffer, count); /* UCX would read it */
    return fake_complete(param);
}

static void fake_request(void *request)
{
}

static ucs_status_t fake_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep_p)
{
    *ep_p = (ucp_ep_h)fuzz_user;
    return UCS_OK;
}

static ucs_status_ptr_t fake_ep_op(ucp_ep_h ep, const ucp_request_param_t *param)
{
    return fake_complete(param);
}

static ucs_status_ptr_t fake_get(ucp_ep_h ep, void *buffer, size_t count, uint64_t address, ucp_rkey_h rkey,
                                 const ucp_request_param_t *param)
{
    memset(buffer, 0, count);
    return fake_complete(param);
}

static ucs_status_t fake_mem_map(ucp_context_h context, const ucp_mem_map_params_t *params, ucp_mem_h *memh_p)
{
    if (params->address != NULL) {
        XXH3_64bits(params->address, params->length);
    }
    *memh_p          = malloc(1);
    *(char *)*memh_p = (params->length != sizeof(fuzz_our_slots)); /* else it is the mailbox's */
    if ((params->address == NULL) && (params->length > FUZZ_MAILBOX)) {
        abort();
    }
    return UCS_OK;
}

static ucs_status_t fake_mem_query(ucp_mem_h memh, ucp_mem_attr_t *attr)
{
    attr->address = *(char *)memh ? (void *)fuzz_our_mailbox : fuzz_our_slots;
    return UCS_OK;
}

static ucs_status_t fake_rkey_ptr(ucp_rkey_h rkey, uint64_t address, void **address_p)
{
    *address_p = (address == (uintptr_t)fuzz_their_mailbox) ? (void *)fuzz_their_mailbox : fuzz_their_slots;
    return UCS_OK;
}

static ucs_status_t fake_mem_unmap(ucp_context_h context, ucp_mem_h memh)
{
    free(memh);
    return UCS_OK;
}

static ucs_status_t fake_rkey_pack(ucp_context_h context, ucp_mem_h memh, void **buffer_p, size_t *size_p)
{
    *size_p   = 16;
    *buffer_p = calloc(1, *size_p);
    return UCS_OK;
}

static ucs_status_t fake_rkey_unpack(ucp_ep_h ep, const void *buffer, ucp_rkey_h *rkey_p)
{
    *rkey_p = malloc(1);
    return UCS_OK;
}

static void fake_rkey_destroy(ucp_rkey_h rkey)
{
    free(rkey);
}

/* As UCX before 1.14 */
static ucs_status_t fake_query(ucp_ep_h ep, ucp_ep_attr_t *attr)
{
    return UCS_OK;
}

static void fake_print_info(ucp_ep_h ep, FILE *stream)
{
    fprintf(stream, "#  lane[0]:  1:posix/memory.0 md[0]\n");
}

static ucs_status_t fake_get_address(ucp_worker_h worker, ucp_address_t **address_p, size_t *length_p)
{
    static char address[40];

    *address_p = (ucp_address_t *)address;
    *length_p  = sizeof(address);
    return UCS_OK;
}

static ucs_status_t fake_worker_query(ucp_worker_h worker, ucp_worker_attr_t *attr)
{
    attr->max_am_header = UINT16_MAX;
    return UCS_OK;
}

static void fake_release_address(ucp_worker_h worker, ucp_address_t *address)
{
}

static ucs_status_t fake_address_query(ucp_address_t *address, ucp_worker_address_attr_t *attr)
{
    attr->worker_uid = FUZZ_UID;
    return UCS_OK;
}

static unsigned fake_progress(ucp_worker_h worker)
{
    return 0;
}

static const char *fake_status_string(ucs_status_t status)
{
    return "a status";
}

static const char *fake_version(void)
{
    return "0";
}

static void *fuzz_shared(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        abort();
    }
    return memory;
}

static void fuzz_set_up(void)
{
    setenv("UCI_ON_ERROR", "log", 1);
    setenv("UCI_LOG_LEVEL", "fatal", 1);
    setenv("UCI_CHUNK_SIZE", "4k", 1);
    setenv("UCI_CONFIG_FILE", "", 1);
    setenv("UCI_PROFILE", "none", 1); /* not this machine's, and plans are made anew for each input */
    uci_settings_read();
    fuzz_their_slots   = fuzz_shared(UCI_SLOT_COUNT * sizeof(uci_slot_t));
    fuzz_our_mailbox   = fuzz_shared(FUZZ_MAILBOX);
    fuzz_their_mailbox = fuzz_shared(FUZZ_MAILBOX);
    uci_ucp            = (uci_ucp_t){.worker_set_am_recv_handler = fake_set_handler,
                                     .am_recv_data_nbx           = fake_am_recv_data,
                                     .am_send_nbx                = fake_am_send,
                                     .request_free               = fake_request,
                                     .ep_create                  = fake_ep_create,
                                     .ep_close_nbx               = fake_ep_op,
                                     .ep_flush_nbx               = fake_ep_op,
                                     .get_nbx                    = fake_get,
                                     .mem_map                    = fake_mem_map,
                                     .mem_unmap                  = fake_mem_unmap,
                                     .mem_query                  = fake_mem_query,
                                     .rkey_ptr                   = fake_rkey_ptr,
                                     .rkey_pack                  = fake_rkey_pack,
                                     .rkey_buffer_release        = fake_request,
                                     .ep_rkey_unpack             = fake_rkey_unpack,
                                     .rkey_destroy               = fake_rkey_destroy,
                                     .ep_print_info              = fake_print_info,
                                     .ep_query                   = fake_query,
                                     .worker_get_address         = fake_get_address,
                                     .worker_release_address     = fake_release_address,
                                     .worker_query               = fake_worker_query,
                                     .worker_address_query       = fake_address_query,
                                     .worker_progress            = fake_progress,
                                     .get_version_string         = fake_version,
                                     .status_string              = fake_status_string};
}

/* -------------------------------------------------------------- input */

typedef struct input {
    const uint8_t *data;
    size_t left;
} input_t;

static void take(input_t *input, void *to, size_t length)
{
    size_t given = uci_min(length, input->left);

    memset(to, 0, length);
    memcpy(to, input->data, given);
    input->data += given;
    input->left -= given;
}

static uint8_t take8(input_t *input)
{
    uint8_t value;

    take(input, &value, sizeof(value));
    return value;
}

static uint32_t take32(input_t *input)
{
    uint32_t value;

    take(input, &value, sizeof(value));
    return value;
}

/* Usually a small number, near to those in use */
static uint32_t take_number(input_t *input)
{
    uint8_t value = take8(input);

    return (value < 0xf0) ? value & 7 : take32(input);
}

static uint64_t take_uid(input_t *input)
{
    uint8_t value = take8(input);

    return (value < 0xf0) ? FUZZ_PEER_UID : (value < 0xf8) ? FUZZ_UID : value;
}

/* -------------------------------------------------------------- steps */

static uci_worker_t *fuzz_worker;
static uci_ep_t *fuzz_ep;

static void call_handler(uci_am_hdr_t *hdr, const void *payload, size_t length)
{
    ucp_am_recv_param_t param = {.recv_attr = 0};
    char *copy                = malloc(length); /* of exactly this length, for the sanitizer to see */

    memcpy(copy, payload, length);
    hdr->check = uci_am_check(hdr, (uci_control_carries(fuzz_worker, hdr) == UCI_AM_CARRIES_BYTES) ? NULL : copy,
                              length);
    fuzz_handler(fuzz_worker, hdr, sizeof(*hdr), copy, length, &param);
    free(copy);
}

/* About something that is under way, which a message of any other number does not reach: the first receive, or send */
static void address_receive(uci_am_hdr_t *hdr)
{
    const uci_recv_op_t *op;

    if (!uci_list_is_empty(&fuzz_worker->xfer.recv_ops)) {
        op       = uci_container_of(fuzz_worker->xfer.recv_ops.next, uci_recv_op_t, link);
        hdr->uid = op->peer->uid;
        hdr->seq = (uint32_t)op->seq;
        hdr->op  = op->slot;
    }
}

static void address_send(uci_am_hdr_t *hdr)
{
    const uci_send_op_t *op;

    if (!uci_list_is_empty(&fuzz_worker->xfer.send_ops)) {
        op       = uci_container_of(fuzz_worker->xfer.send_ops.next, uci_send_op_t, all);
        hdr->uid = op->peer->uid;
        hdr->seq = (op->frame != NULL) ? (uint32_t)op->frame->seq : hdr->seq;
    }
}

static void step_message(input_t *input)
{
    static char payload[8192];
    uint8_t bits     = take8(input);
    uci_am_hdr_t hdr = {.type = (uint8_t)(take8(input) % FUZZ_TYPES)};
    size_t length;

    hdr.flags  = (bits & 1) ? take8(input) : 0;
    hdr.uid    = take_uid(input);
    hdr.seq    = take_number(input);
    hdr.op     = take_number(input);
    hdr.index  = take_number(input);
    hdr.value  = (bits & 2) ? take32(input) : FUZZ_TAG;
    hdr.extra  = (bits & 4) ? take32(input) : 0;
    hdr.digest = (uint8_t)uci_settings.digest->id;
    length     = (bits & 8) ? (take8(input) * 32u) % sizeof(payload) : take8(input) % 97u;
    take(input, payload, length);
    hdr.length = (bits & 128) ? take32(input) : (uint32_t)length;
    if (bits & 32) {
        address_receive(&hdr);
    }
    if (bits & 64) {
        address_send(&hdr);
    }
    if ((hdr.type == UCI_AM_BOX) && (length >= sizeof(uci_am_box_t)) && (bits & 16)) {
        uci_am_box_t *box = (uci_am_box_t *)(void *)payload;

        box->address  = (uintptr_t)fuzz_their_mailbox;
        box->size     = (uint32_t)(UCI_MAILBOX_BELLS + (4 * uci_box_size(UCI_BOX_GRANULES_MIN)));
        box->granules = UCI_BOX_GRANULES_MIN;
        box->bell %= 4;
        box->offset = (uint32_t)(UCI_MAILBOX_BELLS + (box->bell * uci_box_size(UCI_BOX_GRANULES_MIN)));
    }
    if ((hdr.type == UCI_AM_DATA) && (bits & 16)) {
        hdr.value = uci_settings.digest->digest(payload, length);
    }
    if ((hdr.type == UCI_AM_HELLO) && (length >= sizeof(uci_mark_t)) && (bits & 16)) {
        uci_mark_t *mark = (uci_mark_t *)payload;

        mark->ucx_header = UCI_MARK_UCX_HEADER;
        mark->ucx_end    = UCI_MARK_UCX_END;
        mark->magic      = UCI_MARK_MAGIC;
        mark->protocol   = UCI_PROTOCOL_VERSION;
        mark->digests    = UINT32_MAX;
        uci_mark_finish(mark);
    }
    call_handler(&hdr, payload, length);
}

/* The offer of a segment, of a receive that is under way if there is one; the digests are those of zeros, or are not */
static void step_segment(input_t *input)
{
    ucp_am_recv_param_t param = {.recv_attr = UCP_AM_RECV_ATTR_FLAG_RNDV};
    struct {
        uci_am_hdr_t hdr;
        uint64_t leaves[32];
    } offer = {.hdr = {.type = UCI_AM_SEGMENT}};
    static const char zeros[4096];
    uint8_t bits = take8(input);
    unsigned i, more = (bits & 1) ? take8(input) % 32u : 0;
    uci_recv_op_t *op;
    void *copy;
    size_t length;

    offer.hdr.flags  = (bits & 2) ? UCI_AM_FLAG_LAST : 0;
    offer.hdr.uid    = take_uid(input);
    offer.hdr.op     = take_number(input);
    offer.hdr.seq    = take_number(input);
    offer.hdr.index  = take_number(input);
    offer.hdr.length = take8(input) * 512u;
    if ((bits & 4) && !uci_list_is_empty(&fuzz_worker->xfer.recv_ops)) {
        op               = uci_container_of(fuzz_worker->xfer.recv_ops.next, uci_recv_op_t, link);
        offer.hdr.uid    = op->peer->uid;
        offer.hdr.op     = op->slot;
        offer.hdr.seq    = (uint32_t)op->seq;
        offer.hdr.length = (bits & 8) ? (uint32_t)op->length : offer.hdr.length;
        offer.hdr.index  = (bits & 8) ? 0 : offer.hdr.index;
        more             = (bits & 16) ? uci_min(op->chunk.count, 32u) : more;
    }
    for (i = 0; i < more; ++i) {
        offer.leaves[i] = (bits & 32) ? take32(input) : uci_settings.digest->digest(zeros, sizeof(zeros));
    }
    length          = sizeof(offer.hdr) + (more * sizeof(uint64_t));
    copy            = malloc(length);
    offer.hdr.check = uci_am_check(&offer.hdr, offer.leaves, more * sizeof(uint64_t)) + ((bits & 64) ? 1 : 0);
    memcpy(copy, &offer, length);
    fuzz_handler(fuzz_worker, copy, (bits & 128) ? length - 1 : length, NULL, offer.hdr.length, &param);
    free(copy);
}

/* The receive that is under way first looks for what differs, or gets an answer to that: the nodes it asked about, with
 * children as it has them, or not quite */
static void step_nodes(input_t *input)
{
    uint64_t words[600];
    uci_am_hdr_t hdr = {.type = UCI_AM_NODES};
    uint8_t bits     = take8(input);
    size_t nodes[8], i, count, used = 0;
    unsigned level = 0;
    uci_recv_op_t *op;

    if (uci_list_is_empty(&fuzz_worker->xfer.recv_ops)) {
        return;
    }
    op = uci_container_of(fuzz_worker->xfer.recv_ops.next, uci_recv_op_t, link);
    if (!op->repair.descending) {
        uci_repair_ask_again(op, bits & 1);
        return;
    }
    count = uci_merkle_marked(op->chunk.tree, &level, nodes, (bits & 1) ? 1 : uci_array_size(nodes));
    for (i = 0; (i < count) && (used + 1 + UCI_MERKLE_ARITY_MAX <= uci_array_size(words)); ++i) {
        words[used++] = (bits & 2) ? take_number(input) : nodes[i];
        used += uci_merkle_children(op->chunk.tree, level, nodes[i], words + used);
        words[used - 1] ^= (bits & 4) ? take8(input) : 0;
    }
    hdr.uid    = op->peer->uid;
    hdr.seq    = (uint32_t)op->seq;
    hdr.op     = op->slot;
    hdr.index  = (bits & 8) ? take_number(input) : level;
    hdr.extra  = uci_merkle_root(op->chunk.tree, (uint32_t)op->seq, op->length, op->chunk.size) ^ ((bits & 16) ? 1 : 0);
    hdr.length = (uint32_t)((used * sizeof(*words)) - ((used > 0) ? take8(input) % (used * sizeof(*words)) : 0));
    call_handler(&hdr, words, hdr.length);
}

/* By active message, of exactly this length, for the sanitizer to see */
static void arrive(uci_frame_hdr_t *hdr, const char *payload, uint8_t bits)
{
    ucp_am_recv_param_t param = {.recv_attr = 0};
    size_t length             = sizeof(*hdr) + hdr->length;
    char *copy                = malloc(length);

    hdr->check = uci_frame_check(hdr, uci_frame_am_seed(hdr->mark, FUZZ_UID)) + ((bits & 32) ? 1 : 0);
    memcpy(copy, hdr, sizeof(*hdr));
    memcpy(copy + sizeof(*hdr), payload, hdr->length);
    fuzz_frame_handler(fuzz_worker, NULL, 0, copy, (bits & 128) ? length - 1 : length, &param);
    free(copy);
}

/* In the box of a peer, if it has one: where the next frame has to be, and as long as it says, or not */
static void place(uci_frame_hdr_t *hdr, const char *payload, uint8_t bits)
{
    uci_peer_t *peer = uci_worker_peer_find(fuzz_worker, FUZZ_PEER_UID);
    uci_box_rx_t *rx;
    char *to;

    if ((peer == NULL) || (peer->box.own < 0)) {
        return;
    }
    rx         = &fuzz_worker->link.mailbox.boxes[peer->box.own].rx;
    to         = (char *)rx->place;
    hdr->mark  = rx->expected;
    hdr->check = uci_frame_check(hdr, hdr->mark) + ((bits & 32) ? 1 : 0);
    memcpy(to, hdr, sizeof(*hdr));
    memcpy(to + sizeof(*hdr), payload, hdr->length);
    if (bits & 128) {
        hdr->length = UINT16_MAX;
        hdr->check  = uci_frame_check(hdr, hdr->mark);
        memcpy(to, hdr, sizeof(*hdr));
    }
    uci_doorbell_ring(fuzz_our_mailbox, (unsigned)peer->box.own);
    uci_worker_progress(fuzz_worker, fuzz_worker->ucp);
}

/* A frame whose header is right, whatever it says */
static void step_frame(input_t *input, bool placed)
{
    uint8_t bits        = take8(input);
    uci_frame_hdr_t hdr = {.kind = (uint8_t)(UCI_FRAME_EAGER + (bits & 3)), .tag = FUZZ_TAG};
    char payload[512];

    hdr.digest = (uint8_t)uci_settings.digest->id;
    hdr.mark   = take_uid(input);
    hdr.seq    = take_number(input);
    hdr.ack    = take_number(input);
    hdr.length = (uint16_t)(((hdr.kind == UCI_FRAME_RNDV) && !(bits & 64)) ? sizeof(uci_rndv_desc_t)
                                                                           : (take8(input) * 2));
    take(input, payload, hdr.length);
    if ((hdr.kind == UCI_FRAME_RNDV) && (hdr.length >= sizeof(uci_rndv_desc_t))) {
        uci_rndv_desc_t *desc = (uci_rndv_desc_t *)(void *)payload;

        desc->length %= FUZZ_BUFFER + 1000;
        desc->chunk_size = (bits & 4) ? 4096 : desc->chunk_size;
        desc->arity      = (bits & 8) ? 4 : desc->arity;
    }
    if (bits & 64) { /* the next one, whatever the input knows of that */
        uci_peer_t *peer = uci_worker_peer_find(fuzz_worker, hdr.mark);

        hdr.seq += (peer != NULL) ? (uint32_t)peer->rx.next : 0;
    }
    hdr.value = uci_settings.digest->digest(payload, hdr.length) + ((bits & 16) ? 1 : 0);
    (placed ? place : arrive)(&hdr, payload, bits);
}

/* The peer has taken all that lies in its mailbox, and says so; or something else is said there, or rung */
static void step_box(input_t *input)
{
    uci_peer_t *peer = uci_worker_peer_find(fuzz_worker, FUZZ_PEER_UID);
    uint8_t bits     = take8(input);
    uci_box_rx_t rx;

    if ((peer == NULL) || !peer->box.mapped) {
        return;
    }
    if (bits & 1) {
        uci_box_rx_init(&rx, peer->box.tx.box, (uint32_t)peer->box.tx.granules, peer->box.key);
        rx.place = (char *)peer->box.tx.place;
        rx.lap   = peer->box.tx.lap;
        uci_box_rx_tell(&rx, (bits & 2) ? (uint32_t)peer->tx.posted : take_number(input));
    } else {
        take(input, (bits & 2) ? (void *)&peer->box.tx.box->acked : &peer->box.tx.box->consumed, sizeof(uint64_t));
    }
    if (bits & 4) {
        fuzz_our_mailbox[take8(input) % UCI_CACHE_LINE] ^= 1;
    }
    if (bits & 8) {
        uci_link_look(fuzz_worker);
    }
}

/* What nobody has asked for is looked at, and taken by a handle */
static void step_probe(input_t *input)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    uint8_t bits              = take8(input);
    ucp_tag_recv_info_t info;
    ucp_tag_message_h handle;
    ucs_status_ptr_t request;

    handle = uci_unexpected_probe(fuzz_worker, FUZZ_TAG, (bits & 1) ? UINT64_MAX : 0, bits & 2, &info);
    if ((handle != NULL) && (bits & 2)) {
        request = uci_unexpected_recv(fuzz_worker, fuzz_user[bits % FUZZ_RECVS], (bits & 4) ? FUZZ_BUFFER : bits,
                                      handle, &param);
        if (UCS_PTR_IS_PTR(request)) {
            uci_request_free(uci_request_from_user(request));
        }
    }
}

static void give_back(ucs_status_ptr_t request)
{
    if (UCS_PTR_IS_PTR(request)) {
        uci_request_free(uci_request_from_user(request));
    }
}

static void step_recv(input_t *input)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    unsigned slot             = take8(input) % FUZZ_RECVS;
    size_t length             = (take8(input) & 1) ? FUZZ_BUFFER : take8(input);

    give_back(uci_recv(fuzz_worker, fuzz_user[slot], length, FUZZ_TAG, UINT64_MAX, &param));
}

static void step_send(input_t *input)
{
    static char data[200000];
    static const ucp_dt_iov_t iov[2] = {{data, 10000}, {data + 20000, 20000}};
    ucp_request_param_t param        = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = ucp_dt_make_contig(1)};
    uint8_t bits                     = take8(input);

    if (fuzz_ep == NULL) {
        return;
    }
    if (bits & 1) {
        param.op_attr_mask |= UCP_OP_ATTR_FLAG_FAST_CMPL;
    }
    if (bits & 2) {
        param.datatype = ucp_dt_make_iov();
        give_back(uci_send(fuzz_ep, iov, 2, FUZZ_TAG, &param, bits & 4));
    } else {
        give_back(uci_send(fuzz_ep, data, (bits & 8) ? sizeof(data) : bits, FUZZ_TAG, &param, bits & 4));
    }
}

static void let_go(void)
{
    fake_send_t held;

    while (fuzz_held_count > 0) {
        held = fuzz_held[--fuzz_held_count];
        if (held.fetched != NULL) {
            held.fetched(&fuzz_held[fuzz_held_count], (held.length & 64) ? UCS_ERR_IO_ERROR : UCS_OK, held.length,
                         held.user_data);
        } else {
            held.cb(&fuzz_held[fuzz_held_count], UCS_OK, held.user_data);
        }
    }
}

static void step_close(void)
{
    ucp_request_param_t param = {.op_attr_mask = 0};

    if (fuzz_ep != NULL) {
        give_back(uci_ep_close(fuzz_ep, &param));
        fuzz_ep = NULL;
    }
}

/* The peer maps our slots, and we its */
static void step_share(void)
{
    uci_am_hdr_t pool   = {.type = UCI_AM_POOL, .uid = FUZZ_PEER_UID},
                 mapped = {.type = UCI_AM_MAPPED, .uid = FUZZ_PEER_UID};
    char message[64]    = "";
    uci_am_pool_t *to   = (uci_am_pool_t *)(void *)message;

    to->slot_size  = UCI_SLOT_SIZE;
    to->slot_count = UCI_SLOT_COUNT;
    (void)fuzz_worker->calls.message(fuzz_worker, &pool, message, sizeof(message), NULL);
    (void)fuzz_worker->calls.message(fuzz_worker, &mapped, NULL, 0, NULL);
}

/* The peer takes one of our slots, or fills one of its own: as a receive that is under way expects, or not quite */
static void step_slot(input_t *input)
{
    unsigned what = take8(input), number = take8(input) % UCI_SLOT_COUNT;
    uci_slot_t *slot = &fuzz_their_slots[number];
    uci_direct_recv_t *direct;
    uci_recv_op_t *op;

    if (what & 1) {
        fuzz_our_slots[number].ack = uci_slot_ack_word(fuzz_our_slots[number].mark);
        return;
    }
    if (uci_list_is_empty(&fuzz_worker->xfer.direct_recvs)) {
        return;
    }
    op           = uci_container_of(fuzz_worker->xfer.direct_recvs.next, uci_recv_op_t, way.link);
    direct       = uci_path_state(op, uci_direct_recv_t);
    slot->length = (what & 2) ? ((what & 64) ? take32(input) : take8(input))
                              : uci_chunk_length(op->length, op->chunk.size, direct->taken);
    slot->value  = (what & 4) ? take8(input)
                              : op->chunk.digest->digest(slot->data, uci_min(slot->length, UCI_SLOT_SIZE));
    slot->root   = take8(input);
    slot->mark   = uci_slot_mark(FUZZ_UID, op->seq, direct->taken);
    slot->next   = (what & 8) ? take8(input) * 1000u : uci_slot_next_word(slot->mark, take8(input) % UCI_SLOT_COUNT);
    slot->check  = (what & 16) ? 0 : uci_slot_check(slot, slot->mark);
    direct->slot_now = (what & 32) ? direct->slot_now : (uint16_t)number;
}

static void step_progress(void)
{
    unsigned i;

    for (i = 0; i < UCI_RESYNC_POLLS; ++i) {
        uci_worker_progress(fuzz_worker, fuzz_worker->ucp);
    }
}

static void step(input_t *input)
{
    switch (take8(input) % 18) {
    case 0:
    case 1:
        step_recv(input);
        break;
    case 2:
    case 3:
        step_frame(input, false);
        break;
    case 4:
        step_frame(input, true);
        break;
    case 5:
    case 6:
        step_send(input);
        break;
    case 7:
        step_progress();
        break;
    case 8:
        let_go();
        break;
    case 9:
        fuzz_hold = !fuzz_hold;
        break;
    case 10:
        step_close();
        break;
    case 11:
        step_slot(input);
        break;
    case 12:
        step_share();
        break;
    case 13:
        step_segment(input);
        break;
    case 14:
        step_nodes(input);
        break;
    case 16:
        step_box(input);
        break;
    case 17:
        step_probe(input);
        break;
    default:
        step_message(input);
        break;
    }
}

/* ---------------------------------------------------------- one input */

static void open_ep(void)
{
    char address[sizeof(uci_mark_t) + 40] = "";
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = (void *)address};

    uci_mark_init((uci_mark_t *)address, FUZZ_PEER_UID);
    ((uci_mark_t *)address)->eager_max = 4096;
    uci_mark_finish((uci_mark_t *)address);
    if (uci_ep_open(fuzz_worker, &params, &fuzz_ep) != UCS_OK) {
        abort();
    }
}

/* A worker that goes leaves what is under way as it is: end it, so that millions of inputs fit into memory */
static void end_operations(void)
{
    let_go();
    while (!uci_list_is_empty(&fuzz_worker->xfer.landed)) {
        uci_get_path.progress(fuzz_worker); /* an operation does not end while these are part of it */
    }
    uci_list_for_each_safe(send_op, &fuzz_worker->xfer.send_ops, uci_send_op_t, all)
    {
        uci_send_op_finish(send_op, UCS_OK);
    }
    while (!uci_list_is_empty(&fuzz_worker->xfer.recv_ops)) {
        uci_repair_failed(uci_container_of(fuzz_worker->xfer.recv_ops.next, uci_recv_op_t, link), UCI_REASON_CLOSED);
    }
}

/* The counters that libFuzzer has the compiler make, which it clears before each input, and what they are of. Not named in C: the compiler does that */
__asm__(".pushsection .data.rel.ro, \"aw\"\n"
        "fuzz_covered: .quad __start___sancov_cntrs, __stop___sancov_cntrs, __start___sancov_pcs, __executable_start\n"
        ".popsection");
extern const struct {
    const uint8_t *counters, *end;
    const struct {
        uintptr_t address, is_function;
    } * places;
    uintptr_t base;
} fuzz_covered;

/* The functions that this input has reached, by the numbers that nm has for them: run_fuzz.sh looks there for the one that a seed is named after */
static void print_reached(void)
{
    size_t i, count = (size_t)(fuzz_covered.end - fuzz_covered.counters);

    for (i = 0; i < count; ++i) {
        if ((fuzz_covered.counters[i] != 0) && fuzz_covered.places[i].is_function) {
            fprintf(stderr, "%016lx\n", fuzz_covered.places[i].address - fuzz_covered.base);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uci_context_t context      = {.buffered_max = 8192, .buffered_fast_max = 1 << 18};
    ucp_worker_params_t params = {.field_mask = 0};
    input_t input              = {data, size};
    uint8_t kind;

    if (uci_ucp.am_send_nbx == NULL) {
        fuzz_set_up();
    }
    /* large messages take the get path in half of the inputs, the bounce path in a quarter */
    kind              = take8(&input);
    uci_settings.path = (kind & 1) ? UCI_PATH_GET : (kind & 2) ? UCI_PATH_BOUNCE : UCI_PATH_AUTO;
    /* and ours have more leaves than are told at once, in some */
    uci_settings.chunk_size = (kind & 64) ? 256 : 4096;
    uci_tuner_refresh();
    fuzz_held_count = 0;
    fuzz_hold       = false;
    if (uci_worker_create((ucp_worker_h)&context, &context, &params, UCS_THREAD_MODE_SINGLE, &fuzz_worker) != UCS_OK) {
        abort();
    }
    open_ep();
    while (input.left > 0) {
        step(&input);
    }
    fuzz_hold = false;
    end_operations();
    uci_worker_shutdown(fuzz_worker);
    uci_worker_destroy(fuzz_worker);
    if (getenv("FUZZ_REACHED") != NULL) {
        print_reached();
    }
    return 0;
}
