/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records as they may arrive: two workers that seal, and between them whatever the input says. Bytes that nobody sealed, for each of the
 * three handlers; records and HELLOs that are authentic, of a peer that says anything in them; offers, whose data are records or not; and
 * what has been there before.
 */
#include "../../pipeline/link/control.c"

#include "fake_net.h"
#include "link/sealed.h"

#define FUZZ_LENGTH 2000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
    const uint8_t *data;
    size_t size;
} input_t;

static uint8_t take8(input_t *input)
{
    if (input->size == 0) {
        return 0;
    }
    --input->size;
    return *input->data++;
}

static size_t take(input_t *input, void *bytes, size_t max)
{
    size_t wanted = (size_t)take8(input) * 8 + take8(input) % 8;
    size_t length = uci_min(uci_min(wanted, max), input->size);

    memcpy(bytes, input->data, length);
    input->data += length;
    input->size -= length;
    return length;
}

static void set_up(void)
{
    static const char key[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
    static char path[]      = "/tmp/uci-fuzz-sealed.XXXXXX";
    int fd                  = mkstemp(path);

    if ((fd < 0) || (write(fd, key, sizeof(key) - 1) < 0)) {
        abort();
    }
    close(fd);
    net_read_settings();
    uci_settings.seal       = UCI_SEAL_ENCRYPT;
    uci_settings.seal_scope = UCI_SEAL_SCOPE_ALL;
    uci_settings.key_file   = path;
    if (uci_seal_init() != UCI_OK) {
        abort();
    }
    unlink(path);
    net_init();
    net_transports = "tcp/eth0";
}

/* To node 1, through its handler of @a id */
static void give(unsigned id, const void *header, size_t header_length, const void *data, size_t length, bool rndv)
{
    net_message_t *message = calloc(1, sizeof(*message));

    message->id            = id;
    message->frame         = (id == UCI_FRAME_AM_ID);
    message->rndv          = rndv;
    message->header        = net_copy(header, header_length);
    message->header_length = header_length;
    message->data          = rndv ? (char *)data : net_copy(data, length); /* of an offer it is static */
    message->length        = length;
    message->have          = length;
    net_append(&net_nodes[1], message);
}

static uci_peer_t *sender(void)
{
    return uci_worker_peer_find(net_nodes[0].worker, net_nodes[1].worker->uid);
}

static size_t close_record(uint64_t kind, const void *body, size_t length, char *record)
{
    if (uci_seal_close(sender()->pair, uci_sealed_take(sender(), 1), &kind, sizeof(kind), body, length, record) !=
        UCI_OK) {
        abort();
    }
    return length + UCI_SEALED_OVERHEAD;
}

/* Of the right sender, with a check that is right, unless the input says otherwise */
static void make_right(uint8_t bits, uint64_t kind, char *body, size_t length)
{
    uci_frame_hdr_t *frame = (uci_frame_hdr_t *)(void *)body;
    uci_am_hdr_t *hdr      = (uci_am_hdr_t *)(void *)body;
    uint64_t uid           = net_nodes[0].worker->uid;

    if ((kind == UCI_SEALED_FRAME) && (length >= sizeof(*frame)) && (bits & 1)) {
        frame->mark   = uid;
        frame->seq    = bits >> 4;
        frame->length = (uint16_t)(length - sizeof(*frame));
        frame->check  = uci_frame_check(frame, uci_frame_am_seed(uid, net_nodes[1].worker->uid));
    } else if ((kind != UCI_SEALED_FRAME) && (length >= sizeof(*hdr)) && (bits & 1)) {
        hdr->uid   = uid;
        hdr->type  = (kind == UCI_SEALED_OFFER) ? UCI_AM_SEGMENT : hdr->type % UCI_AM_LAST;
        hdr->check = uci_am_check(
                hdr, (uci_control_carries(net_nodes[1].worker, hdr) == UCI_AM_CARRIES_BYTES) ? NULL : hdr + 1,
                length - sizeof(*hdr));
    }
}

static void step_record(input_t *input)
{
    static char body[FUZZ_LENGTH] __attribute__((aligned(8))), record[FUZZ_LENGTH + UCI_SEALED_OVERHEAD],
            data[FUZZ_LENGTH];
    uint8_t bits  = take8(input);
    uint64_t kind = UCI_SEALED_FRAME + (take8(input) % 6);
    size_t length = take(input, body, sizeof(body));

    make_right(bits, kind, body, length);
    length = close_record(kind, body, length, record);
    if (bits & 2) {
        record[take8(input) % length] ^= (char)take8(input); /* may be 0 */
    }
    if (kind == UCI_SEALED_OFFER) {
        give(UCI_SEALED_AM_ID, record, length, data, take8(input) * 7u, true);
    } else {
        give(UCI_SEALED_AM_ID, NULL, 0, record, length, false);
    }
    if (bits & 4) {
        give(UCI_SEALED_AM_ID, NULL, 0, record, length, false);
    }
}

static void step_hello(input_t *input)
{
    static char data[FUZZ_LENGTH];
    uint8_t bits      = take8(input);
    uci_mark_t mark   = net_nodes[0].worker->self.mark;
    uci_am_hdr_t hdr  = {.type = UCI_AM_HELLO, .uid = net_nodes[0].worker->uid, .value = bits >> 6};
    char address[256] = "";
    size_t length     = take(input, address, sizeof(address)), at;

    if (bits & 1) {
        mark.ucx_uid[take8(input) % 8] ^= take8(input);
    }
    uci_mark_put(data, &mark, address, length);
    length += sizeof(mark);
    hdr.length = (uint32_t)length;
    hdr.check  = uci_am_check(&hdr, data, length);
    length += close_record((bits & 2) ? take8(input) : UCI_SEALED_HELLO, &hdr, sizeof(hdr), data + length);
    if (bits & 4) {
        at = (take8(input) * 256u + take8(input)) % length;
        data[at] ^= (char)take8(input);
    }
    give(UCI_AM_ID, NULL, 0, data, (bits & 8) ? length - take8(input) % length : length, false);
}

static void step_raw(input_t *input)
{
    static char header[256], data[FUZZ_LENGTH];
    unsigned id          = UCI_FRAME_AM_ID + (take8(input) % 3);
    size_t header_length = take(input, header, sizeof(header));
    size_t length        = take(input, data, sizeof(data));

    give(id, header, header_length, data, length, (take8(input) & 1) != 0);
}

static void step_message(input_t *input)
{
    static char from[FUZZ_LENGTH * 8], to[FUZZ_LENGTH * 8];
    ucp_request_param_t param = {.op_attr_mask = 0};
    size_t length             = take8(input) * 60u;
    ucs_status_ptr_t request;

    request = uci_recv(net_nodes[1].worker, to, sizeof(to), 1, UINT64_MAX, &param);
    if (UCS_PTR_IS_PTR(request)) {
        uci_request_free(uci_request_from_user(request));
    }
    request = uci_send(net_nodes[0].ep, from, length, 1, &param, false);
    if (UCS_PTR_IS_PTR(request)) {
        uci_request_free(uci_request_from_user(request));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input_t input = {data, size};
    unsigned number;

    if (uci_ucp.am_send_nbx == NULL) {
        set_up();
    }
    uci_settings.path = (take8(&input) & 1) ? UCI_PATH_BOUNCE : UCI_PATH_STREAM;
    uci_tuner_refresh();
    net_clock = 1000000000000ul;
    for (number = 0; number < NET_NODES; ++number) {
        net_create(number);
    }
    net_open(0, 1);
    net_open(1, 0);
    while (input.size > 0) {
        switch (take8(&input) % 6) {
        case 0:
            step_raw(&input);
            break;
        case 1:
            step_hello(&input);
            break;
        case 2:
            step_message(&input);
            break;
        case 3:
            net_clock += take8(&input) * 1000000ul;
            net_turn(take8(&input) % NET_NODES);
            break;
        default:
            step_record(&input);
            break;
        }
    }
    if (!net_is_idle()) {
        net_turn(1);
    }
    for (number = 0; number < NET_NODES; ++number) {
        net_end_operations(net_nodes[number].worker);
    }
    for (number = 0; number < NET_NODES; ++number) {
        net_destroy(number);
    }
    return 0;
}
