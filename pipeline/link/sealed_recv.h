/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What comes to a worker that seals (sealed.h): records are opened, and what was in them goes to where plain messages go. Plain ones are
 * rejected, whoever they say they are from. HELLO comes first: it brings the address of a worker in clear, whose mark is authentic with the
 * job's key, and so what the keys of this pair are made of; the record behind it is of these keys, and was not there before.
 */
#ifndef UCI_SEALED_RECV_H_
#define UCI_SEALED_RECV_H_

#include "sealed.h"

/* Handlers of active messages: ucp_am_recv_callback_t. @param arg  the worker. */

/** Records, UCI_SEALED_AM_ID. */
ucs_status_t uci_sealed_recv(void *arg, const void *header, size_t header_length, void *data, size_t length,
                             const ucp_am_recv_param_t *param);

/** HELLO, UCI_AM_ID. */
ucs_status_t uci_sealed_recv_hello(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                   const ucp_am_recv_param_t *param);

/** Frames that are not sealed, UCI_FRAME_AM_ID. */
ucs_status_t uci_sealed_recv_plain(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                   const ucp_am_recv_param_t *param);

#endif
