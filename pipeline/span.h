/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Registered bounce buffers: one bounded pool of spans per worker, mapped with UCX when one is needed first, so that what goes
 * through them needs no registration of its own.
 */
#ifndef UCI_SPAN_H_
#define UCI_SPAN_H_

#include "ucp_api.h"
#include "types.h"

struct uci_worker;

#define UCI_SPAN_SIZE  (512u << 10) /**< bytes */
#define UCI_SPAN_COUNT 16u          /**< spans of a worker */

typedef struct uci_spans {
    bool tried;
    ucp_mem_h memh; /**< of all of them */
    char *memory;   /**< NULL: there are none */
    unsigned free_count;
    uint8_t free[UCI_SPAN_COUNT];
} uci_spans_t;

/** @return a span, as long as @a keep others remain; NULL if there is none. Whose content it has had before is not told. */
void *uci_span_get(struct uci_worker *worker, unsigned keep);

/** Give a span back; NULL is ignored. */
void uci_span_put(struct uci_worker *worker, void *span);

/** Have UCX use the registration that spans have. @param param  of an operation on bytes in a span. */
void uci_span_set_memh(const struct uci_worker *worker, ucp_request_param_t *param);

/** After UCX has destroyed the worker, which may have used them until then. */
void uci_spans_cleanup(struct uci_worker *worker);

#endif
