/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_check: compare a path with one of another host. Both sides do the same things in lockstep (a swap: each sends one message and receives
 * one); only what they tell in the first one differs.
 *
 *     REQUEST   form and path                  what the one that was started is to compare with
 *     READY     how many entries there are     when both have read their data
 *     names     tree over buckets of entries, by the digest of their names: core/tree/merkle_exchange.h. An entry more or less
 *               changes one bucket
 *     ENTRIES   those of buckets that differ
 *     chunks    tree over the chunks of all files that differ, one after the other: core/tree/merkle_exchange.h
 *
 * So bytes grow with what differs, and with the logarithm of what there is; and rounds with the logarithm. The other side is not trusted:
 * what it sends is sealed, checked, and bounded.
 */
#ifndef UCI_CHECK_PEER_H_
#define UCI_CHECK_PEER_H_

#include "check_diff.h"
#include "check_scan.h"

#define UCI_CHECK_TEXT_MAX 65536 /**< of a path, in bytes */

/** How to reach the other side. */
typedef struct uci_check_wire {
    uci_merkle_swap_func_t swap;
    void *arg;
} uci_check_wire_t;

/** What the side that was started is asked to compare. */
typedef struct uci_check_request {
    uci_check_form_t form;
    bool one_file_system;
    char path[UCI_CHECK_TEXT_MAX];
} uci_check_request_t;

/** Send @a request. */
uci_status_t uci_check_ask(const uci_check_wire_t *wire, const uci_check_request_t *request);

/** Receive a request, which is checked. */
uci_status_t uci_check_be_asked(const uci_check_wire_t *wire, uci_check_request_t *request);

/**
 * Find what differs between @a own, which is sorted and read, and the list of the other side.
 * @param own       NULL: it could not be read, which the other side is told.
 * @param is_asker  whether this side has sent the request.
 * @param own_is_a  which one the differences call a.
 * @param subset    receives the entries of @a own that @a diffs speaks of; @a theirs those of the other side. All three are to be cleaned up,
 *                  after errors as well.
 * @return UCI_OK or an error (said).
 */
uci_status_t uci_check_peer_compare(const uci_check_wire_t *wire, const uci_check_list_t *own, bool is_asker,
                                    bool own_is_a, uci_check_list_t *subset, uci_check_list_t *theirs,
                                    uci_check_diffs_t *diffs);

#endif
