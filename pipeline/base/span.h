/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Registered bounce buffers: one bounded pool of spans per worker, mapped with UCX when one is needed first, so that what goes
 * through them needs no registration of its own.
 */
#ifndef UCI_SPAN_H_
#define UCI_SPAN_H_

#include "worker_state.h"

/** @return a span, as long as @a keep others remain; NULL if there is none. Whose content it has had before is not told. */
void *uci_span_get(uci_worker_t *worker, unsigned keep);

/** Give a span back; NULL is ignored. */
void uci_span_put(uci_worker_t *worker, void *span);

/** Have UCX use the registration that spans have. @param param  of an operation on bytes in a span. */
void uci_span_set_memh(const uci_worker_t *worker, ucp_request_param_t *param);

/** After UCX has destroyed the worker, which may have used them until then. */
void uci_spans_cleanup(uci_worker_t *worker);

#endif
