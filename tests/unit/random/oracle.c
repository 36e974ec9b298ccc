/* SPDX-License-Identifier: BSD-3-Clause */
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const verdict_names[] = {"ok",      "wrong bytes",    "overtaken",  "an error",
                                     "touched", "waits for ever", "wrong probe"};

void oracle_begin(oracle_t *oracle, const scenario_t *scenario)
{
    oracle->scenario       = scenario;
    oracle->messages_count = oracle->recvs_count = 0;
    oracle->text[0]                              = '\0';
}

static bool takes(const oracle_recv_t *recv, const oracle_message_t *message)
{
    return (recv->node == message->to) && (((recv->tag ^ message->tag) & recv->mask) == 0);
}

/* --------------------------------------------------------------- one receive */

static oracle_message_t *find_message(oracle_t *oracle, const oracle_recv_t *recv)
{
    unsigned i;

    for (i = 0; i < oracle->messages_count; ++i) {
        oracle_message_t *message = &oracle->messages[i];

        if ((message->to == recv->node) && (message->tag == recv->from_tag) && (message->length == recv->length) &&
            (message->first_bytes == recv->first_bytes)) {
            return message;
        }
    }
    return NULL;
}

static verdict_t compare(oracle_t *oracle, const oracle_recv_t *recv, unsigned number, const data_buffer_t *buffer)
{
    char *bytes = malloc(2 * recv->length + 1), *expected = bytes + recv->length;
    const oracle_message_t *message = find_message(oracle, recv);
    verdict_t verdict               = VERDICT_OK;
    size_t i;

    data_buffer_read(buffer, bytes, recv->length);
    if (message == NULL) {
        snprintf(oracle->text, sizeof(oracle->text),
                 "receive %u of node %u: no message of tag 0x%lx and %lu bytes begins like this", number, recv->node,
                 (unsigned long)recv->from_tag, (unsigned long)recv->length);
        verdict = VERDICT_BYTES;
    } else {
        data_write(expected, message->length, oracle->scenario, message->number);
        for (i = 0; (i < recv->length) && (bytes[i] == expected[i]); ++i) {
        }
        if (i < recv->length) {
            snprintf(oracle->text, sizeof(oracle->text), "receive %u of node %u: byte %zu of message %u is wrong",
                     number, recv->node, i, message->number);
            verdict = VERDICT_BYTES;
        }
    }
    free(bytes);
    return verdict;
}

static verdict_t refuse(oracle_t *oracle, verdict_t verdict, unsigned number, const char *what)
{
    const oracle_recv_t *recv = &oracle->recvs[number];

    snprintf(oracle->text, sizeof(oracle->text),
             "receive %u of node %u (tag 0x%lx/0x%lx): %s; status %d, tag 0x%lx, %lu bytes", number, recv->node,
             (unsigned long)recv->tag, (unsigned long)recv->mask, what, recv->status, (unsigned long)recv->from_tag,
             (unsigned long)recv->length);
    return verdict;
}

verdict_t oracle_received(oracle_t *oracle, unsigned number, const data_buffer_t *buffer)
{
    oracle_recv_t *recv = &oracle->recvs[number];
    bool ok             = (recv->status == UCS_OK);

    if (!data_buffer_is_clean(buffer, ok ? recv->length : buffer->length)) {
        return refuse(oracle, VERDICT_TOUCHED, number, "bytes that are not the message's were written to");
    }
    if (buffer->misused) {
        return refuse(oracle, VERDICT_TOUCHED, number, "its datatype was unpacked out of order");
    }
    if (recv->status == UCS_ERR_CANCELED) {
        return recv->probed ? refuse(oracle, VERDICT_STATUS, number, "a probed message was cancelled") : VERDICT_OK;
    }
    if (!ok && (recv->status != UCS_ERR_MESSAGE_TRUNCATED)) {
        return refuse(oracle, VERDICT_STATUS, number, "it failed");
    }
    if (((recv->from_tag ^ recv->tag) & recv->mask) != 0) {
        return refuse(oracle, VERDICT_BYTES, number, "it does not take this tag");
    }
    if (recv->probed && ((recv->from_tag != recv->probed_tag) || (ok && (recv->length != recv->probed_length)))) {
        return refuse(oracle, VERDICT_PROBE, number, "the probe had told something else");
    }
    if (!ok) {
        return VERDICT_OK;
    }
    if (recv->length > recv->capacity) {
        return refuse(oracle, VERDICT_BYTES, number, "there is no room for so much");
    }
    recv->first_bytes = 0;
    data_buffer_read(buffer, (char *)&recv->first_bytes, uci_min(recv->length, sizeof(recv->first_bytes)));
    return compare(oracle, recv, number, buffer);
}

/* -------------------------------------------------------------- which to which */

static bool is_assignable(const oracle_recv_t *recv, const oracle_message_t *message)
{
    if ((message->taken_by >= 0) || (message->to != recv->node) || (message->tag != recv->from_tag)) {
        return false;
    }
    return (recv->status == UCS_OK) ? (message->length == recv->length) && (message->first_bytes == recv->first_bytes)
                                    : (message->length > recv->capacity) && (message->length == recv->length);
}

static verdict_t assign(oracle_t *oracle, ucs_status_t status)
{
    unsigned i, k;

    for (i = 0; i < oracle->recvs_count; ++i) {
        oracle_recv_t *recv = &oracle->recvs[i];

        if (!recv->done || (recv->status != status)) {
            continue;
        }
        for (k = 0; (k < oracle->messages_count) && !is_assignable(recv, &oracle->messages[k]); ++k) {
        }
        if (k == oracle->messages_count) {
            return refuse(oracle, VERDICT_BYTES, i, "a message came twice, or is none");
        }
        recv->message                = (int)k;
        oracle->messages[k].taken_by = (int)i;
    }
    return VERDICT_OK;
}

static bool are_alike(const oracle_message_t *a, const oracle_message_t *b)
{
    return (a->to == b->to) && (a->tag == b->tag) && (a->length == b->length) && (a->first_bytes == b->first_bytes);
}

/* A receive that was too small does not tell which of those that look alike it got: all of them were taken in order */
static void reorder_alike(oracle_t *oracle)
{
    oracle_message_t *messages = oracle->messages;
    unsigned i, k;
    int first;

    for (i = 0; i < oracle->messages_count; ++i) {
        for (k = i + 1; k < oracle->messages_count; ++k) {
            if ((messages[k].taken_by < 0) || !are_alike(&messages[i], &messages[k]) ||
                ((messages[i].taken_by >= 0) && (messages[i].taken_by < messages[k].taken_by))) {
                continue;
            }
            first                = messages[k].taken_by;
            messages[k].taken_by = messages[i].taken_by;
            messages[i].taken_by = first;
        }
    }
    for (i = 0; i < oracle->messages_count; ++i) {
        if (messages[i].taken_by >= 0) {
            oracle->recvs[messages[i].taken_by].message = (int)i;
        }
    }
}

/* Records of receives are in the order of posting, those of messages in that of sending: what looks alike is taken in order */
verdict_t oracle_assign(oracle_t *oracle)
{
    verdict_t verdict;
    unsigned i;

    for (i = 0; i < oracle->messages_count; ++i) {
        oracle->messages[i].taken_by = -1;
    }
    for (i = 0; i < oracle->recvs_count; ++i) {
        oracle->recvs[i].message = -1;
    }
    verdict = assign(oracle, UCS_OK);
    verdict = (verdict == VERDICT_OK) ? assign(oracle, UCS_ERR_MESSAGE_TRUNCATED) : verdict;
    if (verdict == VERDICT_OK) {
        reorder_alike(oracle);
    }
    return verdict;
}

int oracle_waiting(oracle_t *oracle)
{
    unsigned i, k;

    for (i = 0; i < oracle->recvs_count; ++i) {
        const oracle_recv_t *recv = &oracle->recvs[i];

        for (k = 0; !recv->done && recv->posted && (k < oracle->messages_count); ++k) {
            if ((oracle->messages[k].taken_by < 0) && takes(recv, &oracle->messages[k])) {
                snprintf(
                        oracle->text, sizeof(oracle->text),
                        "receive %u of node %u (tag 0x%lx/0x%lx) waits, and nobody has got message %u (%u to %u, tag 0x%lx, %lu "
                        "bytes)",
                        i, recv->node, (unsigned long)recv->tag, (unsigned long)recv->mask, k, oracle->messages[k].from,
                        oracle->messages[k].to, (unsigned long)oracle->messages[k].tag,
                        (unsigned long)oracle->messages[k].length);
                return (int)i;
            }
        }
    }
    return -1;
}

static bool is_overtaken(const oracle_t *oracle, const oracle_message_t *earlier, const oracle_message_t *later)
{
    const oracle_recv_t *recv = &oracle->recvs[later->taken_by];

    if ((earlier->from != later->from) || (earlier->to != later->to) || !takes(recv, earlier)) {
        return false;
    }
    return (earlier->taken_by < 0) || (oracle->recvs[earlier->taken_by].order > recv->order);
}

verdict_t oracle_judge_order(oracle_t *oracle)
{
    unsigned i, k;

    for (k = 1; k < oracle->messages_count; ++k) {
        for (i = 0; (i < k) && (oracle->messages[k].taken_by >= 0); ++i) {
            if (is_overtaken(oracle, &oracle->messages[i], &oracle->messages[k])) {
                snprintf(
                        oracle->text, sizeof(oracle->text),
                        "message %u (%u to %u, tag 0x%lx) was received by %d, although message %u (tag 0x%lx, received by %d) "
                        "was sent before",
                        k, oracle->messages[k].from, oracle->messages[k].to, (unsigned long)oracle->messages[k].tag,
                        oracle->messages[k].taken_by, i, (unsigned long)oracle->messages[i].tag,
                        oracle->messages[i].taken_by);
                return VERDICT_ORDER;
            }
        }
    }
    return VERDICT_OK;
}

verdict_t oracle_probed(oracle_t *oracle, unsigned node, uint64_t tag, uint64_t mask, uint64_t from_tag,
                        uint64_t length)
{
    oracle_recv_t recv = {.node = node, .tag = tag, .mask = mask};
    verdict_t verdict  = oracle_assign(oracle);
    unsigned i;

    for (i = 0; i < oracle->messages_count; ++i) {
        const oracle_message_t *message = &oracle->messages[i];

        if ((message->taken_by < 0) && takes(&recv, message) && (message->tag == from_tag) &&
            (message->length == length)) {
            return verdict;
        }
    }
    snprintf(oracle->text, sizeof(oracle->text), "a probe of node %u (tag 0x%lx/0x%lx) told of tag 0x%lx, %lu bytes",
             node, (unsigned long)tag, (unsigned long)mask, (unsigned long)from_tag, (unsigned long)length);
    return VERDICT_PROBE;
}
