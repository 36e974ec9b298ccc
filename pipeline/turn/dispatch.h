/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Who an active message is for. What control.h has verified comes here; the handlers are in the rooms, and known by their rows (am_handler.h).
 */
#ifndef UCI_DISPATCH_H_
#define UCI_DISPATCH_H_

#include "base/wire.h"
#include "base/worker_state.h"

/** All rows, by type: worker->calls.handlers. */
extern const struct uci_am_handler *const uci_am_handlers[UCI_AM_LAST];

/**
 * For worker->calls.message: check what it says, and hand it to who handles its type.
 *
 * @param data  what follows the header; of SEGMENT that is a part of the header.
 * @param desc  of SEGMENT, UCX's handle of what is to be fetched; else NULL.
 * @return what UCX's callback has to return.
 */
ucs_status_t uci_dispatch(uci_worker_t *worker, const uci_am_hdr_t *hdr, const void *data, size_t length, void *desc);

/** UCX has nothing for us: what has waited for that is taken (uci_am_handler_t.later). */
void uci_dispatch_later(uci_worker_t *worker);

/** The worker goes: what waits is forgotten. */
void uci_dispatch_cleanup(uci_worker_t *worker);

#endif
