/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Workers that seal, over a network of the test's own: what is on its way is nothing but records; whatever is done to these there,
 * each message is given once, intact, and what is not authentic never.
 */
#define NET_NODES 3
#include "fake_talk.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture.h"
#include "chance.h"
#include "seal/seal.h"
#include "link/sealed.h"

#define KEY       "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
#define OTHER_KEY "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
#define SIGHTS    64   /* bytes of content that must not be seen on the way */
#define COUNTERS  4096 /* records, of one test */

static char key_path[] = "/tmp/uci-test-sealed.XXXXXX";

static void write_key(const char *text)
{
    FILE *stream = fopen(key_path, "w");

    cr_assert_not_null(stream);
    fputs(text, stream);
    fclose(stream);
}

static void seal(uci_seal_mode_t mode, uci_seal_scope_t scope)
{
    uci_seal_cleanup();
    uci_settings.seal       = mode;
    uci_settings.seal_scope = scope;
    uci_settings.key_file   = key_path;
    cr_assert_eq(uci_seal_init(), UCI_OK);
}

static void set_up(void)
{
    int fd = mkstemp(key_path);

    cr_assert_geq(fd, 0);
    close(fd);
    write_key(KEY);
    net_read_settings();
}

static void tear_down(void)
{
    talk_end();
    uci_seal_cleanup();
    unlink(key_path);
}

static void begin(unsigned nodes, uci_seal_mode_t mode, uci_seal_scope_t scope, uci_path_t path)
{
    seal(mode, scope);
    uci_settings.path = path;
    talk_begin(nodes, UCI_CARRIER_AUTO);
}

TestSuite(sealed, .init = set_up, .fini = tear_down, .timeout = 120);

static void finish(void)
{
    cr_assert(talk_run(3000), "it does not end");
    talk_turns(60, 1000 * TALK_MS);
    cr_assert(talk_run(100));
}

/* --------------------------------------------------------- what is on its way */

static uci_seal_hdr_t counters[COUNTERS];
static unsigned counters_count;
static bool watches_content;

static void note_record(const void *record, size_t length)
{
    cr_assert((length >= UCI_SEALED_OVERHEAD) && (counters_count < COUNTERS));
    memcpy(&counters[counters_count++], record, sizeof(uci_seal_hdr_t));
}

/* Where a HELLO has its record */
static char *hello_record(const net_message_t *message)
{
    return message->data + message->length - sizeof(uci_am_hdr_t) - UCI_SEALED_OVERHEAD;
}

static void see_content(const char *data, size_t length, ucp_tag_t tag)
{
    char content[TALK_LENGTH];
    size_t place;

    talk_fill(content, sizeof(content), tag);
    for (place = 0; place + SIGHTS <= sizeof(content); place += SIGHTS) {
        cr_assert((length < SIGHTS) || (memmem(data, length, content + place, SIGHTS) == NULL),
                  "%d bytes of message %lu, from %zu on, are on the wire in clear", SIGHTS, (unsigned long)tag, place);
    }
}

/* Everything that goes: HELLO, records, segments that are records */
static void watch(net_message_t *message)
{
    cr_assert(message->id != UCI_FRAME_AM_ID, "a frame that is not sealed");
    if (message->id == UCI_AM_ID) {
        cr_assert(uci_mark_is_authentic((uci_mark_t *)(void *)message->data,
                                        (size_t)(hello_record(message) - message->data)));
        note_record(hello_record(message), sizeof(uci_am_hdr_t) + UCI_SEALED_OVERHEAD);
        return;
    }
    note_record(message->rndv ? message->header : message->data,
                message->rndv ? message->header_length : message->length);
    if (watches_content) {
        see_content(message->data, message->length, 1);
        see_content(message->data, message->length, 2);
    }
}

static int compare_counters(const void *one, const void *other)
{
    return memcmp(one, other, sizeof(uci_seal_hdr_t));
}

static void expect_counters_once(void)
{
    unsigned i;

    qsort(counters, counters_count, sizeof(*counters), compare_counters);
    for (i = 1; i < counters_count; ++i) {
        cr_assert(memcmp(&counters[i - 1], &counters[i], sizeof(*counters)) != 0, "counter %lx of %lx twice",
                  (unsigned long)counters[i].counter, (unsigned long)counters[i].uid);
    }
}

/* ------------------------------------------------------------------- messages */

static const size_t lengths[] = {0, 1, 8, 63, 500, 1900, 1984, 2048, 3000, 20000, TALK_LENGTH};

/* Messages of all lengths, from 0 to 1 and back, received before and after they come */
static void talk_all(void)
{
    unsigned i, node;

    for (i = 0; i < 4 * uci_array_size(lengths); ++i) {
        node = i & 1;
        if (i & 2) {
            talk_send(node, i, lengths[i / 4]);
            talk_turns(i % 5, TALK_MS);
        }
        (void)talk_recv(1 - node, i, UINT64_MAX);
        if (!(i & 2)) {
            talk_send(node, i, lengths[i / 4]);
        }
    }
    finish();
    for (i = 0; i < 4 * uci_array_size(lengths); ++i) {
        talk_expect(i, i, lengths[i / 4]);
    }
}

static uint64_t rejected(void)
{
    return talk_counters(0)->sealed_rejected + talk_counters(1)->sealed_rejected;
}

static void expect_undisturbed(void)
{
    cr_expect_eq(rejected(), 0);
    cr_expect_eq(talk_counters(0)->mismatched_headers + talk_counters(1)->mismatched_headers, 0);
    cr_expect_eq(talk_counters(0)->mismatched_control + talk_counters(1)->mismatched_control, 0);
    cr_expect_eq(talk_counters(0)->refused_messages + talk_counters(1)->refused_messages, 0);
}

static void talk_by(uci_seal_mode_t mode, uci_path_t path, const char *transports)
{
    begin(2, mode, UCI_SEAL_SCOPE_ALL, path);
    net_transports = transports;
    net_sent       = watch;
    talk_all();
    expect_undisturbed();
    cr_expect_gt(talk_counters(0)->sealed_records, 2 * uci_array_size(lengths));
    cr_expect(!talk_peer(0, 1)->in_clear && !talk_peer(0, 1)->box.mapped && !talk_peer(0, 1)->slots.maps_ours);
    expect_counters_once();
}

Test(sealed, stream)
{
    talk_by(UCI_SEAL_ENCRYPT, UCI_PATH_STREAM, "tcp/eth0");
}

Test(sealed, stream_signed)
{
    talk_by(UCI_SEAL_SIGN, UCI_PATH_STREAM, "tcp/eth0");
}

Test(sealed, bounce)
{
    talk_by(UCI_SEAL_ENCRYPT, UCI_PATH_BOUNCE, "tcp/eth0");
    cr_expect_gt(talk_counters(0)->bounce_messages, 0);
}

Test(sealed, bounce_signed)
{
    talk_by(UCI_SEAL_SIGN, UCI_PATH_BOUNCE, "tcp/eth0");
}

/* What would be fetched from the user's buffer is not */
Test(sealed, get)
{
    talk_by(UCI_SEAL_ENCRYPT, UCI_PATH_GET, "tcp/eth0");
    cr_expect_gt(talk_counters(0)->bounce_messages, 0);
    cr_expect_eq(talk_counters(0)->get_messages, 0);
}

/* Memory that could be shared is not, with scope all */
Test(sealed, shared_memory)
{
    talk_by(UCI_SEAL_ENCRYPT, UCI_PATH_DIRECT, "posix/memory");
    cr_expect_eq(talk_counters(0)->direct_messages, 0);
}

/* With scope net it is, within a node; active messages are records all the same */
Test(sealed, node)
{
    begin(2, UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_NET, UCI_PATH_AUTO);
    net_sent = watch;
    talk_all();
    expect_undisturbed();
    cr_expect(talk_peer(0, 1)->in_clear && talk_peer(0, 1)->box.mapped && talk_peer(0, 1)->slots.maps_ours);
    cr_expect_gt(talk_counters(0)->direct_messages, 0);
    expect_counters_once();
}

/* Another network is another node, whatever the host's name */
Test(sealed, another_network)
{
    seal(UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_NET);
    net_init();
    net_create(0);
    net_create(1);
    net_nodes[1].worker->self.mark.machine ^= 1;
    uci_mark_finish(&net_nodes[1].worker->self.mark);
    net_open(0, 1);
    net_open(1, 0);
    net_sent = watch;
    talk_all();
    expect_undisturbed();
    cr_expect(!talk_peer(0, 1)->in_clear && !talk_peer(1, 0)->in_clear);
    cr_expect(!talk_peer(0, 1)->box.mapped && !talk_peer(1, 0)->box.mapped);
}

Test(sealed, no_content_on_the_way)
{
    unsigned i;

    begin(2, UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_ALL, UCI_PATH_GET);
    net_transports  = "tcp/eth0";
    net_sent        = watch;
    watches_content = true;
    for (i = 0; i < 4; ++i) {
        uci_settings.path = (i == 1) ? UCI_PATH_STREAM : uci_settings.path;
        (void)talk_recv(1, 1 + (i & 1), UINT64_MAX);
        talk_send(0, 1 + (i & 1), (i & 2) ? 1500 : TALK_LENGTH);
        finish();
    }
    for (i = 0; i < 4; ++i) {
        talk_expect(i, 1 + (i & 1), (i & 2) ? 1500 : TALK_LENGTH);
    }
}

/* ------------------------------------------------------------------- attacks */

/* Has the other side done with all that was said until now, so that what comes is about one message? */
static void get_to_know(void)
{
    (void)talk_recv(1, 0, UINT64_MAX);
    talk_send(0, 0, 8);
    finish();
    talk_expect(0, 0, 8);
}

static net_message_t *record_to(unsigned node)
{
    cr_assert_not_null(net_nodes[node].first);
    cr_assert_eq(net_nodes[node].first->id, UCI_SEALED_AM_ID);
    return net_nodes[node].first;
}

static void give(unsigned node, const net_message_t *message)
{
    net_append(&net_nodes[node], talk_copy(message));
}

/* So many records, as many as each has bytes, of which the i-th is damaged at its byte i: it is rejected, and what it brought comes again.
 * @return how many */
static unsigned damage_each_byte(uci_seal_mode_t mode, void (*damage)(net_message_t *message, unsigned i))
{
    unsigned i, length = 8 + sizeof(uci_frame_hdr_t) + UCI_SEALED_OVERHEAD;

    begin(2, mode, UCI_SEAL_SCOPE_ALL, UCI_PATH_STREAM);
    get_to_know();
    for (i = 0; i < length; ++i) {
        (void)talk_recv(1, 1 + i, UINT64_MAX);
        talk_send(0, 1 + i, 8);
        cr_assert_eq(record_to(1)->length, length);
        damage(record_to(1), i);
        finish();
        talk_expect(1 + i, 1 + i, 8);
        cr_assert_eq(rejected(), i + 1, "byte %u", i);
    }
    return length;
}

static void flip(net_message_t *message, unsigned i)
{
    message->data[i] ^= (char)(1 << (i % 8));
}

static void cut(net_message_t *message, unsigned i)
{
    message->length = i;
}

Test(sealed, flipped)
{
    (void)damage_each_byte(UCI_SEAL_SIGN, flip);
}

Test(sealed, cut)
{
    unsigned length = damage_each_byte(UCI_SEAL_ENCRYPT, cut);

    cr_expect_eq(rejected(), length);
}

/* Whatever is sent is sent twice, and once more when all is over */
static net_message_t *copies[TALK_MAX];
static unsigned copies_count;
static bool copies_off;

static void copy_record(net_message_t *message)
{
    if (!copies_off && !message->rndv) {
        cr_assert_lt(copies_count, TALK_MAX);
        copies[copies_count++] = talk_copy(message);
    }
}

Test(sealed, replayed)
{
    uint64_t before;
    unsigned i, count;

    begin(2, UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_ALL, UCI_PATH_STREAM);
    net_sent = copy_record;
    talk_all();
    copies_off = true;
    before     = talk_counters(0)->messages_received + talk_counters(1)->messages_received;
    count      = copies_count;
    for (i = 0; i < count; ++i) {
        give(1 - copies[i]->from, copies[i]);
    }
    finish();
    cr_expect_eq(rejected(), count);
    cr_expect_eq(talk_counters(0)->messages_received + talk_counters(1)->messages_received, before);
    cr_expect_eq(talk_counters(0)->frames_repeated + talk_counters(1)->frames_repeated, 0, "nobody has seen them");
    for (i = 0; i < count; ++i) {
        net_free(copies[i]);
    }
}

/* What one says is not for who has said it */
/* A record in whose place an older one comes. Counted down to the one of those of node 0 that is meant. */
static unsigned stale_in;

static void put_stale(net_message_t *message)
{
    if ((message->from != 0) || message->rndv) {
        return;
    }
    if (copies_count == 0) {
        copies[copies_count++] = talk_copy(message);
    } else if ((stale_in > 0) && (--stale_in == 0)) {
        cr_assert_leq(copies[0]->length, message->length);
        memcpy(message->data, copies[0]->data, copies[0]->length);
        message->length = copies[0]->length;
    }
}

/* Nobody can know that it was another, so all that may be missing is asked for, long before silence would be (1, 3 and 7 s) */
Test(sealed, stale_in_the_place_of_another)
{
    unsigned i;

    begin(2, UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_ALL, UCI_PATH_STREAM);
    get_to_know();
    net_sent = put_stale;
    (void)talk_recv(1, 1, UINT64_MAX);
    talk_send(0, 1, 8); /* what is kept */
    finish();
    for (i = 2; i < 8; ++i) {
        (void)talk_recv(1, i, UINT64_MAX);
        stale_in = i - 1;
        talk_send(0, i, 30000);
        talk_turns(200, TALK_MS);
        talk_expect(i, i, 30000);
    }
    cr_expect_gt(rejected(), 3);
    net_free(copies[0]);
}

Test(sealed, reflected)
{
    unsigned i;

    begin(2, UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_ALL, UCI_PATH_STREAM);
    get_to_know();
    net_sent = copy_record;
    (void)talk_recv(1, 1, UINT64_MAX);
    talk_send(0, 1, 20000);
    finish();
    copies_off = true;
    cr_assert_gt(copies_count, 3);
    for (i = 0; i < copies_count; ++i) {
        give(copies[i]->from, copies[i]);
    }
    finish();
    cr_expect_eq(rejected(), copies_count);
    talk_expect(1, 1, 20000);
    for (i = 0; i < copies_count; ++i) {
        net_free(copies[i]);
    }
}

/* Nor for another one: 2 has an endpoint to 1, as 0 has */
Test(sealed, spliced)
{
    net_message_t *message;

    begin(3, UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_ALL, UCI_PATH_STREAM);
    get_to_know();
    (void)talk_recv(1, 5, UINT64_MAX);
    talk_send(2, 5, 8);
    finish();
    talk_send(0, 7, 8);
    message = record_to(1);
    give(2, message);
    give(0, message);
    talk_lose_all(1);
    (void)talk_recv(1, 7, UINT64_MAX);
    (void)talk_recv(2, 7, UINT64_MAX);
    talk_turns(100, 100 * TALK_MS);
    talk_expect(2, 7, 8); /* sent again */
    cr_expect(!talk_recvs[3].done);
    cr_expect_eq(talk_counters(2)->sealed_rejected, 1);
    cr_expect_eq(talk_counters(0)->sealed_rejected, 1);
}

/* Chunks of a segment, whose records change places, or segments their data */
static void exchange_chunks(net_message_t *message)
{
    size_t part = uci_settings.chunk_size - UCI_SEALED_ROOM + UCI_SEALED_OVERHEAD;
    char *own   = malloc(message->length);

    cr_assert(message->length >= 2 * part);
    memcpy(own, message->data + part, part);
    memcpy(own + part, message->data, part);
    memcpy(message->data, own, 2 * part);
    free(own);
}

static unsigned segments_seen;

static void exchange_in_second_segment(net_message_t *message)
{
    if (message->rndv && (++segments_seen == 2)) {
        exchange_chunks(message);
    }
}

Test(sealed, chunks_exchanged)
{
    uci_settings.chunk_size = 4096;
    begin(2, UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_ALL, UCI_PATH_BOUNCE);
    net_transports = "tcp/eth0";
    net_sent       = exchange_in_second_segment;
    (void)talk_recv(1, 1, UINT64_MAX);
    talk_send(0, 1, TALK_LENGTH);
    finish();
    talk_expect(0, 1, TALK_LENGTH);
    cr_expect_gt(segments_seen, 2);
    cr_expect_eq(talk_counters(1)->sealed_rejected, 2, "%lu rejected, %u segments",
                 (unsigned long)talk_counters(1)->sealed_rejected, segments_seen);
    cr_expect_gt(talk_counters(1)->repaired_by_copy + talk_counters(1)->retransmitted_bytes, 0);
}

/* A segment's data in the place of another's, of the same length */
static char *segment_before;

static void repeat_data(net_message_t *message)
{
    if (!message->rndv) {
        return;
    }
    if (++segments_seen == 1) {
        segment_before = net_copy(message->data, message->length);
    } else if (segments_seen == 4) { /* the first one of the second message */
        memcpy(message->data, segment_before, uci_min(message->length, 4096ul - UCI_SEALED_ROOM + UCI_SEALED_OVERHEAD));
    }
}

Test(sealed, segments_exchanged)
{
    uci_settings.chunk_size = 4096;
    begin(2, UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_ALL, UCI_PATH_BOUNCE);
    net_transports = "tcp/eth0";
    net_sent       = repeat_data;
    (void)talk_recv(1, 1, UINT64_MAX);
    talk_send(0, 1, 20000);
    finish();
    cr_assert_eq(segments_seen, 3);
    (void)talk_recv(1, 2, UINT64_MAX);
    talk_send(0, 2, 20000);
    finish();
    talk_expect(0, 1, 20000);
    talk_expect(1, 2, 20000);
    cr_expect_eq(talk_counters(1)->sealed_rejected, 1);
    free(segment_before);
}

/* ----------------------------------------------------------- who may speak */

static net_message_t *make(unsigned id, const void *header, size_t header_length, const void *data, size_t length)
{
    net_message_t *message = calloc(1, sizeof(*message));

    message->id            = id;
    message->frame         = (id == UCI_FRAME_AM_ID);
    message->header        = net_copy(header, header_length);
    message->header_length = header_length;
    message->data          = net_copy(data, length);
    message->length        = length;
    message->have          = length;
    return message;
}

/* As a worker says it that does not seal, with all checks right */
Test(sealed, plain)
{
    struct {
        uci_frame_hdr_t hdr;
        char payload[8];
    } frame           = {.hdr = {.kind = UCI_FRAME_EAGER, .digest = UCI_DIGEST_XXH3, .length = 8, .tag = 7}};
    uci_am_hdr_t sent = {.type = UCI_AM_SENT, .value = 100};
    uint64_t from;

    begin(2, UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_NET, UCI_PATH_AUTO);
    get_to_know();
    from            = net_nodes[0].worker->uid;
    frame.hdr.mark  = from;
    frame.hdr.seq   = (uint32_t)talk_peer(1, 0)->rx.next;
    frame.hdr.value = uci_digest_by_id(UCI_DIGEST_XXH3)->digest(frame.payload, sizeof(frame.payload));
    frame.hdr.check = uci_frame_check(&frame.hdr, uci_frame_am_seed(from, net_nodes[1].worker->uid));
    sent.uid        = from;
    sent.check = (uint32_t)(XXH3_64bits((const char *)&sent + sizeof(sent.check), sizeof(sent) - sizeof(sent.check)) ^
                            XXH3_64bits_withSeed("", 0, 0));
    (void)talk_recv(1, 7, UINT64_MAX);
    net_append(&net_nodes[1], make(UCI_FRAME_AM_ID, NULL, 0, &frame, sizeof(frame)));
    net_append(&net_nodes[1], make(UCI_AM_ID, &sent, sizeof(sent), NULL, 0));
    net_append(&net_nodes[1], make(UCI_SEALED_AM_ID, NULL, 0, &frame, sizeof(frame)));
    net_append(&net_nodes[1], make(UCI_SEALED_AM_ID, &sent, sizeof(sent), NULL, 0));
    talk_turns(20, 100 * TALK_MS);
    cr_expect(!talk_recvs[1].done);
    cr_expect_eq(rejected(), 4);
    talk_send(0, 7, 8);
    finish();
    talk_expect(1, 7, 8);
}

/* HELLO of workers that are gone, with the same key: nobody knows them afterwards */
Test(sealed, hello_of_another_life)
{
    size_t peers;
    unsigned i;

    begin(2, UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_ALL, UCI_PATH_STREAM);
    net_sent = copy_record;
    get_to_know();
    talk_end();
    copies_off = true;
    cr_assert_eq(copies[0]->id, UCI_AM_ID, "HELLO comes first");
    seal(UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_ALL);
    net_create(0);
    net_create(1);
    peers = net_nodes[1].worker->peers.count;
    for (i = 0; i < copies_count; ++i) {
        if (copies[i]->from == 0) {
            give(1, copies[i]);
        }
        net_free(copies[i]);
    }
    talk_turns(10, TALK_MS);
    cr_expect_eq(net_nodes[1].worker->peers.count, peers);
    cr_expect_gt(talk_counters(1)->sealed_rejected, 0);
    cr_expect_eq(talk_counters(1)->messages_received, 0);
}

Test(sealed, hello_damaged)
{
    net_message_t *hello;
    unsigned i, length = 1;

    seal(UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_ALL);
    uci_settings.path = UCI_PATH_STREAM;
    for (i = 0; i < length; ++i) { /* each time other workers, with other keys */
        talk_begin(2, UCI_CARRIER_AUTO);
        uci_close_revoke(talk_peer(0, 1));
        talk_send(0, 1, 8);
        hello  = net_nodes[1].first;
        length = (unsigned)hello->length;
        cr_assert_eq(hello->id, UCI_AM_ID);
        hello->data[i] ^= (char)(1 << (i % 8));
        (void)talk_recv(1, 1, UINT64_MAX);
        finish();
        talk_expect(0, 1, 8);
        cr_assert_gt(rejected(), 0, "byte %u", i);
        talk_end();
    }
}

typedef struct marked {
    uci_mark_t mark;
    unsigned address;
} __attribute__((packed)) marked_t;

/* What is logged when node 0 opens an endpoint to this address, which it refuses; to be freed */
static char *refused(marked_t *marked)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = (void *)marked};
    test_capture_t capture;
    ucs_status_t status;
    uci_ep_t *ep;

    uci_log_level = UCI_LOG_ERROR;
    capture       = test_capture_start();
    status        = uci_ep_open(net_nodes[0].worker, &params, &ep);
    uci_log_level = UCI_LOG_FATAL;
    cr_expect_eq(status, UCS_ERR_UNSUPPORTED);
    return test_capture_stop(&capture);
}

/* The address of node 1 */
static void get_address(marked_t *marked_p)
{
    unsigned address = 1;

    uci_mark_put(marked_p, &net_nodes[1].worker->self.mark, &address, sizeof(address));
}

static void create_both(void)
{
    seal(UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_ALL);
    net_init();
    net_create(0);
    net_create(1);
}

static void change_random(marked_t *marked)
{
    marked->mark.random[5] ^= 1;
}

static void change_machine(marked_t *marked)
{
    marked->mark.machine ^= 1;
}

static void change_address(marked_t *marked)
{
    marked->address = 0;
}

static void change_protocol(marked_t *marked)
{
    marked->mark.protocol = 6;
}

static void change_mode(marked_t *marked)
{
    marked->mark.seal = UCI_SEAL_SIGN;
}

static void change_to_plain(marked_t *marked)
{
    memset(&marked->mark.seal, 0, offsetof(uci_mark_t, check) - offsetof(uci_mark_t, seal));
}

static void change_scope(marked_t *marked)
{
    marked->mark.scope = UCI_SEAL_SCOPE_NET;
}

static void change_cipher(marked_t *marked)
{
    marked->mark.cipher = (marked->mark.cipher == UCI_SEAL_AES128) ? UCI_SEAL_AES256 : UCI_SEAL_AES128;
}

/* As nothing is authentic yet, a lie that must not be believed: of more than there is, than any address has, of all there can be */
static void change_length(marked_t *marked)
{
    marked->mark.address_length += 4000;
}

static void change_length_much(marked_t *marked)
{
    marked->mark.address_length = UCI_WIRE_ADDRESS_MAX + 1;
}

static void change_length_most(marked_t *marked)
{
    marked->mark.address_length = 0xfffffff0;
}

static const struct {
    const char *name;
    void (*change)(marked_t *marked);
    const char *says;
} refusals[] = {{"random", change_random, "not authentic"},
                {"machine", change_machine, "not authentic"},
                {"address", change_address, "not authentic"},
                {"length", change_length, "not authentic"},
                {"much length", change_length_much, "not authentic"},
                {"all length", change_length_most, "not authentic"},
                {"protocol", change_protocol, "protocol version 6 of UCI, this one speaks 14"},
                {"mode", change_mode, "UCI_SEAL=sign, this one with UCI_SEAL=encrypt"},
                {"plain", change_to_plain, "UCI_SEAL=off, this one with UCI_SEAL=encrypt"},
                {"scope", change_scope, "UCI_SEAL_SCOPE=net, this one with UCI_SEAL_SCOPE=all"},
                {"cipher", change_cipher, "UCI_SEAL_CIPHER="}};

Test(sealed, addresses_refused)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (sizeof(marked_t) + page - 1) / page * page;
    char *pages = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    marked_t marked,
            *last = (marked_t *)(void *)(pages + room - sizeof(marked_t)); /* what is behind it can't be read */
    unsigned i;
    char *said;

    cr_assert(pages != MAP_FAILED);
    mprotect(pages + room, page, PROT_NONE);
    create_both();
    for (i = 0; i < uci_array_size(refusals); ++i) {
        get_address(&marked);
        refusals[i].change(&marked);
        uci_mark_finish(&marked.mark);
        *last = marked;
        said  = refused(last);
        cr_expect_not_null(strstr(said, refusals[i].says), "%s: %s", refusals[i].name, said);
        free(said);
    }
    cr_expect_eq(net_nodes[0].worker->peers.count, 0);
}

/* A forked child has zeros where the keys were: under them anybody could make what it seals, and what it believes */
Test(sealed, a_forked_child_has_no_keys)
{
    uci_mark_t mark;
    marked_t marked;
    int status;
    pid_t child;

    create_both();
    get_address(&marked);
    child = fork();
    if (child == 0) {
        _exit((uci_seal_is_inherited() && (uci_mark_init(&mark, 1) == UCS_ERR_UNSUPPORTED) &&
               (uci_mark_check(&marked.mark) == UCS_ERR_UNSUPPORTED))
                      ? 0
                      : 1);
    }
    cr_assert(child > 0);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && (WEXITSTATUS(status) == 0), "status %d", status);
    cr_expect(!uci_seal_is_inherited());
    cr_expect_eq(uci_mark_check(&marked.mark), UCS_OK, "the parent has its own");
}

Test(sealed, another_key)
{
    marked_t marked;
    char *said;

    create_both();
    write_key(OTHER_KEY);
    seal(UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_ALL);
    get_address(&marked);
    write_key(KEY);
    seal(UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_ALL);
    said = refused(&marked);
    cr_expect_not_null(strstr(said, "UCI_KEY_FILE"), "%s", said);
    free(said);
}

/* ---------------------------------------------------------------- endpoints */

/* Who closes and comes again has the same keys, and goes on counting: nothing of before is taken */
Test(sealed, opened_again)
{
    unsigned i, round, count;

    begin(2, UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_ALL, UCI_PATH_STREAM);
    net_sent = copy_record;
    for (round = 0; round < 4; ++round) {
        (void)talk_recv(1, round, UINT64_MAX);
        talk_send(0, round, 3000);
        finish();
        uci_worker_enter(net_nodes[0].worker);
        talk_keep(uci_ep_close(net_nodes[0].ep, &(ucp_request_param_t){.op_attr_mask = 0}));
        uci_worker_leave(net_nodes[0].worker);
        talk_turns(20, 100 * TALK_MS);
        net_open(0, 1);
    }
    copies_off = true;
    count      = copies_count;
    cr_expect_eq(rejected(), 0);
    for (i = 0; i < count; ++i) {
        give(1 - copies[i]->from, copies[i]);
        net_free(copies[i]);
    }
    talk_turns(10, TALK_MS);
    cr_expect_eq(rejected(), count);
    for (round = 0; round < 4; ++round) {
        talk_expect(round, round, 3000);
    }
}

/* Numbers of pairs, and what happens when one is used up */
Test(sealed, counters)
{
    uci_peer_t *peer, *other;
    uint64_t first;

    begin(3, UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_ALL, UCI_PATH_STREAM);
    get_to_know();
    (void)talk_recv(1, 5, UINT64_MAX);
    talk_send(2, 5, 8);
    finish();
    peer  = talk_peer(1, 0);
    other = talk_peer(1, 2);
    cr_expect_neq(peer->talk.record_next >> UCI_SEALED_PAIR_SHIFT, other->talk.record_next >> UCI_SEALED_PAIR_SHIFT);
    first = uci_sealed_take(peer, 3);
    cr_expect_eq(uci_sealed_take(peer, 1), first + 3);
    peer->talk.records_left = 2;
    first                   = uci_sealed_take(peer, 3);
    cr_expect_eq(first & ((1ul << UCI_SEALED_PAIR_SHIFT) - 1), 0);
    cr_expect_gt(first, other->talk.record_next);
    (void)talk_recv(0, 6, UINT64_MAX);
    talk_send(1, 6, 8);
    finish();
    talk_expect(2, 6, 8);
    cr_expect_eq(rejected(), 0);
}

/* ------------------------------------------------------------------- forgeries */

/* A million records that nobody sealed, most of them like one that somebody did */
Test(sealed, forged)
{
    unsigned i, count = (unsigned)test_setting("SEALED_FORGED", 1000000);
    net_message_t *message;
    char *data;
    uint64_t word;

    begin(2, UCI_SEAL_ENCRYPT, UCI_SEAL_SCOPE_ALL, UCI_PATH_STREAM);
    get_to_know();
    talk_send(0, 7, 100);
    message = talk_copy(record_to(1));
    data    = net_copy(message->data, message->length);
    talk_lose_all(1);
    for (i = 0; i < count; ++i) {
        memcpy(message->data, data, message->length);
        word = test_random();
        if (i % 64 == 0) { /* of any epoch, which costs the receiver most */
            memcpy(message->data + offsetof(uci_seal_hdr_t, counter), &word, sizeof(word));
        } else if (i % 4 == 0) {
            message->data[offsetof(uci_seal_hdr_t, counter)] ^= (char)(1 + (word % 255));
        } else {
            message->data[sizeof(uci_seal_hdr_t) + (word >> 8) % (message->length - sizeof(uci_seal_hdr_t))] ^=
                    (char)(1 + (word % 255));
        }
        net_nodes[1].handlers[UCI_SEALED_AM_ID - UCI_FRAME_AM_ID](
                net_nodes[1].worker, NULL, 0, message->data, message->length, &(ucp_am_recv_param_t){.recv_attr = 0});
    }
    cr_expect_eq(talk_counters(1)->sealed_rejected, count);
    cr_expect_eq(talk_counters(1)->messages_received, 1);
    free(data);
    net_free(message);
    (void)talk_recv(1, 7, UINT64_MAX);
    finish();
    talk_expect(1, 7, 100);
}
