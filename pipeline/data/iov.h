/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Entries of an iov, found by their offset in its packed form. A message is copied chunk by chunk, and its iov may have a million
 * entries: of each UCI_IOV_STEP of them it is remembered how many bytes are before, so that finding one takes as many steps at most, and the
 * logarithm of the rest.
 */
#ifndef UCI_IOV_H_
#define UCI_IOV_H_

#include "ucp/ucp_api.h"

/** Entries of which one is remembered; an iov of no more than these is walked. */
#define UCI_IOV_STEP 64

/** @return bytes of all entries. */
size_t uci_iov_length(const ucp_dt_iov_t *iov, size_t count);

/**
 * @param length_p  bytes of all entries.
 * @param index_p   for uci_iov_find(), to be freed; NULL: it is short.
 * @return UCS_OK, or UCS_ERR_NO_MEMORY (logged).
 */
ucs_status_t uci_iov_index(const ucp_dt_iov_t *iov, size_t count, size_t *length_p, size_t **index_p);

/** @param offset_p  in: in the packed form; out: in the entry. @return that entry; @a count: it is behind the last one. */
size_t uci_iov_find(const ucp_dt_iov_t *iov, size_t count, const size_t *index, size_t *offset_p);

#endif
