/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a message is repaired from: two workers over a fake UCX, the first of which sends. Slots, copies, frames of the log and the user's
 * buffer are damaged, or changed, one by one and together, at the moment that is worst.
 */
#include <criterion/criterion.h>

#include "link/slot.h"
#include "fake_net.h"

#include <unistd.h>

#include "capture.h"
#include "report/report.h"
#include "live/stats.h"

#include "transfer/direct_send.h"
#include "tune/tuner.h"
#include "link/txlog.h"

#define LENGTH      20000u /* one slot */
#define LENGTH_LONG 100000u
#define TAG         7
#define PATIENCE    1000u /* turns, and more than any message has */

static char user[LENGTH_LONG], meant[LENGTH_LONG], taken[LENGTH_LONG];
static bool sent, received;
static ucs_status_t status_of_receive;
static void *requests[16];
static unsigned requests_count;

static void on_sent(void *request, ucs_status_t status, void *user_data)
{
    sent = true;
}

static void on_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    received          = true;
    status_of_receive = status;
}

static void keep(ucs_status_ptr_t request)
{
    cr_assert(!UCS_PTR_IS_ERR(request) && (requests_count < uci_array_size(requests)));
    if (UCS_PTR_IS_PTR(request)) {
        requests[requests_count++] = request;
    }
}

static void start_send(unsigned node, size_t length)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = on_sent};
    ucs_status_ptr_t request;

    sent    = false;
    request = uci_send(net_nodes[node].ep, user, length, TAG, &param, false);
    sent |= (request == NULL);
    keep(request);
}

static void start_recv(unsigned node)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.recv = on_received};

    received = false;
    memset(taken, 0xee, sizeof(taken));
    keep(uci_recv(net_nodes[node].worker, taken, sizeof(taken), TAG, UINT64_MAX, &param));
}

static void let_both_turn(void)
{
    unsigned turn;

    for (turn = 0; turn < 2000; ++turn) {
        net_clock += net_is_idle() ? 3000000000ul : 2000000ul;
        net_turn(1);
        net_turn(0);
        if (received && sent && net_is_idle()) {
            return;
        }
    }
}

/* The sender's turns alone, and no time: nobody receives */
static void turn_of_sender(void)
{
    uci_worker_t *worker = net_nodes[0].worker;

    uci_worker_enter(worker);
    uci_worker_progress(worker, worker->ucp);
    uci_worker_leave(worker);
}

static void let_sender_turn(void)
{
    unsigned turn;

    for (turn = 0; (turn < PATIENCE) && !sent; ++turn) {
        turn_of_sender();
    }
}

/* FIN may come turns after the receive has ended: UCX has its part in one of four */
static void let_sender_end(void)
{
    unsigned turn;

    for (turn = 0; (turn < PATIENCE) && !uci_list_is_empty(&net_nodes[0].worker->xfer.send_ops); ++turn) {
        turn_of_sender();
    }
}

static void set_up(void)
{
    size_t i;

    net_read_settings();
    uci_settings.path = UCI_PATH_DIRECT;
    net_init();
    net_clock = 1000000000000ul;
    uci_tuner_refresh();
    net_create(0);
    net_create(1);
    net_nodes[0].context.buffered_max = LENGTH_LONG;
    net_open(0, 1);
    net_open(1, 0);
    for (i = 0; i < sizeof(user); ++i) {
        user[i] = meant[i] = (char)(i * 251 / 7);
    }

    /* so that both know each other, and the slots of the first are mapped */
    start_recv(0);
    start_send(1, 10);
    let_both_turn();
    for (i = 0; i < 2; ++i) { /* the first large one goes before its receiver has told that it reads the slots */
        start_recv(1);
        start_send(0, LENGTH);
        let_both_turn();
        let_sender_end();
    }
    cr_assert(sent && received && (net_nodes[0].worker->link.bounce.slots != NULL));
    memset(net_nodes[0].worker->stats.counters, 0, sizeof(uci_stats_t));
    memset(net_nodes[1].worker->stats.counters, 0, sizeof(uci_stats_t));
}

static void tear_down(void)
{
    net_sent = NULL;
    net_end_operations(net_nodes[0].worker);
    net_end_operations(net_nodes[1].worker);
    while (requests_count > 0) {
        uci_request_free(uci_request_from_user(requests[--requests_count]));
    }
    net_destroy(0);
    net_destroy(1);
}

TestSuite(source, .init = set_up, .fini = tear_down, .timeout = 60);

static uci_send_op_t *the_send(void)
{
    cr_assert(!uci_list_is_empty(&net_nodes[0].worker->xfer.send_ops));
    return uci_container_of(net_nodes[0].worker->xfer.send_ops.next, uci_send_op_t, all);
}

/* A message that is complete for its sender, whose user has written over his buffer; it lies in slots */
static uci_send_op_t *send_and_write_over(size_t length)
{
    uci_send_op_t *op;

    start_send(0, length);
    op = the_send();
    cr_assert(op->state == UCI_SEND_DIRECT);
    let_sender_turn();
    cr_assert(sent, "a send that plain UCX buffers completes without the receiver");
    memset(user, 0x55, sizeof(user));
    return op;
}

static void expect_counters(uint64_t mismatched, uint64_t repaired, uint64_t unrepaired, uint64_t changed)
{
    const uci_stats_t *counters = net_nodes[1].worker->stats.counters;

    cr_expect(counters->mismatched_chunks == mismatched, "mismatched %lu", (unsigned long)counters->mismatched_chunks);
    cr_expect(counters->repaired_chunks == repaired, "repaired %lu", (unsigned long)counters->repaired_chunks);
    cr_expect(counters->unrepaired_chunks == unrepaired, "unrepaired %lu", (unsigned long)counters->unrepaired_chunks);
    cr_expect(counters->source_changed == changed, "changed %lu", (unsigned long)counters->source_changed);
}

static void receive_as_meant(size_t length)
{
    start_recv(1);
    let_both_turn();
    cr_assert(received);
    cr_expect(status_of_receive == UCS_OK);
    cr_expect(memcmp(taken, meant, length) == 0, "other bytes than were sent");
}

static void receive_nothing(void)
{
    start_recv(1);
    let_both_turn();
    cr_assert(received);
    cr_expect(status_of_receive == UCS_ERR_IO_ERROR, "status %d", status_of_receive);
}

Test(source, what_is_taken_in_time_is_not_copied)
{
    start_send(0, LENGTH);
    receive_as_meant(LENGTH);
    cr_expect(sent);
    cr_expect(net_nodes[0].worker->stats.counters->buffered_messages == 0);
    expect_counters(0, 0, 0, 0);
}

Test(source, a_damaged_slot_heals_from_the_copy)
{
    uci_send_op_t *op = send_and_write_over(LENGTH);

    ((char *)uci_direct_data(op, 0))[100] ^= 4;
    receive_as_meant(LENGTH);
    expect_counters(1, 1, 0, 0);
    cr_expect(net_nodes[0].worker->stats.counters->buffered_messages == 1);
    cr_expect(net_nodes[0].worker->xfer.copy_bytes == 0, "the copy goes with its message");
}

Test(source, so_do_several)
{
    uci_send_op_t *op = send_and_write_over(LENGTH_LONG);
    uint32_t i;

    for (i = 0; i < op->chunk.count; ++i) {
        ((char *)uci_direct_data(op, i))[i] ^= 1;
    }
    cr_assert(op->chunk.count > 2);
    i = op->chunk.count;
    receive_as_meant(LENGTH_LONG);
    expect_counters(i, i, 0, 0);
}

/* It is told of a slot where it sees none: at once it says so, and nobody waits */
Test(source, slots_that_are_not_seen)
{
    uci_bounce_t *bounce   = &net_nodes[0].worker->link.bounce;
    uci_peer_t *peer       = uci_worker_peer_find(net_nodes[1].worker, net_nodes[0].worker->uid);
    struct uci_slot *slots = peer->slots.map.slots;
    unsigned turn, available = bounce->available;

    net_nodes[0].context.buffered_max = 0;
    bounce->available                 = 0; /* it is described without one */
    start_recv(1);
    start_send(0, LENGTH_LONG);
    bounce->available     = available;
    peer->slots.map.slots = NULL;
    for (turn = 0; turn < 50; ++turn) {
        net_clock += 1000000;
        net_turn(1);
        net_turn(0);
    }
    peer->slots.map.slots = slots;
    cr_expect(received && sent && (memcmp(taken, meant, LENGTH_LONG) == 0));
}

/* It has forgotten, when it laid its receiver to rest, that he reads its slots, and tells him of them once more */
Test(source, slots_that_are_told_again)
{
    uci_peer_t *peer = net_nodes[0].ep->peer;

    peer->slots.offered   = false;
    peer->slots.maps_ours = false;
    uci_peer_forget_plan(peer);
    start_recv(1);
    start_send(0, LENGTH);
    let_both_turn();
    cr_expect(peer->slots.offered && peer->slots.maps_ours);
}

/* Its own words, which say what is right and how much: all of it comes another way */
Test(source, a_damaged_head_of_a_slot_heals_from_the_copy)
{
    uci_send_op_t *op = send_and_write_over(LENGTH);

    net_nodes[0].worker->link.bounce.slots[uci_direct_first_slot(op)].value ^= 1;
    receive_as_meant(LENGTH);
    expect_counters(0, 0, 0, 0);
}

Test(source, slot_and_head_as_well)
{
    uci_send_op_t *op = send_and_write_over(LENGTH);

    ((char *)uci_direct_data(op, 0))[100] ^= 4;
    net_nodes[0].worker->link.bounce.slots[uci_direct_first_slot(op)].length ^= 1;
    receive_as_meant(LENGTH);
    expect_counters(0, 0, 0, 0);
}

/* There is nothing that could be right: never silence, and never the digest of what is there now */
Test(source, slot_and_copy_damaged_is_for_the_policy)
{
    uci_send_op_t *op = send_and_write_over(LENGTH);

    ((char *)uci_direct_data(op, 0))[100] ^= 4;
    ((char *)op->copy)[LENGTH - 1] ^= 8;
    receive_nothing();
    expect_counters(1, 0, 1, 0);
}

Test(source, a_damaged_copy_that_has_to_be_streamed_is_for_the_policy)
{
    uci_send_op_t *op = send_and_write_over(LENGTH);

    net_nodes[0].worker->link.bounce.slots[uci_direct_first_slot(op)].value ^= 1;
    ((char *)op->copy)[3] ^= 8;
    receive_nothing();
    expect_counters(1, 0, 1, 0);
}

/* The user's own store, while the send is pending: delivered as it is now, and called by its name */
Test(source, a_changed_buffer_is_no_repair)
{
    start_send(0, LENGTH);
    cr_assert(!sent);
    ((char *)uci_direct_data(the_send(), 0))[100] ^= 4;
    user[5] ^= 1;
    meant[5] ^= 1;
    receive_as_meant(LENGTH);
    expect_counters(1, 0, 0, 1);
}

Test(source, a_buffer_changed_before_it_is_copied)
{
    uci_send_op_t *op;

    start_send(0, LENGTH);
    op = the_send();
    user[5] ^= 1;
    meant[5] ^= 1;
    let_sender_turn();
    cr_assert(sent);
    cr_expect((op->chunk.changed != NULL) && (op->chunk.changed[0] == 1));
    ((char *)uci_direct_data(op, 0))[100] ^= 4;
    memset(user, 0x55, sizeof(user));
    receive_as_meant(LENGTH);
    expect_counters(1, 0, 0, 1);
}

Test(source, a_pending_buffer_that_did_not_change_is_a_repair)
{
    start_send(0, LENGTH);
    ((char *)uci_direct_data(the_send(), 0))[100] ^= 4;
    receive_as_meant(LENGTH);
    expect_counters(1, 1, 0, 0);
}

static char *events_of(const char *name)
{
    static char path[64];

    snprintf(path, sizeof(path), "/tmp/uci-source-%s-%d.jsonl", name, (int)getpid());
    uci_settings.events = path;
    return path;
}

/* @return the records so far; to be given to free() */
static char *read_records(const char *path)
{
    char *text   = calloc(1, 65536);
    FILE *stream = fopen(path, "re");

    if (stream != NULL) {
        cr_assert(fread(text, 1, 65535, stream) > 0);
        fclose(stream);
    }
    return text;
}

/* What the program wrote before the copy was made: the receiver has what was read first, and only the sender knows */
Test(source, a_change_that_a_copy_shows_is_told_and_what_was_sent_arrives)
{
    char *path = events_of("kept"), *records, *said;
    test_capture_t capture;

    start_send(0, LENGTH);
    user[5] ^= 1;
    uci_log_level = UCI_LOG_WARN;
    capture       = test_capture_start();
    let_sender_turn();
    said          = test_capture_stop(&capture);
    uci_log_level = UCI_LOG_FATAL;
    cr_assert(sent);
    cr_expect(strstr(said, "it arrives as it was when it was sent") != NULL, "%s", said);
    receive_as_meant(LENGTH);
    expect_counters(0, 0, 0, 0);
    let_sender_end();
    cr_expect(net_nodes[0].worker->stats.counters->source_changed_late == 1);
    records = read_records(path);
    cr_expect(strstr(records, "\"source_changed\"") && strstr(records, "\"sender\"") &&
                      strstr(records, "They arrived as they were"),
              "%s", records);
    free(records);
    free(said);
    unlink(path);
}

/* The same, and what was read first is damaged: what is there now is sent, both say so, and there is one record */
Test(source, a_change_that_is_delivered_is_recorded_once)
{
    char *path = events_of("again"), *records;

    start_send(0, LENGTH);
    user[5] ^= 1;
    meant[5] ^= 1;
    let_sender_turn();
    cr_assert(sent);
    ((char *)uci_direct_data(the_send(), 0))[100] ^= 4;
    receive_as_meant(LENGTH);
    expect_counters(1, 0, 0, 1);
    let_sender_end();
    cr_expect(net_nodes[0].worker->stats.counters->source_changed_late == 1);
    records = read_records(path);
    cr_expect(strstr(records, "\"source_changed\"") && !strstr(records, "\"role\":\"sender\"") &&
                      (strchr(records, '\n') == strrchr(records, '\n')),
              "%s", records);
    free(records);
    unlink(path);
}

/* The same of one that is not all read yet: the root is that of what is there now, so that this is what arrives, and the receiver knows */
Test(source, a_change_before_all_is_read_is_delivered)
{
    uci_settings.chunk_size = 4096; /* more than there are slots for */
    uci_tuner_refresh();
    start_send(0, LENGTH_LONG);
    turn_of_sender();
    cr_assert((the_send()->state == UCI_SEND_DIRECT) && (the_send()->chunk.next < the_send()->chunk.count));
    user[5] ^= 1;
    meant[5] ^= 1;
    let_sender_turn();
    cr_assert(sent);
    receive_as_meant(LENGTH_LONG);
    expect_counters(1, 0, 0, 1);
}

/* Of UCI's own copy: no error as long as nobody has to go without, and not a line for each */
Test(source, damaged_copies_are_warned_of_and_not_for_ever)
{
    test_capture_t capture;
    char *said, *line;
    unsigned i, lines = 0;

    uci_log_level = UCI_LOG_WARN;
    capture       = test_capture_start();
    for (i = 0; i < 100; ++i) {
        uci_report_copy_damaged(uci_worker_peer_find(net_nodes[0].worker, net_nodes[1].worker->uid), TAG, false,
                                LENGTH);
    }
    said          = test_capture_stop(&capture);
    uci_log_level = UCI_LOG_FATAL;
    for (line = said; (line = strstr(line, "the copy of a message")) != NULL; ++line) {
        ++lines;
    }
    cr_expect(lines == 10, "%u lines", lines);
    cr_expect(strstr(said, "ERROR") == NULL, "%s", said);
    cr_expect(strstr(said, "further damaged copies are counted") != NULL);
    cr_expect(net_nodes[0].worker->stats.counters->copies_damaged + uci_stats.copies_damaged == 100);
    free(said);
}

/* -------------------------------------------- looked at again at the end */

static void expect_checks(uint64_t checked, uint64_t changed)
{
    const uci_stats_t *counters = net_nodes[0].worker->stats.counters;

    let_sender_end();
    cr_expect(counters->sources_checked == checked, "checked %lu", (unsigned long)counters->sources_checked);
    cr_expect(counters->source_changed_late == changed, "changed %lu", (unsigned long)counters->source_changed_late);
}

/* It is in a slot already, and arrives as it was: only its sender can know */
Test(source, a_buffer_that_changes_too_late_is_seen_if_asked_for)
{
    uci_settings.check_sources = true;
    start_send(0, LENGTH);
    cr_assert(!sent);
    user[5] ^= 1;
    receive_as_meant(LENGTH);
    cr_expect(sent);
    expect_counters(0, 0, 0, 0);
    expect_checks(1, 1);
}

Test(source, and_not_if_not)
{
    start_send(0, LENGTH);
    user[5] ^= 1;
    receive_as_meant(LENGTH);
    expect_checks(0, 0);
}

Test(source, only_what_has_changed_is_told)
{
    uci_settings.check_sources = true;
    start_send(0, LENGTH_LONG);
    user[0] ^= 1;
    user[1] ^= 1;
    user[LENGTH_LONG - 1] ^= 1;
    start_recv(1);
    let_both_turn();
    cr_assert(sent && received);
    expect_checks(1, 2); /* chunks */
}

Test(source, a_buffer_that_stays_is_not_told)
{
    uci_settings.check_sources = true;
    start_send(0, LENGTH_LONG);
    receive_as_meant(LENGTH_LONG);
    expect_checks(1, 0);
}

/* Its user may do with it what he likes, and it may be gone */
Test(source, a_send_that_is_complete_is_not_looked_at)
{
    uci_settings.check_sources = true;
    (void)send_and_write_over(LENGTH);
    receive_as_meant(LENGTH);
    expect_checks(0, 0);
}

/* Told once: what the repair has found is what was sent in the end */
Test(source, a_repair_has_told_it_already)
{
    uci_settings.check_sources = true;
    start_send(
            0,
            LENGTH_LONG); /* of several chunks: it is not copied at the first turn, and so pending when the repair is asked for */
    ((char *)uci_direct_data(the_send(), 0))[100] ^= 4;
    user[5] ^= 1;
    meant[5] ^= 1;
    receive_as_meant(LENGTH_LONG);
    expect_counters(1, 0, 0, 1);
    expect_checks(1, 1);
}

/* ------------------------------------------------------------------- frames */

static void damage_frame(net_message_t *message)
{
    if (message->frame && (message->length > 500)) {
        message->data[200] ^= 1;
        net_sent = NULL;
    }
}

Test(source, a_frame_heals_from_the_log)
{
    net_sent = damage_frame;
    start_send(0, 1000);
    memset(user, 0x55, sizeof(user));
    receive_as_meant(1000);
    expect_counters(1, 1, 0, 0);
}

Test(source, a_frame_damaged_in_the_log_too_is_for_the_policy)
{
    uci_peer_t *peer = net_nodes[0].ep->peer;
    uci_frame_t *frame;

    net_sent = damage_frame;
    start_send(0, 1000);
    frame = uci_txlog_find(peer, peer->tx.next - 1);
    cr_assert(frame != NULL);
    uci_frame_payload(frame)[999] ^= 1;
    receive_nothing();
    expect_counters(1, 0, 1, 0);
}
