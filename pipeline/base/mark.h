/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What a worker's address begins with, and HELLO brings: that it speaks UCI, which, and who it is.
 */
#ifndef UCI_MARK_H_
#define UCI_MARK_H_

#include "ucp/ucp_api.h"
#include "wire.h"

/** Fill in the mark of a worker with this uid; to be ended by uci_mark_finish() when complete. @return UCS_OK; UCS_ERR_IO_ERROR
 *  (logged): there are no random bytes; UCS_ERR_UNSUPPORTED (logged): a forked process without keys is to seal. */
ucs_status_t uci_mark_init(uci_mark_t *mark, uint64_t uid);

/** Write its check. */
void uci_mark_finish(uci_mark_t *mark);

/** @return true if this is a mark of any protocol version. */
bool uci_mark_is_present(const void *address);

/**
 * May we speak to who has this address? If this process seals, it is authenticated as a whole, as far as mark->address_length says; one
 * that reaches into memory that can't be read, or further than any address, is not authentic.
 * @return UCS_OK, or UCS_ERR_UNSUPPORTED after logging who the peer is and why it is refused.
 */
ucs_status_t uci_mark_check(const uci_mark_t *mark);

/** Say who is refused because UCI is on there, and off here. */
void uci_mark_refuse_on(const uci_mark_t *mark);

/** For an address from the network, where whoever likes can send one: is it whole, of our protocol, and authentic? Nothing is logged.
 *  @param length  bytes from the mark on. */
bool uci_mark_is_authentic(const uci_mark_t *mark, size_t length);

uint64_t uci_mark_uid(const uci_mark_t *mark);

/** Are both workers in the same network of the same host, under one kernel? What they say to each other does not leave the node. */
bool uci_mark_is_near(const uci_mark_t *one, const uci_mark_t *other);

/** Put a finished mark in front of a worker's UCX address, authenticated with it where this process seals.
 *  @param marked  room for sizeof(uci_mark_t) + @a length bytes. */
void uci_mark_put(void *marked, const uci_mark_t *mark, const void *address, size_t length);

/**
 * As uci_mark_put(), in memory of its own.
 * @param length_p  bytes of @a address; then, with the mark. Unchanged after an error.
 * @return to be given to free(); NULL: no memory (logged).
 */
void *uci_mark_address(const uci_mark_t *mark, const void *address, size_t *length_p);

/** What to call who it is in a log line: "rank 3 (node7:4711)". The text lives until the next 3 calls of this thread. */
const char *uci_mark_name(const uci_mark_t *mark);

/** Room for such a text. */
char *uci_mark_name_buffer(size_t *size_p);

#endif
