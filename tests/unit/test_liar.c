/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Peers that lie, with valid checks. Two UCIs talk by a network of the test's own (fake_net.h), by every path, with and without damage
 * to be repaired. One conversation is had honestly and taken down; then again and again, each time with one lie: one field of one
 * message, or of one slot, or of one frame in a mailbox, has another value, or a payload another length, and all checks and digests
 * over it are made anew. Whatever
 * is said, nobody crashes, reads or writes where he should not (suite asan), or goes on for ever, and a receive that ends well has
 * brought the bytes that were sent. What no UCI can have said is refused, and counted.
 */
#include <criterion/criterion.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>

#include "conn/bye.h"
#include "link/slot.h"
#include "capture.h"
#include "cpu_limit.h"
#include "fake_net.h"
#include "generic.h"
#include "link/mailbox.h"
#include "util/process.h"
#include "link/txlog.h"
#include "transfer/stream.h"

#define TAG        7u
#define LENGTH_MAX 300000u
#define RECVS_MAX  140u
#define TURNS_MAX  400u /* of both sides, after which a conversation is over */
#define CASE_S     20   /* of processor time, for one of them */
#define RECORD_MAX 4096u
#ifdef __SANITIZE_ADDRESS__
#define ALIKE 1u /* messages of one kind, from one side, that are lied in */
#else
#define ALIKE 2u
#endif

/* ------------------------------------------------------------ conversations */

/* What of a conversation is damaged, so that more is to be said */
typedef enum {
    DAMAGE_NONE,
    DAMAGE_CHUNK,
    DAMAGE_DESC,
    DAMAGE_ROOT,
    DAMAGE_HEADER,
    DAMAGE_FRAME,
    DAMAGE_COPY,   /* the frame, and what it could be repaired from */
    DAMAGE_PLACED, /* a frame in a mailbox */
    DAMAGE_MARK    /* its mark: as if it had not been posted */
} damage_t;

typedef struct talk {
    const char *name;
    uci_path_t path;
    const char *transports;
    size_t chunk_size;
    size_t length;     /* of each message */
    unsigned messages; /* one after the other */
    bool sync;
    bool iov;   /* received into pieces */
    bool first; /* there was nothing before: the peers get to know each other */
    bool close; /* the sender closes before anything is received */
    bool no_rdma;
    damage_t damage;
    bool mailbox;                     /* frames go through one */
    bool buffered;                    /* sends are over for the user when they have begun */
    const uci_signature_t *signature; /* that sends and receives carry, or NULL */
} talk_t;

/* Types that a companion tells. Holding and releasing is counted */
static int talk_held;

static const char *talk_code_name(unsigned code)
{
    return "A";
}

static int talk_matches(const uci_signature_t *sent, const uci_signature_t *posted)
{
    return (sent->word == posted->word) && (sent->hash == posted->hash);
}

static void talk_hold(const void *type)
{
    ++talk_held;
}

static void talk_release(const void *type)
{
    --talk_held;
}

static const uci_signature_ops_t talk_ops = {sizeof(talk_ops), talk_code_name, talk_matches, talk_hold, talk_release};

static const uci_signature_t talk_word  = {.word = (5ull << 48) | 60, .call = "MPI_Recv"};
static const uci_signature_t talk_mixed = {.word = ((uint64_t)UCI_SIGNATURE_MIXED << 48) | 60,
                                           .hash = 0x123456789abcdef,
                                           .unit = 3,
                                           .text = "{2 x A, B}",
                                           .call = "MPI_Recv"};

static const talk_t talks[] = {
        {"first words", UCI_PATH_DIRECT, "posix/memory", 4096, 20000, 2, .first = true},
        {"small frames", UCI_PATH_AUTO, "posix/memory", 4096, 60, 2},
        {"signed", UCI_PATH_AUTO, "posix/memory", 4096, 60, 2, .signature = &talk_word},
        {"signed, mixed", UCI_PATH_AUTO, "posix/memory", 4096, 60, 2, .signature = &talk_mixed},
        {"signed, larger", UCI_PATH_AUTO, "posix/memory", 4096, 1500, 1, .signature = &talk_word},
        {"signed, synchronous", UCI_PATH_AUTO, "posix/memory", 4096, 100, 1, .sync = true, .signature = &talk_mixed},
        {"signed, repaired", UCI_PATH_AUTO, "posix/memory", 4096, 1500, 2, .damage = DAMAGE_FRAME,
         .signature = &talk_mixed},
        {"signed, lost", UCI_PATH_AUTO, "posix/memory", 4096, 1500, 2, .damage = DAMAGE_COPY, .signature = &talk_word},
        {"signed, mailbox", UCI_PATH_AUTO, "posix/memory", 4096, 60, 3, .mailbox = true, .signature = &talk_word},
        {"signed, mailbox, mixed", UCI_PATH_AUTO, "posix/memory", 4096, 60, 2, .mailbox = true,
         .signature = &talk_mixed},
        {"signed, rendezvous", UCI_PATH_STREAM, "tcp/eth0", 4096, 20000, 1, .signature = &talk_word},
        {"signed, mixed, rendezvous", UCI_PATH_STREAM, "tcp/eth0", 4096, 20000, 1, .signature = &talk_mixed},
        {"signed, close, adopted", UCI_PATH_STREAM, "tcp/eth0", 4096, 20000, 2, .close = true, .buffered = true,
         .signature = &talk_mixed},
        {"acknowledgements", UCI_PATH_AUTO, "posix/memory", 4096, 60, 129},
        {"eager frames", UCI_PATH_AUTO, "posix/memory", 4096, 1500, 2},
        {"synchronous", UCI_PATH_AUTO, "posix/memory", 4096, 100, 1, .sync = true},
        {"lost header", UCI_PATH_AUTO, "posix/memory", 4096, 60, 2, .damage = DAMAGE_HEADER},
        {"repaired frame", UCI_PATH_AUTO, "posix/memory", 4096, 1500, 2, .damage = DAMAGE_FRAME},
        {"lost frame", UCI_PATH_AUTO, "posix/memory", 4096, 1500, 2, .damage = DAMAGE_COPY},
        {"mailbox, first words", UCI_PATH_AUTO, "posix/memory", 4096, 60, 30, .first = true, .mailbox = true},
        {"mailbox", UCI_PATH_AUTO, "posix/memory", 4096, 60, 3, .mailbox = true},
        {"mailbox, synchronous", UCI_PATH_AUTO, "posix/memory", 4096, 100, 1, .sync = true, .mailbox = true},
        {"mailbox, rendezvous", UCI_PATH_STREAM, "posix/memory", 4096, 20000, 1, .mailbox = true},
        {"mailbox, repaired", UCI_PATH_AUTO, "posix/memory", 4096, 1500, 3, .damage = DAMAGE_PLACED, .mailbox = true},
        {"mailbox, lost mark", UCI_PATH_AUTO, "posix/memory", 4096, 1500, 3, .damage = DAMAGE_MARK, .mailbox = true},
        {"stream", UCI_PATH_STREAM, "tcp/eth0", 4096, 20000, 1},
        {"stream, pieces", UCI_PATH_STREAM, "posix/memory", 4096, 20000, 1, .iov = true},
        {"stream, repaired by get", UCI_PATH_STREAM, "tcp/eth0", 4096, 20000, 1, .damage = DAMAGE_CHUNK},
        {"stream, told ahead", UCI_PATH_STREAM, "rc_mlx5/mlx5_0", 4096, 20000, 1, .damage = DAMAGE_CHUNK},
        {"pieces, repaired by get", UCI_PATH_STREAM, "tcp/eth0", 4096, 20000, 1, .iov = true, .damage = DAMAGE_CHUNK},
        {"stream, repaired by copy", UCI_PATH_STREAM, "tcp/eth0", 4096, 20000, 1, .no_rdma = true,
         .damage = DAMAGE_CHUNK},
        {"repaired descriptor", UCI_PATH_STREAM, "tcp/eth0", 4096, 20000, 1, .damage = DAMAGE_DESC},
        {"wrong root", UCI_PATH_STREAM, "tcp/eth0", 4096, 20000, 1, .damage = DAMAGE_ROOT},
        {"wrong root of many", UCI_PATH_STREAM, "tcp/eth0", 256, 200000, 1, .damage = DAMAGE_ROOT},
        {"get", UCI_PATH_GET, "tcp/eth0", 4096, 20000, 1},
        {"get, many chunks", UCI_PATH_GET, "tcp/eth0", 256, 20000, 1},
        {"bounce", UCI_PATH_BOUNCE, "tcp/eth0", 4096, 40000, 1},
        {"direct", UCI_PATH_DIRECT, "posix/memory", 4096, 20000, 2},
        {"direct, pieces", UCI_PATH_DIRECT, "posix/memory", 4096, 20000, 1, .iov = true},
        {"close", UCI_PATH_STREAM, "tcp/eth0", 4096, 60, 2, .close = true},
        {"close, adopted", UCI_PATH_STREAM, "tcp/eth0", 4096, 20000, 2, .close = true, .buffered = true},
};

typedef struct received {
    bool done;
    ucs_status_t status;
    size_t length;
} received_t;

static char talk_data[LENGTH_MAX], talk_buffers[2][LENGTH_MAX];
static received_t talk_received[RECVS_MAX], talk_sent[RECVS_MAX];
static void *talk_requests[2 * RECVS_MAX + 8];
static unsigned talk_requests_count;
static unsigned talk_wrong; /* received well, and not what was sent */

/* ------------------------------------------------------------------- lies */

typedef enum {
    PLACE_HEADER,
    PLACE_PAYLOAD,
    PLACE_LENGTH,
    PLACE_SLOT,
    PLACE_SLOT_RAW,
    PLACE_BOX,
    PLACE_BOX_RAW
} place_t;

/* What was said, honestly */
typedef struct said {
    bool am, slot, box; /* none of these: a frame by active message */
    unsigned from;
    uint8_t kind; /* of frame or message */
    uint16_t flags;
    size_t header, length;
} said_t;

typedef struct lie {
    unsigned number; /* of what is said in the conversation */
    place_t place;
    unsigned offset, width;
    uint64_t value;
    bool relative; /* it is added */
} lie_t;

static const talk_t *liar_talk;
static said_t liar_record[RECORD_MAX];
static unsigned liar_count; /* of what was said so far */
static const lie_t *liar_lie;
static bool liar_on, liar_damaged, liar_lied;
static uint64_t liar_marks[UCI_SLOT_COUNT];
static unsigned liar_slots; /* that were used */
static char liar_case[256] = "nothing yet";

static void put(char *at, const lie_t *lie)
{
    uint64_t value = 0;

    memcpy(&value, at, lie->width);
    value = lie->relative ? value + lie->value : lie->value;
    memcpy(at, &value, lie->width);
    liar_lied = true;
}

/* The check of an active message, as docs/design.md has it */
static void seal_message(net_message_t *message)
{
    char *payload     = message->rndv ? message->header + sizeof(uci_am_hdr_t) : message->data;
    size_t length     = message->rndv ? message->header_length - sizeof(uci_am_hdr_t) : message->length;
    uci_am_hdr_t *hdr = (uci_am_hdr_t *)(void *)message->header;
    uint64_t check    = XXH3_64bits(message->header + 4, sizeof(*hdr) - 4);

    hdr->check = (uint32_t)((hdr->type == UCI_AM_DATA) ? check : check ^ XXH3_64bits_withSeed(payload, length, check));
}

/* A frame on its way, of whomever it says it is from, or in a place of a mailbox */
static void seal_frame(char *data, uint64_t seed)
{
    uci_frame_hdr_t *hdr = (uci_frame_hdr_t *)(void *)data;

    hdr->check = (uint32_t)XXH3_64bits_withSeed(data + 12, sizeof(*hdr) - 12, seed);
}

static void digest_frame(char *data)
{
    uci_frame_hdr_t *hdr = (uci_frame_hdr_t *)(void *)data;

    hdr->value = XXH3_64bits(data + sizeof(*hdr), hdr->length);
}

static void lie_in_frame(net_message_t *message, const lie_t *lie)
{
    size_t head = sizeof(uci_frame_hdr_t), total = head + lie->value;
    char *data   = message->data;
    uint64_t uid = net_nodes[1 - message->from].worker->uid;

    if (lie->place == PLACE_HEADER) {
        put(data + lie->offset, lie);
    } else if (lie->place == PLACE_PAYLOAD) {
        put(data + head + lie->offset, lie);
        digest_frame(data);
    } else {
        data = calloc(1, total);
        memcpy(data, message->data, uci_min(total, message->length));
        free(message->data);
        message->data   = data;
        message->length = message->have                    = total;
        liar_lied                                          = true;
        ((uci_frame_hdr_t *)(void *)message->data)->length = (uint16_t)lie->value;
        digest_frame(data);
    }
    seal_frame(data, uci_frame_am_seed(((uci_frame_hdr_t *)(void *)data)->mark, uid));
}

static void lie_in_message(net_message_t *message, const lie_t *lie)
{
    uci_am_hdr_t *hdr = (uci_am_hdr_t *)(void *)message->header;
    char *payload     = message->rndv ? message->header + sizeof(*hdr) : message->data;
    size_t length     = uci_min(lie->value, message->length);
    char *data;

    if (lie->place == PLACE_HEADER) {
        put(message->header + lie->offset, lie);
        message->length = message->rndv ? hdr->length : message->length;
    } else if (lie->place == PLACE_PAYLOAD) {
        put(payload + lie->offset, lie);
        if (hdr->type == UCI_AM_DATA) {
            hdr->value = XXH3_64bits(message->data, message->length);
        }
    } else if (message->rndv) {
        data = calloc(1, sizeof(*hdr) + lie->value);
        memcpy(data, message->header, uci_min(message->header_length, sizeof(*hdr) + lie->value));
        free(message->header);
        message->header        = data;
        message->header_length = sizeof(*hdr) + lie->value;
        liar_lied              = true;
    } else {
        data = calloc(1, uci_max(lie->value, 1ul));
        memcpy(data, message->data, length);
        free(message->data);
        message->data   = data;
        message->length = lie->value;
        hdr->length     = (uint32_t)lie->value;
        liar_lied       = true;
    }
    seal_message(message);
}

static said_t describe(const net_message_t *message)
{
    const uci_am_hdr_t *hdr = (const uci_am_hdr_t *)(const void *)message->header;
    said_t said             = {.am = !message->frame, .from = message->from, .length = message->length};

    if (said.am) {
        said.kind   = hdr->type;
        said.flags  = hdr->flags;
        said.header = sizeof(*hdr);
        said.length = message->rndv ? message->header_length - sizeof(*hdr) : message->length;
    } else {
        said.kind   = (uint8_t)message->data[12];
        said.header = sizeof(uci_frame_hdr_t);
        said.length -= said.header;
    }
    return said;
}

static void damage_copy(const net_message_t *message)
{
    const uci_frame_hdr_t *hdr = (const uci_frame_hdr_t *)(const void *)message->data;
    uci_frame_t *frame         = uci_txlog_find(net_nodes[message->from].ep->peer, hdr->seq);

    if (frame != NULL) { /* it may lie about its number */
        uci_frame_payload(frame)[7] ^= 1;
    }
}

/* Honest damage, once, as a wire does it */
static void damage(net_message_t *message, const said_t *said)
{
    bool chunk        = said->am && (said->kind == UCI_AM_DATA) && !(said->flags & UCI_AM_FLAG_REPAIR);
    uci_am_hdr_t *hdr = (uci_am_hdr_t *)(void *)message->header;

    if (liar_damaged || (!said->am && (message->length <= said->header + 3))) {
        return;
    }
    if ((liar_talk->damage == DAMAGE_CHUNK) && chunk && (hdr->index == 1)) {
        message->data[5] ^= 4;
    } else if ((liar_talk->damage == DAMAGE_ROOT) && chunk && (hdr->index == 1)) {
        /* a chunk and its digest are exchanged for others: only the tree shows it */
        message->data[5] ^= 4;
        hdr->value = XXH3_64bits(message->data, message->length);
        seal_message(message);
    } else if ((liar_talk->damage == DAMAGE_DESC) && (uci_frame_kind(said->kind) == UCI_FRAME_RNDV) && !said->am) {
        message->data[said->header + 3] ^= 4;
    } else if ((liar_talk->damage == DAMAGE_HEADER) && !said->am) {
        message->data[16] ^= 4;
    } else if (((liar_talk->damage == DAMAGE_FRAME) || (liar_talk->damage == DAMAGE_COPY)) && !said->am) {
        message->data[said->header + 3] ^= 4;
        if (liar_talk->damage == DAMAGE_COPY) {
            damage_copy(message);
        }
    } else {
        return;
    }
    liar_damaged = true;
}

static void record(const said_t *said)
{
    if ((liar_lie == NULL) && (liar_count < RECORD_MAX)) {
        liar_record[liar_count] = *said;
    }
    ++liar_count;
}

static void liar_sent(net_message_t *message)
{
    said_t said;

    if (!liar_on) {
        return;
    }
    said = describe(message);
    if ((liar_lie != NULL) && (liar_lie->number == liar_count) && (liar_lie->place < PLACE_SLOT)) {
        (said.am ? lie_in_message : lie_in_frame)(message, liar_lie);
    }
    record(&said);
    damage(message, &said);
}

/* A slot that has been filled: the filler lies in it with a right check, or either side writes into it what it likes */
static void liar_filled(uci_slot_t *slot)
{
    said_t said = {.slot = true, .length = slot->length};

    if ((liar_lie != NULL) && (liar_lie->number == liar_count) && (liar_lie->place <= PLACE_SLOT_RAW) &&
        (liar_lie->place >= PLACE_SLOT)) {
        put((char *)slot + liar_lie->offset, liar_lie);
        if (liar_lie->place == PLACE_SLOT) {
            slot->check = uci_slot_check(slot, slot->mark);
        }
    }
    record(&said);
}

/* Slots that were ever used: they are in turn. To look at the mark of another one makes a page of it, which takes most of a conversation's time */
static unsigned used_slots(void)
{
    unsigned first = net_nodes[0].worker->link.bounce.first;

    liar_slots = (first < liar_slots) ? UCI_SLOT_COUNT : first;
    return liar_slots;
}

static void look_at_slots(void)
{
    uci_slot_t *slots = net_nodes[0].worker->link.bounce.slots;
    unsigned count    = used_slots(), i;

    for (i = 0; liar_on && (slots != NULL) && (i < count); ++i) {
        if (slots[i].mark != liar_marks[i]) {
            liar_marks[i] = slots[i].mark;
            liar_filled(&slots[i]);
            liar_marks[i] = slots[i].mark;
        }
    }
}

/* The same of a frame in a mailbox, which is damaged there if that is to be. @return its length, as it was posted */
static size_t liar_posted(unsigned from, char *data)
{
    uci_frame_hdr_t *hdr = (uci_frame_hdr_t *)(void *)data;
    said_t said = {.box = true, .from = from, .kind = hdr->kind, .header = sizeof(*hdr), .length = hdr->length};

    if ((liar_lie != NULL) && (liar_lie->number == liar_count) && (liar_lie->place >= PLACE_BOX)) {
        put(data + liar_lie->offset, liar_lie);
        if (liar_lie->place == PLACE_BOX) {
            if (liar_lie->offset >= sizeof(*hdr)) {
                digest_frame(data);
            }
            seal_frame(data, hdr->mark);
        }
    }
    record(&said);
    if (!liar_damaged && ((liar_talk->damage == DAMAGE_PLACED) || (liar_talk->damage == DAMAGE_MARK))) {
        data[(liar_talk->damage == DAMAGE_MARK) ? 2 : 20] ^= 4;
        liar_damaged = true;
    }
    return said.header + said.length;
}

/* The boxes that nodes post into are looked into as their receivers do, before they do */
static struct {
    uint64_t key;
    uci_box_rx_t rx;
} liar_boxes[NET_NODES];

static void look_at_box(unsigned from)
{
    const uci_peer_t *peer = uci_worker_peer_find(net_nodes[from].worker, net_nodes[1 - from].worker->uid);
    uci_box_rx_t *rx       = &liar_boxes[from].rx;
    char *place;

    if ((peer == NULL) || !peer->box.mapped) {
        return;
    }
    if ((rx->box != peer->box.tx.box) || (liar_boxes[from].key != peer->box.key)) {
        liar_boxes[from].key = peer->box.key;
        uci_box_rx_init(rx, peer->box.tx.box, (uint32_t)peer->box.tx.granules, peer->box.key);
    }
    while ((place = (char *)uci_box_rx_peek(rx)) != NULL) {
        uci_box_rx_next(rx, liar_on ? liar_posted(from, place)
                                    : sizeof(uci_frame_hdr_t) + ((uci_frame_hdr_t *)(void *)place)->length);
    }
}

static void look_at_all(void)
{
    look_at_slots();
    look_at_box(0);
    look_at_box(1);
}

/* ----------------------------------------------------- having a conversation */

static void on_sent(void *request, ucs_status_t status, void *user_data)
{
    *(received_t *)user_data = (received_t){true, status, 0};
}

static void on_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    *(received_t *)user_data = (received_t){true, status, info->length};
}

/* To be given back when all is over: until then its callback is to be called */
static void keep(ucs_status_ptr_t request)
{
    cr_assert(!UCS_PTR_IS_ERR(request), "%s: %d", liar_case, UCS_PTR_STATUS(request));
    cr_assert(talk_requests_count < uci_array_size(talk_requests));
    if (UCS_PTR_IS_PTR(request)) {
        talk_requests[talk_requests_count++] = request;
    }
}

static void give_back(void)
{
    while (talk_requests_count > 0) {
        uci_request_free(uci_request_from_user(talk_requests[--talk_requests_count]));
    }
}

static ucs_status_ptr_t start_recv(unsigned node, unsigned number, size_t length, bool iov)
{
    static ucp_dt_iov_t pieces[2][3];
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.recv   = on_received,
                                 .user_data = &talk_received[number],
                                 .datatype  = iov ? ucp_dt_make_iov() : ucp_dt_make_contig(1)};
    char *buffer              = talk_buffers[number % 2];

    pieces[number % 2][0] = (ucp_dt_iov_t){buffer, 5000};
    pieces[number % 2][1] = (ucp_dt_iov_t){buffer + 5000, 3};
    pieces[number % 2][2] = (ucp_dt_iov_t){buffer + 5003, length - 5003};
    memset(buffer, 0xee, length);
    talk_received[number] = (received_t){0};
    if ((liar_talk != NULL) && (liar_talk->signature != NULL)) {
        return uci_recv_with(net_nodes[node].worker, buffer, length, TAG, UINT64_MAX, &param, liar_talk->signature);
    }
    return uci_recv(net_nodes[node].worker, iov ? (void *)pieces[number % 2] : buffer, iov ? 3 : length, TAG,
                    UINT64_MAX, &param);
}

static ucs_status_ptr_t start_send(unsigned node, unsigned number, size_t length, bool sync)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send      = on_sent,
                                 .user_data    = &talk_sent[number]};
    ucs_status_ptr_t request;

    talk_sent[number] = (received_t){0};
    request           = ((liar_talk != NULL) && (liar_talk->signature != NULL))
                                ? uci_send_with(net_nodes[node].ep, talk_data, length, TAG, &param, sync, liar_talk->signature)
                                : uci_send(net_nodes[node].ep, talk_data, length, TAG, &param, sync);
    talk_sent[number].done |= (request == NULL);
    return request;
}

static bool is_over(unsigned count, bool sent_too)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        if (!talk_received[i].done || (sent_too && !talk_sent[i].done)) {
            return false;
        }
    }
    return net_is_idle();
}

static void let_each_have_a_turn(void)
{
    look_at_all();
    net_turn(1);
    look_at_all();
    net_turn(0);
    look_at_all();
}

/* What waits until nothing else has come is taken as well, and answered. @return whether all that was begun is done; else nothing more comes of it */
static bool let_them_talk(unsigned first, unsigned count, bool sent_too)
{
    unsigned turn;

    for (turn = 0; turn < TURNS_MAX; ++turn) {
        net_clock += net_is_idle() ? 3000000000ul : 2000000ul;
        let_each_have_a_turn();
        if (is_over(count, sent_too)) {
            let_each_have_a_turn();
            let_each_have_a_turn();
            return true;
        }
    }
    return false;
}

/* A descriptor that is called something else is a message of 16 bytes, which is as good as any */
static bool liar_is_kind_of_descriptor(void)
{
    const said_t *said = (liar_lie != NULL) ? &liar_record[liar_lie->number] : NULL;

    return (said != NULL) && !said->am && !said->slot && (uci_frame_kind(said->kind) == UCI_FRAME_RNDV) &&
           ((liar_lie->place == PLACE_HEADER) || (liar_lie->place == PLACE_BOX)) && (liar_lie->offset == 12);
}

static void compare(unsigned number, size_t length)
{
    const received_t *received = &talk_received[number];
    size_t i;

    if (!received->done || (received->status != UCS_OK) || liar_is_kind_of_descriptor()) {
        return;
    }
    for (i = 0; i < received->length; ++i) {
        /* a liar's frame may have more, which is zeros, or what was its signature */
        if ((i >= length) && (liar_talk != NULL) && (liar_talk->signature != NULL)) {
            return;
        }
        if (talk_buffers[number % 2][i] != ((i < length) ? talk_data[i] : 0)) {
            ++talk_wrong;
            return;
        }
    }
}

/* One message after the other; the two sides have done so before, unless these are their first words */
static bool exchange(unsigned count, size_t length, bool sync, bool iov, bool close)
{
    bool over                 = true;
    ucp_request_param_t param = {.op_attr_mask = 0};
    unsigned i;

    for (i = 0; i < count; ++i) {
        if (!close) {
            keep(start_recv(1, i, LENGTH_MAX, iov));
        }
        keep(start_send(0, i, length, sync));
        over = close || let_them_talk(i, i + 1, true);
        if (!close) {
            compare(i, length);
        }
        if (!over) {
            return false;
        }
    }
    if (close) {
        keep(uci_ep_close(net_connect(0, 1), &param)); /* one of several, and the last */
        keep(uci_ep_close(net_nodes[0].ep, &param));
        net_nodes[0].ep = NULL;
        for (i = 0; i < 20; ++i) {
            net_clock += 2000000;
            look_at_all();
            net_turn(1);
            look_at_all();
            net_turn(0);
        }
        for (i = 0; i < count; ++i) {
            keep(start_recv(1, i, LENGTH_MAX, iov));
            over = let_them_talk(i, i + 1, false) && over;
            compare(i, length);
        }
    }
    return over;
}

static void get_acquainted(const talk_t *talk)
{
    talk_t before = *talk;
    unsigned i;

    keep(start_recv(0, 0, LENGTH_MAX, false));
    keep(start_send(1, 0, 10, false));
    let_them_talk(0, 1, true);
    keep(start_recv(1, 1, LENGTH_MAX, false));
    keep(start_send(0, 1, 20000, false));
    let_them_talk(0, 2, true);
    cr_assert(talk_received[0].done && talk_received[1].done, "%s: even honestly", before.name);
    for (i = 0; before.mailbox && (i < 10) && !net_nodes[0].ep->peer->box.used; ++i) {
        keep(start_recv(1, 0, LENGTH_MAX, false));
        keep(start_send(0, 0, 10, false));
        let_them_talk(0, 1, true);
    }
    cr_assert(net_nodes[0].ep->peer->box.used == before.mailbox, "%s: by the wrong carrier", before.name);
}

/* @return whether it came to an end. @param lie  NULL: take it down instead. */
static bool talk(const talk_t *talk, const lie_t *lie, uint64_t *refused_p)
{
    bool over;

    net_transports          = talk->transports;
    net_no_rdma             = talk->no_rdma;
    net_clock               = 1000000000000ul;
    uci_settings.path       = talk->path;
    uci_settings.chunk_size = talk->chunk_size;
    uci_settings.carrier    = talk->mailbox ? UCI_CARRIER_AUTO : UCI_CARRIER_AM;
    uci_tuner_refresh();
    memset(liar_boxes, 0, sizeof(liar_boxes));
    memset(&uci_stats, 0, sizeof(uci_stats));
    memset(liar_marks, 0, sizeof(liar_marks));
    liar_slots     = 0;
    liar_talk      = talk;
    liar_lie       = lie;
    uci_signed_ops = &talk_ops;
    talk_held      = 0;
    liar_count     = 0;
    liar_damaged = liar_lied = false;
    talk_wrong               = 0;
    net_create(0);
    net_create(1);
    net_nodes[0].context.buffered_max = talk->buffered ? LENGTH_MAX : 0;
    uci_stream_part_max               = 0; /* it is adopted when its sender closes */
    net_open(0, 1);
    net_open(1, 0);
    liar_on = talk->first;
    if (!talk->first) {
        get_acquainted(talk);
        look_at_slots();
        memset(liar_marks, 0, sizeof(liar_marks));
        if (net_nodes[0].worker->link.bounce.slots != NULL) {
            unsigned i;

            for (i = 0; i < used_slots(); ++i) {
                liar_marks[i] = net_nodes[0].worker->link.bounce.slots[i].mark;
            }
        }
    }
    liar_on = true;
    cpu_limit(CASE_S);
    over    = exchange(talk->messages, talk->length, talk->sync, talk->iov, talk->close);
    liar_on = false;
    net_end_operations(net_nodes[0].worker);
    net_end_operations(net_nodes[1].worker);
    cpu_limit(0);
    give_back();
    net_destroy(0);
    net_destroy(1);
    cr_assert(talk_held >= 0, "%s: a type is released more often than it is held", talk->name);
    *refused_p = uci_stats.refused_messages;
    return over;
}

/* ------------------------------------------------------------------ the sweep */

typedef struct tally {
    unsigned lies, refused, unfinished, wrong;
} tally_t;

static void say_case(const talk_t *talk, const lie_t *lie)
{
    static const char *const places[] = {"header",       "payload",           "length", "slot", "slot (raw)",
                                         "placed frame", "placed frame (raw)"};
    const said_t *said                = &liar_record[lie->number];

    snprintf(liar_case, sizeof(liar_case), "%s: %s %u (number %u) of %u, %s, offset %u, %u bytes: %s0x%lx", talk->name,
             said->slot  ? "slot"
             : said->box ? "placed frame"
                         : (said->am ? "message" : "frame"),
             said->kind, lie->number, said->from, places[lie->place], lie->offset, lie->width,
             lie->relative ? "+ " : "", (unsigned long)lie->value);
}

static bool is_descriptor(const said_t *said)
{
    return !said->am && !said->slot && (uci_frame_kind(said->kind) == UCI_FRAME_RNDV);
}

/* A frame that says it is somebody else's, or another one, or for another receive, is not what is asked for; one of the far future, or
 * that such a one is lost, is in the way of all acknowledgements, which the honest side refuses then; and a descriptor that promises more
 * than there is, or another form, is not kept by the sender, who was honest. Nor does one get what it says it has. What was begun waits then, as for a sender who is silent. So
 * it is with one whose own synchronous send has become something else. */
static bool may_wait(const lie_t *lie)
{
    const said_t *said = &liar_record[lie->number];

    if (said->am) {
        return ((said->kind == UCI_AM_GONE) && (lie->place == PLACE_HEADER) && (lie->offset == 16)) ||
               ((said->kind == UCI_AM_ACK) && (lie->place != PLACE_HEADER));
    }
    if (said->slot || (lie->place == PLACE_BOX_RAW)) {
        return false;
    }
    if ((lie->place == PLACE_HEADER) || (lie->place == PLACE_BOX)) {
        return (uci_frame_kind(said->kind) == UCI_FRAME_SYNC) || (lie->offset == 0) || (lie->offset == 16) ||
               (lie->offset == 24) || ((lie->offset >= sizeof(uci_frame_hdr_t)) && is_descriptor(said));
    }
    return (uci_frame_kind(said->kind) == UCI_FRAME_SYNC) || ((lie->place == PLACE_PAYLOAD) && is_descriptor(said));
}

static void try_lie(const talk_t *honest, const lie_t *lie, tally_t *tally)
{
    uint64_t refused;
    bool over;

    say_case(honest, lie);
    over = talk(honest, lie, &refused);
    ++tally->lies;
    tally->refused += (refused > 0);
    tally->unfinished += !over;
    tally->wrong += talk_wrong;
    cr_expect(over || may_wait(lie), "%s: what was begun does not end", liar_case);
    cr_expect(talk_wrong == 0, "%s: wrong bytes, and all is well", liar_case);
    cr_expect(liar_lied || (lie->place == PLACE_LENGTH), "%s: that was not said", liar_case);
}

/* All values that are worth a try in a field of so many bytes */
static void try_field(const talk_t *honest, lie_t lie, tally_t *tally)
{
    static const uint64_t values[] = {0,    1,    2,     63,    64,     65,         255,        256,
                                      4095, 4097, 32767, 32769, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff};
    uint64_t max                   = UINT64_MAX >> (64 - 8 * lie.width);
    size_t i;

    for (i = 0; i < uci_array_size(values); ++i) {
        lie.value = values[i];
        if (values[i] <= max) {
            try_lie(honest, &lie, tally);
        }
    }
    if (lie.width == sizeof(uint64_t)) {
        for (i = 0; i < 3; ++i) {
            lie.value = (i == 0) ? UINT64_MAX : (i == 1) ? 1ul << 63 : (1ul << 63) - 1;
            try_lie(honest, &lie, tally);
        }
    }
    lie.relative = true;
    for (i = 0; i < 2; ++i) {
        lie.value = (i == 0) ? 1 : UINT64_MAX;
        try_lie(honest, &lie, tally);
    }
}

static void try_fields(const talk_t *honest, unsigned number, place_t place, const unsigned (*fields)[2],
                       tally_t *tally)
{
    unsigned i;

    for (i = 0; fields[i][1] > 0; ++i) {
        try_field(honest, (lie_t){.number = number, .place = place, .offset = fields[i][0], .width = fields[i][1]},
                  tally);
    }
}

static void try_payload(const talk_t *honest, unsigned number, const said_t *said, tally_t *tally)
{
    static const unsigned desc[][2] = {{0, 8}, {8, 4}, {12, 2}, {14, 2}, {0, 0}};
    unsigned offset;

    if (is_descriptor(said)) {
        try_fields(honest, number, PLACE_PAYLOAD, desc, tally);
        return;
    }
    if (!said->am || (said->kind == UCI_AM_DATA)) {
        return; /* what it says there is what it sends */
    }
    for (offset = 0; (offset + 4 <= said->length) && (offset < 64); offset += 4) {
        try_field(honest, (lie_t){.number = number, .place = PLACE_PAYLOAD, .offset = offset, .width = 4}, tally);
        if ((offset % 8 == 0) && (offset + 8 <= said->length)) {
            try_field(honest, (lie_t){.number = number, .place = PLACE_PAYLOAD, .offset = offset, .width = 8}, tally);
        }
    }
}

static void try_lengths(const talk_t *honest, unsigned number, const said_t *said, tally_t *tally)
{
    static const unsigned frames[]   = {0, 1, 15, 17, 23, 24, 25, 59, 61, 88, 129, 255, 3000, 32768, 40000, 65535};
    static const unsigned messages[] = {0, 1, 4, 7, 8, 15, 16, 17, 24, 40, 48, 100, 3000, 20000};
    const unsigned *lengths          = said->am ? messages : frames;
    size_t i, count = said->am ? uci_array_size(messages) : uci_array_size(frames);
    lie_t lie = {.number = number, .place = PLACE_LENGTH};

    if (said->am && (said->kind == UCI_AM_DATA)) {
        return;
    }
    for (i = 0; i < count; ++i) {
        lie.value = lengths[i];
        if (said->am || (uci_frame_kind(said->kind) == UCI_FRAME_RNDV) || (lie.value <= said->length) ||
            (lie.value > UCI_FRAME_MAX)) {
            try_lie(honest, &lie, tally);
        }
    }
    for (i = 1; said->am && (i <= 8) && (i <= said->length); i *= 2) {
        lie.value = said->length - i;
        try_lie(honest, &lie, tally);
        lie.value = said->length + i;
        try_lie(honest, &lie, tally);
    }
}

static void try_said(const talk_t *honest, unsigned number, const said_t *said, tally_t *tally)
{
    static const unsigned am[][2]     = {{4, 1},  {5, 1},  {6, 2},  {8, 8},  {16, 4}, {20, 4},
                                         {24, 4}, {28, 4}, {32, 8}, {40, 8}, {0, 0}};
    static const unsigned frame[][2]  = {{0, 8}, {12, 1}, {13, 1}, {14, 2}, {16, 4}, {20, 4}, {24, 8}, {32, 8}, {0, 0}};
    static const unsigned placed[][2] = {{12, 1}, {13, 1}, {14, 2}, {16, 4}, {20, 4}, {24, 8}, {32, 8}, {0, 0}};
    static const unsigned desc[][2]   = {{40, 8}, {48, 4}, {52, 2}, {54, 2}, {0, 0}};
    static const unsigned all[][2]    = {{0, 8}, {8, 4}, {12, 4}, {16, 4}, {20, 4}, {24, 8}, {32, 8}, {0, 0}};
    static const unsigned slot[][2]   = {{8, 8}, {16, 8}, {24, 4}, {28, 4}, {0, 0}};
    static const unsigned raw[][2] = {{0, 8}, {8, 8}, {16, 8}, {24, 4}, {32, 4}, {36, 4}, {UCI_CACHE_LINE, 8}, {0, 0}};

    if (said->slot) {
        try_fields(honest, number, PLACE_SLOT, slot, tally);
        try_fields(honest, number, PLACE_SLOT_RAW, raw, tally);
        return;
    }
    if (said->box) {
        try_fields(honest, number, PLACE_BOX, placed, tally);
        try_fields(honest, number, PLACE_BOX_RAW, all, tally);
        if (is_descriptor(said)) {
            try_fields(honest, number, PLACE_BOX, desc, tally);
        }
        return;
    }
    try_fields(honest, number, PLACE_HEADER, said->am ? am : frame, tally);
    try_payload(honest, number, said, tally);
    try_lengths(honest, number, said, tally);
}

static bool is_alike(const said_t *one, const said_t *other)
{
    return (one->am == other->am) && (one->slot == other->slot) && (one->box == other->box) &&
           (one->from == other->from) && (one->kind == other->kind) && (one->flags == other->flags);
}

/* Has as much as is to be known of its kind been learnt from those before? */
static bool is_known(unsigned number)
{
    unsigned i, alike = 0;

    for (i = 0; i < number; ++i) {
        alike += is_alike(&liar_record[i], &liar_record[number]);
    }
    return alike >= ALIKE;
}

static void on_signal(int number)
{
    static const char text[] = "\nthis case did not end well: ";

    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)!write(STDERR_FILENO, liar_case, strlen(liar_case));
    (void)!write(STDERR_FILENO, "\n", 1);
    _exit(1);
}

/* Called by AddressSanitizer, where it is */
void __asan_on_error(void);
void __asan_on_error(void)
{
    fprintf(stderr, "\nthis case did not end well: %s\n", liar_case);
}

static void set_up(void)
{
    size_t i;

    net_read_settings();
    for (i = 0; i < LENGTH_MAX; ++i) {
        talk_data[i] = (char)(i * 251 / 7);
    }
    net_init();
    net_sent = liar_sent;
    (void)mallopt(M_PERTURB,
                  0); /* which Meson sets: 4 GiB that a lie has allocated, and nobody uses, would be written to */
    signal(SIGPROF, on_signal);
    signal(SIGFPE, on_signal);
    signal(SIGABRT, on_signal);
#ifndef __SANITIZE_ADDRESS__
    signal(SIGSEGV, on_signal);
    signal(SIGBUS, on_signal);
#endif
}

TestSuite(liar, .init = set_up, .timeout = 600);

static const talk_t *talk_named(const char *name)
{
    size_t i;

    for (i = 0; strcmp(talks[i].name, name) != 0; ++i) {
        cr_assert(i + 1 < uci_array_size(talks), "no conversation '%s'", name);
    }
    return &talks[i];
}

static unsigned converse(const talk_t *honest)
{
    uint64_t refused;

    snprintf(liar_case, sizeof(liar_case), "%s, honestly", honest->name);
    cr_assert(talk(honest, NULL, &refused), "%s: does not end", liar_case);
    cr_assert(refused == 0, "%s: %lu were refused", liar_case, (unsigned long)refused);
    cr_assert(talk_wrong == 0, "%s: wrong bytes", liar_case);
    cr_assert((honest->damage == DAMAGE_NONE) || liar_damaged, "%s: nothing was damaged", liar_case);
    return liar_count;
}

Test(liar, honest_conversations_are_not_refused)
{
    unsigned seen[3][256] = {{0}}, i, type;
    size_t n;

    for (n = 0; n < uci_array_size(talks); ++n) {
        converse(&talks[n]);
        for (i = 0; i < liar_count; ++i) {
            ++seen[liar_record[i].box ? 2 : liar_record[i].am][liar_record[i].slot ? 0 : liar_record[i].kind];
        }
    }
    cr_expect(seen[0][0] > 0, "no slot was filled");
    for (type = UCI_FRAME_EAGER; type <= UCI_FRAME_RNDV; ++type) {
        cr_expect(seen[0][type] > 0, "no frame of kind %x", type);
        cr_expect(seen[2][type] > 0, "no frame of kind %x in a mailbox", type);
    }
    for (type = 1; type < UCI_AM_LAST; ++type) {
        cr_expect((seen[1][type] > 0) || (type == UCI_AM_QUERY) || (type == UCI_AM_SLOT), "no message of type %u",
                  type);
    }
}

/* Part of all conversations, for cores to share */
static void sweep(unsigned part, unsigned parts)
{
    tally_t tally = {0};
    unsigned i, count;
    size_t n;

    for (n = part; n < uci_array_size(talks); n += parts) {
        count = converse(&talks[n]);
        for (i = 0; i < uci_min(count, RECORD_MAX); ++i) {
            if (!is_known(i)) {
                try_said(&talks[n], i, &liar_record[i], &tally);
            }
        }
    }
    cr_log_info("%u lies: %u refused, %u conversations did not end, %u wrong", tally.lies, tally.refused,
                tally.unfinished, tally.wrong);
    cr_expect(tally.refused > tally.lies / 10, "%u of %u lies were refused", tally.refused, tally.lies);
}

Test(liar, no_lie_does_harm_0)
{
    sweep(0, 2);
}

Test(liar, no_lie_does_harm_1)
{
    sweep(1, 2);
}

/* ------------------------------------------------------------- by name */

/* What no UCI says, in the first message of its kind: each of these did harm, or could have */
typedef struct named {
    const char *talk;
    bool am;
    unsigned from;
    uint8_t kind;
    place_t place;
    unsigned offset, width;
    uint64_t value;
    unsigned nth; /* of those alike */
} named_t;

/* Addresses in memory that is the other side's own: nobody's but its; and so at its end that the mailbox would not fit */
#define PRIVATE      1
#define HALF_PRIVATE 2

static const named_t named[] = {
        /* frames */
        {"stream", false, 0, UCI_FRAME_RNDV, PLACE_LENGTH, 0, 0, 3000}, /* behind the descriptor that is kept */
        {"stream", false, 0, UCI_FRAME_RNDV, PLACE_LENGTH, 0, 0, 15},
        {"stream", false, 0, UCI_FRAME_RNDV, PLACE_LENGTH, 0, 0, 17},
        {"stream", false, 0, UCI_FRAME_RNDV, PLACE_HEADER, 12, 1, 0xe9},
        {"eager frames", false, 0, UCI_FRAME_EAGER, PLACE_HEADER, 12, 1, 0},
        {"eager frames", false, 0, UCI_FRAME_EAGER, PLACE_HEADER, 12, 1, UCI_FRAME_RNDV},
        {"eager frames", false, 0, UCI_FRAME_EAGER, PLACE_HEADER, 13, 1, 0xff},
        {"eager frames", false, 0, UCI_FRAME_EAGER, PLACE_HEADER, 14, 2, 0xffff},
        {"eager frames", false, 0, UCI_FRAME_EAGER, PLACE_LENGTH, 0, 0, UCI_FRAME_MAX + 1},
        {"eager frames", false, 0, UCI_FRAME_EAGER, PLACE_HEADER, 16, 4, 0xffffff00},
        {"eager frames", false, 0, UCI_FRAME_EAGER, PLACE_HEADER, 16, 4, 0x80000001},
        {"eager frames", false, 0, UCI_FRAME_EAGER, PLACE_HEADER, 20, 4, 1000},
        {"eager frames", false, 0, UCI_FRAME_EAGER, PLACE_HEADER, 20, 4, 0xfffffff0},
        {"mailbox", false, 0, UCI_FRAME_EAGER, PLACE_BOX, 12, 1, 0xe9},
        {"mailbox", false, 0, UCI_FRAME_EAGER, PLACE_BOX, 12, 1, UCI_FRAME_RNDV},
        {"mailbox", false, 0, UCI_FRAME_EAGER, PLACE_BOX, 13, 1, 0xff},
        {"mailbox", false, 0, UCI_FRAME_EAGER, PLACE_BOX, 16, 4, 0xffffff00},
        {"mailbox", false, 0, UCI_FRAME_EAGER, PLACE_BOX, 20, 4, 1000},
        {"mailbox, rendezvous", false, 0, UCI_FRAME_RNDV, PLACE_BOX, 40, 8, 0},
        {"mailbox, rendezvous", false, 0, UCI_FRAME_RNDV, PLACE_BOX, 48, 4, 0},
        {"mailbox, rendezvous", false, 0, UCI_FRAME_RNDV, PLACE_BOX, 52, 2, 257},
        /* descriptors, as they come */
        {"stream", false, 0, UCI_FRAME_RNDV, PLACE_PAYLOAD, 0, 8, 0},
        {"stream", false, 0, UCI_FRAME_RNDV, PLACE_PAYLOAD, 8, 4, 0},
        {"stream", false, 0, UCI_FRAME_RNDV, PLACE_PAYLOAD, 8, 4, 1},
        {"stream", false, 0, UCI_FRAME_RNDV, PLACE_PAYLOAD, 8, 4, 255},
        {"stream", false, 0, UCI_FRAME_RNDV, PLACE_PAYLOAD, 8, 4, (16 << 20) + 1},
        {"stream", false, 0, UCI_FRAME_RNDV, PLACE_PAYLOAD, 12, 2, 0},
        {"stream", false, 0, UCI_FRAME_RNDV, PLACE_PAYLOAD, 12, 2, 1},
        {"stream", false, 0, UCI_FRAME_RNDV, PLACE_PAYLOAD, 12, 2, 257},
        {"stream", false, 0, UCI_FRAME_RNDV, PLACE_PAYLOAD, 14, 2, UCI_SLOT_COUNT},
        /* and after they were repaired */
        {"repaired descriptor", false, 0, UCI_FRAME_RNDV, PLACE_PAYLOAD, 8, 4, 0, .nth = 1},
        {"repaired descriptor", false, 0, UCI_FRAME_RNDV, PLACE_PAYLOAD, 8, 4, 1, .nth = 1},
        {"repaired descriptor", false, 0, UCI_FRAME_RNDV, PLACE_PAYLOAD, 12, 2, 0, .nth = 1},
        {"repaired descriptor", false, 0, UCI_FRAME_RNDV, PLACE_PAYLOAD, 12, 2, 0xffff, .nth = 1},
        {"repaired descriptor", false, 0, UCI_FRAME_RNDV, PLACE_LENGTH, 0, 0, 3000, .nth = 1},
        /* messages of any type */
        {"stream", true, 1, UCI_AM_CTS, PLACE_HEADER, 4, 1, 0},
        {"stream", true, 1, UCI_AM_CTS, PLACE_HEADER, 4, 1, UCI_AM_LAST},
        {"stream", true, 1, UCI_AM_CTS, PLACE_HEADER, 6, 2, 0x8000},
        {"stream", true, 1, UCI_AM_CTS, PLACE_LENGTH, 0, 0, 8},
        {"stream", true, 1, UCI_AM_CTS, PLACE_HEADER, 16, 4, 100}, /* about a message never sent */
        {"stream", true, 1, UCI_AM_FIN, PLACE_HEADER, 16, 4, 100},
        {"first words", true, 0, UCI_AM_HELLO, PLACE_PAYLOAD, 1, 8, 5}, /* somebody else's */
        {"first words", true, 0, UCI_AM_HELLO, PLACE_LENGTH, 0, 0, 60},
        {"first words", true, 0, UCI_AM_HELLO, PLACE_HEADER, 20, 4, 2},
        {"first words", true, 0, UCI_AM_POOL, PLACE_PAYLOAD, 0, 8, 64}, /* UCX adds, and looks no further */
        {"first words", true, 0, UCI_AM_POOL, PLACE_PAYLOAD, 8, 4, UCI_SLOT_SIZE + 1},
        {"first words", true, 0, UCI_AM_POOL, PLACE_PAYLOAD, 12, 4, UCI_SLOT_COUNT + 1},
        {"stream", true, 0, UCI_AM_DATA, PLACE_HEADER, 24, 4, 5},
        {"stream", true, 0, UCI_AM_DATA, PLACE_HEADER, 24, 4, 0xffffffff},
        {"stream", true, 0, UCI_AM_DATA, PLACE_HEADER, 28, 4, 0xffffffff},
        {"stream", true, 0, UCI_AM_DATA, PLACE_HEADER, 5, 1, 0xff},
        {"stream, repaired by get", true, 1, UCI_AM_REPAIR, PLACE_PAYLOAD, 0, 4, 5},
        {"stream, repaired by get", true, 1, UCI_AM_REPAIR, PLACE_LENGTH, 0, 0, 8}, /* one chunk twice */
        {"stream, repaired by get", true, 0, UCI_AM_GRANT, PLACE_PAYLOAD, 0, 4, 0xffffffff},
        {"stream, repaired by get", true, 0, UCI_AM_GRANT, PLACE_PAYLOAD, 4, 4, 0xffffffff},
        {"stream, repaired by get", true, 0, UCI_AM_GRANT, PLACE_PAYLOAD, 32, 4, 5},
        {"stream, told ahead", true, 0, UCI_AM_GRANT, PLACE_PAYLOAD, 0, 4, 2},
        {"wrong root", true, 0, UCI_AM_LEAVES, PLACE_LENGTH, 0, 0, 32},
        {"wrong root", true, 0, UCI_AM_LEAVES, PLACE_LENGTH, 0, 0, 44},
        {"wrong root of many", true, 1, UCI_AM_TREE, PLACE_HEADER, 24, 4, 0},
        {"wrong root of many", true, 1, UCI_AM_TREE, PLACE_HEADER, 24, 4, 0xffffffff},
        {"wrong root of many", true, 1, UCI_AM_TREE, PLACE_PAYLOAD, 0, 4, 1},
        {"wrong root of many", true, 0, UCI_AM_NODES, PLACE_HEADER, 24, 4, 0},
        {"wrong root of many", true, 0, UCI_AM_NODES, PLACE_HEADER, 24, 4, 100},
        {"get", true, 0, UCI_AM_SEGMENT, PLACE_HEADER, 24, 4, 5},
        {"get", true, 0, UCI_AM_SEGMENT, PLACE_HEADER, 24, 4, 0xffffffff},
        {"get", true, 0, UCI_AM_SEGMENT, PLACE_HEADER, 28, 4, 0},
        {"get", true, 0, UCI_AM_SEGMENT, PLACE_HEADER, 28, 4, 20001},
        {"get", true, 0, UCI_AM_SEGMENT, PLACE_LENGTH, 0, 0, 0},
        {"bounce", true, 0, UCI_AM_SEGMENT, PLACE_LENGTH, 0, 0, 16},
        {"acknowledgements", true, 1, UCI_AM_ACK, PLACE_PAYLOAD, 0, 8, 1000},
        {"acknowledgements", true, 1, UCI_AM_ACK, PLACE_PAYLOAD, 8, 8, UINT64_MAX},
        {"acknowledgements", true, 1, UCI_AM_ACK, PLACE_LENGTH, 0, 0, 8},
        {"acknowledgements", true, 1, UCI_AM_ACK, PLACE_LENGTH, 0, 0, 48}, /* a missing range of zeros, twice */
        {"lost header", true, 1, UCI_AM_ACK, PLACE_PAYLOAD, 8, 8, 1000},
        {"acknowledgements", true, 0, UCI_AM_SENT, PLACE_HEADER, 32, 8, 1ul << 31 | 1ul << 20},
        {"acknowledgements", true, 0, UCI_AM_SENT, PLACE_HEADER, 32, 8, UINT64_MAX >> 1},
        {"acknowledgements", true, 0, UCI_AM_SENT, PLACE_LENGTH, 0, 0, 8},
        {"repaired frame", true, 1, UCI_AM_REPAIR, PLACE_LENGTH, 0, 0, 4}, /* chunks that a frame does not have */
        {"repaired frame", true, 1, UCI_AM_REPAIR, PLACE_HEADER, 16, 4, 100},
        {"lost frame", true, 0, UCI_AM_GONE, PLACE_HEADER, 40, 8, 0},
        {"lost frame", true, 0, UCI_AM_GONE, PLACE_HEADER, 40, 8, UCI_FRAME_EAGER | 0xff00},
        {"lost frame", true, 0, UCI_AM_GONE, PLACE_HEADER, 40, 8, UCI_FRAME_RNDV}, /* a descriptor of no bytes */
        {"lost frame", true, 0, UCI_AM_GONE, PLACE_HEADER, 40, 8, 0xffff00e1},
        {"lost frame", true, 0, UCI_AM_GONE, PLACE_HEADER, 16, 4, 0xffffff00},
        {"lost frame", true, 0, UCI_AM_GONE, PLACE_LENGTH, 0, 0, 8},
        /* mailboxes */
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_PAYLOAD, 0, 8, 64}, /* UCX adds, and looks no further */
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_PAYLOAD, 0, 8, PRIVATE},
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_PAYLOAD, 0, 8, HALF_PRIVATE},
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_PAYLOAD, 0, 8, UINT64_MAX - 63},
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_PAYLOAD, 16, 4, 0},
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_PAYLOAD, 16, 4, 64},
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_PAYLOAD, 16, 4, 1u << 30},
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_PAYLOAD, 20, 4, 0},
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_PAYLOAD, 20, 4, 0xffffffc0},
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_PAYLOAD, 20, 4, 65},
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_PAYLOAD, 24, 4, 0},
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_PAYLOAD, 24, 4, 300},
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_PAYLOAD, 24, 4, 0xffffffff},
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_PAYLOAD, 24, 4, 2 * UCI_BOX_GRANULES},
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_PAYLOAD, 28, 4, UCI_MAILBOX_BOXES},
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_PAYLOAD, 28, 4, 0xffffffff},
        {"mailbox, first words", true, 1, UCI_AM_BOX, PLACE_LENGTH, 0, 0, sizeof(uci_am_box_t)},
        /* reports */
        {"close", true, 0, UCI_AM_LEAVE, PLACE_PAYLOAD, 0, 8, 1000},
        {"close", true, 0, UCI_AM_LEAVE, PLACE_PAYLOAD, 8, 8, 1000},
        {"close", true, 0, UCI_AM_LEAVE, PLACE_HEADER, 24, 4, 5},
        {"close", true, 0, UCI_AM_LEAVE, PLACE_LENGTH, 0, 0, 8},
        {"close, adopted", true, 1, UCI_AM_MISSING, PLACE_PAYLOAD, 8, 8, 1000},
        {"close, adopted", true, 1, UCI_AM_MISSING, PLACE_PAYLOAD, 16, 8, 1000},
        {"close, adopted", true, 1, UCI_AM_MISSING, PLACE_PAYLOAD, 24, 8, UINT64_MAX},
        {"close, adopted", true, 1, UCI_AM_MISSING, PLACE_HEADER, 24, 4, 0},
        {"close", true, 0, UCI_AM_BYE, PLACE_PAYLOAD, 0, 8, UINT64_MAX},
        {"close", true, 0, UCI_AM_BYE, PLACE_HEADER, 20, 4, UCI_BYE_LAST},
        {"close", true, 0, UCI_AM_BYE, PLACE_LENGTH, 0, 0, 24},
        {"direct", false, 0, 0, PLACE_SLOT, 24, 4, UCI_SLOT_SIZE},
        {"direct", false, 0, 0, PLACE_SLOT, 24, 4, 0xffffffff},
};

static unsigned find_said(const named_t *one, unsigned count)
{
    unsigned i, nth = 0;

    for (i = 0; i < count; ++i) {
        if ((liar_record[i].am == one->am) && (liar_record[i].slot == (one->place == PLACE_SLOT)) &&
            (liar_record[i].box == (one->place == PLACE_BOX)) && (liar_record[i].from == one->from) &&
            (liar_record[i].slot || (liar_record[i].kind == one->kind)) && (nth++ == one->nth)) {
            return i;
        }
    }
    cr_assert_fail("nothing like this is said in '%s': kind %u", one->talk, one->kind);
    return 0;
}

/* Some values are known only here */
static uint64_t named_value(const named_t *one)
{
    static char mine[32 << 20] __attribute__((aligned(UCI_CACHE_LINE)));
    static char *shared;

    if ((one->kind != UCI_AM_BOX) || (one->offset != 0) || (one->value > HALF_PRIVATE)) {
        return one->value;
    }
    if (shared == NULL) {
        shared = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        cr_assert(shared != MAP_FAILED);
        munmap(shared + 65536, (1 << 20) - 65536);
    }
    return (uintptr_t)((one->value == PRIVATE) ? mine : shared);
}

Test(liar, what_no_uci_says_is_refused)
{
    uint64_t refused;
    lie_t lie;
    size_t n;

    for (n = 0; n < uci_array_size(named); ++n) {
        lie = (lie_t){find_said(&named[n], converse(talk_named(named[n].talk))),
                      named[n].place,
                      named[n].offset,
                      named[n].width,
                      named_value(&named[n]),
                      false};
        say_case(talk_named(named[n].talk), &lie);
        talk(talk_named(named[n].talk), &lie, &refused);
        cr_expect(liar_lied, "%s: not said", liar_case);
        cr_expect(refused > 0, "%s: not refused", liar_case);
        cr_expect(talk_wrong == 0, "%s: wrong bytes, and all is well", liar_case);
    }
}

Test(liar, a_refusal_names_the_peer)
{
    named_t one            = {"stream", false, 0, UCI_FRAME_RNDV, PLACE_PAYLOAD, 8, 4, 0};
    lie_t lie              = {find_said(&one, converse(talk_named("stream"))), PLACE_PAYLOAD, 8, 4, 0, false};
    test_capture_t capture = test_capture_start();
    uint64_t refused;
    char *text;

    uci_log_level = UCI_LOG_WARN;
    talk(talk_named("stream"), &lie, &refused);
    text = test_capture_stop(&capture);
    cr_expect(strstr(text, "is refused: it is intact, but says a chunk size that can't be") != NULL, "%s", text);
    cr_expect(strstr(text, uci_process_host()) != NULL, "%s", text);
    cr_expect(strstr(text, "message can't be delivered intact: a chunk size that can't be") != NULL, "%s", text);
    cr_expect((talk_received[0].done) && (talk_received[0].status == UCS_ERR_IO_ERROR), "by the policy");
    free(text);
}

/* In a mailbox, a frame of more bytes than there are behind it: nothing is read there, and the box begins anew */
Test(liar, a_frame_is_no_longer_than_its_box)
{
    named_t one = {"mailbox", false, 0, UCI_FRAME_EAGER, PLACE_BOX, 14, 2, 0};
    lie_t lie;
    uint64_t refused;
    unsigned length;

    for (length = UCI_BOX_FRAME_MAX - sizeof(uci_frame_hdr_t) + 1; length <= UINT16_MAX; length += 5003) {
        lie = (lie_t){find_said(&one, converse(talk_named("mailbox"))), PLACE_BOX, 14, 2, length, false};
        cr_expect(talk(talk_named("mailbox"), &lie, &refused), "%u bytes", length);
        cr_expect(liar_lied && (talk_wrong == 0));
        cr_expect(uci_stats.mismatched_headers == 1, "%u bytes: %lu", length,
                  (unsigned long)uci_stats.mismatched_headers);
    }
}

/* ------------------------------------------------- memory that is shared */

static uci_slot_t *scribbled; /* while a chunk is unpacked its writer changes it */
static unsigned scribbles;

static size_t test_packed_size(void *state)
{
    return 20000;
}

static size_t test_pack(void *state, size_t offset, void *dest, size_t max_length)
{
    unsigned i;

    /* whoever reads slots can write there while they are filled */
    for (i = 0; (scribbled != NULL) && (i < UCI_SLOT_COUNT); ++i) {
        scribbled[i].length = UCI_SLOT_SIZE * 1000;
        scribbled[i].value  = 0;
        scribbled[i].mark   = 0;
        ++scribbles;
    }
    memcpy(dest, (char *)state + offset, max_length);
    return max_length;
}

static ucs_status_t test_unpack(void *state, size_t offset, const void *src, size_t length)
{
    unsigned i;

    for (i = 0; (scribbled != NULL) && (i < UCI_SLOT_COUNT); ++i) {
        memset(scribbled[i].data, 0x55, 64);
        scribbled[i].length = UCI_SLOT_SIZE * 1000;
        ++scribbles;
    }
    memcpy((char *)state + offset, src, length);
    return UCS_OK;
}

static void exchange_generic(bool packed)
{
    ucp_request_param_t recv_param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                      UCP_OP_ATTR_FIELD_DATATYPE,
                                      .cb.recv   = on_received,
                                      .user_data = &talk_received[0],
                                      .datatype  = packed ? ucp_dt_make_contig(1) : UCP_DATATYPE_GENERIC};
    ucp_request_param_t send_param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                      UCP_OP_ATTR_FIELD_DATATYPE,
                                      .cb.send   = on_sent,
                                      .user_data = &talk_sent[0],
                                      .datatype  = packed ? UCP_DATATYPE_GENERIC : ucp_dt_make_contig(1)};

    talk_received[0] = talk_sent[0] = (received_t){0};
    memset(talk_buffers[0], 0xee, LENGTH_MAX);
    keep(uci_recv(net_nodes[1].worker, talk_buffers[0], packed ? 20000 : 1, TAG, UINT64_MAX, &recv_param));
    keep(uci_send(net_nodes[0].ep, talk_data, packed ? 1 : 20000, TAG, &send_param, false));
    let_them_talk(0, 1, true);
}

/* Two that know each other, and have mapped each other's slots */
static const talk_t *begin_direct(void)
{
    const talk_t *direct = talk_named("direct");

    net_transports          = direct->transports;
    net_clock               = 1000000000000ul;
    uci_settings.path       = direct->path;
    uci_settings.chunk_size = direct->chunk_size;
    uci_tuner_refresh();
    net_create(0);
    net_create(1);
    net_open(0, 1);
    net_open(1, 0);
    get_acquainted(direct);
    return direct;
}

static void set_up_shared(bool packed)
{
    uci_buffer_generic_lookup = test_generic_lookup;
    snprintf(liar_case, sizeof(liar_case), "slots that change while they are %s", packed ? "filled" : "read");
    begin_direct();
    scribbled = net_nodes[0].worker->link.bounce.slots;
    cr_assert(scribbled != NULL);
    cpu_limit(CASE_S);
    exchange_generic(packed);
    cpu_limit(0);
    cr_expect(scribbles > 0);
    cr_expect(net_nodes[0].worker->stats.counters->direct_messages > 0, "this is about slots");
}

/* What was verified is what is unpacked, whatever becomes of the slot */
Test(liar, a_chunk_does_not_change_while_it_is_unpacked)
{
    set_up_shared(false);
    cr_assert(talk_received[0].done);
    cr_expect((talk_received[0].status != UCS_OK) || (memcmp(talk_buffers[0], talk_data, 20000) == 0),
              "other bytes than were verified");
}

/* The one who fills a slot does not read in it how much */
Test(liar, a_slot_is_filled_with_what_was_meant)
{
    set_up_shared(true);
    cr_expect(!talk_received[0].done || (talk_received[0].status != UCS_OK) ||
              (memcmp(talk_buffers[0], talk_data, 20000) == 0));
}

static bool racing;

/* As fast as it can: of another length, and back */
static void *race(void *arg)
{
    uci_slot_t *slots = net_nodes[0].worker->link.bounce.slots;
    unsigned i;

    while (__atomic_load_n(&racing, __ATOMIC_RELAXED)) {
        for (i = 0; i < UCI_SLOT_COUNT; ++i) {
            __atomic_fetch_xor(&slots[i].length, 0x7ff00000u, __ATOMIC_RELAXED);
            __atomic_fetch_xor(&slots[i].length, 0x7ff00000u, __ATOMIC_RELAXED);
        }
    }
    return NULL;
}

Test(liar, a_length_is_read_once)
{
    const talk_t *direct;
    struct timespec begin, now;
    pthread_t thread;

    snprintf(liar_case, sizeof(liar_case), "lengths that change all the time");
    direct    = begin_direct();
    liar_talk = direct;
    racing    = true;
    cr_assert(pthread_create(&thread, NULL, race, NULL) == 0);
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &begin);
    do {
        exchange(1, 20000, false, false, false);
        give_back();
        syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < begin.tv_sec + 2);
    __atomic_store_n(&racing, false, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    cr_expect(talk_wrong == 0, "%u messages had wrong bytes", talk_wrong);
}
