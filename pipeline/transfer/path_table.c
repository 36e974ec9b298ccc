/* SPDX-License-Identifier: BSD-3-Clause */
#include "path_table.h"

#include "direct.h"
#include "get.h"
#include "base/path.h"
#include "stream.h"
#include "superpipe.h"

/* Places in uci_worker_t of lists, 0: none. A path has something to do if any is not empty. They stand here, where they are constants: whoever
 * polls while he waits should not pay for more than looking */
typedef struct uci_path_row {
    const uci_path_ops_t *path;
    size_t queues[2];
    bool own; /* of UCI's alone: UCX has no part in it */
} uci_path_row_t;

/* More are not counted */
#define UCI_PATH_TABLE_FEW 4u

static const uci_path_row_t uci_path_rows[] = {
        {&uci_direct_path,
         {offsetof(uci_worker_t, xfer.direct_recvs), offsetof(uci_worker_t, xfer.direct_sends)},
         true},
        {&uci_stream_path, {offsetof(uci_worker_t, xfer.streams)}},
        {&uci_get_path, {offsetof(uci_worker_t, xfer.offers), offsetof(uci_worker_t, xfer.landed)}},
        {&uci_superpipe_path, {offsetof(uci_worker_t, xfer.bounces)}}};

UCI_INLINE const uci_list_t *uci_path_queue(const uci_worker_t *worker, size_t queue)
{
    return (const uci_list_t *)(const void *)((const char *)worker + queue);
}

UCI_INLINE bool uci_path_queue_is_due(const uci_worker_t *worker, size_t queue)
{
    return (queue != 0) && !uci_list_is_empty(uci_path_queue(worker, queue));
}

UCI_INLINE bool uci_path_row_is_due(const uci_path_row_t *row, const uci_worker_t *worker)
{
    return uci_path_queue_is_due(worker, row->queues[0]) || uci_path_queue_is_due(worker, row->queues[1]);
}

unsigned uci_path_table_progress(uci_worker_t *worker)
{
    unsigned i, count = 0;

#pragma GCC unroll 8
    for (i = 0; i < uci_array_size(uci_path_rows); ++i) {
        if (uci_path_row_is_due(&uci_path_rows[i], worker)) {
            count += uci_path_rows[i].path->progress(worker);
        }
    }
    return count;
}

bool uci_path_table_are_due(const uci_worker_t *worker)
{
    unsigned i;

    for (i = 0; i < uci_array_size(uci_path_rows); ++i) {
        if (uci_path_row_is_due(&uci_path_rows[i], worker)) {
            return true;
        }
    }
    return false;
}

/* @return how many of @a left are not in this queue. */
UCI_INLINE unsigned uci_path_queue_left(const uci_worker_t *worker, size_t queue, unsigned left)
{
    const uci_list_t *head = uci_path_queue(worker, queue), *link;

    for (link = head->next; (left > 0) && (link != head); link = link->next) {
        --left;
    }
    return left;
}

bool uci_path_table_is_own(const uci_worker_t *worker)
{
    unsigned i, left = worker->ops_active;

    if (left > UCI_PATH_TABLE_FEW) {
        return false;
    }
#pragma GCC unroll 8
    for (i = 0; i < uci_array_size(uci_path_rows); ++i) {
        if (uci_path_rows[i].own) {
            left = uci_path_queue_left(worker, uci_path_rows[i].queues[0], left);
            left = uci_path_queue_left(worker, uci_path_rows[i].queues[1], left);
        }
    }
    return left == 0;
}

void uci_path_table_cleanup(uci_worker_t *worker)
{
    unsigned i;

    for (i = 0; i < uci_array_size(uci_path_rows); ++i) {
        if (uci_path_rows[i].path->cleanup != NULL) {
            uci_path_rows[i].path->cleanup(worker);
        }
    }
}
