/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Tag messages of peers without UCI, which come by UCX's matching: such peers are connected by socket address (conn/sock.h). All receives are
 * in UCI's matching, so UCX has none, and each such message is one that nobody has asked for. It is taken from there by a handle, in order,
 * and put into UCI's matching, where it finds its receive, or waits, among those that have been verified; UCX moves its bytes when it is
 * received.
 */
#ifndef UCI_RAW_H_
#define UCI_RAW_H_

#include "unexpected.h"

/** A peer without UCI is connected: from now on UCX may have messages for the worker. */
void uci_raw_begin(uci_worker_t *worker);

/** Take what has come. @return how many. */
unsigned uci_raw_progress(uci_worker_t *worker);

/** UCX moves it to the receive, whose it is; the message is gone. */
void uci_raw_receive(uci_message_t *message, uci_request_t *req);

/** The worker goes: give UCX back what nobody has received. */
void uci_raw_shutdown(uci_worker_t *worker);

#endif
