/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Who may be in a worker: the thread that has its lock, or, without one, the thread that uses it (siblings.h).
 */
#ifndef UCI_WORKER_LOCK_H_
#define UCI_WORKER_LOCK_H_

#include "worker_state.h"

void uci_worker_lock_init(uci_worker_t *worker, ucs_thread_mode_t thread_mode);
void uci_worker_lock_cleanup(uci_worker_t *worker);

/** Lock it, or tell that another thread uses it now. */
void uci_worker_enter_slow(uci_worker_t *worker);

UCI_INLINE void uci_worker_enter(uci_worker_t *worker)
{
    if (uci_unlikely(__atomic_load_n(&worker->access.owner, __ATOMIC_RELAXED) != uci_thread_self())) {
        uci_worker_enter_slow(worker);
    }
    uci_stats_here = worker->stats.counters;
}

/** The usual case: no lock, nobody else. @return false: nothing has been done; else uci_worker_leave() is not needed. */
UCI_INLINE bool uci_worker_enter_fast(uci_worker_t *worker)
{
    if (uci_unlikely(__atomic_load_n(&worker->access.owner, __ATOMIC_RELAXED) != uci_thread_self())) {
        return false;
    }
    uci_stats_here = worker->stats.counters;
    return true;
}

UCI_INLINE void uci_worker_leave(uci_worker_t *worker)
{
    if (uci_unlikely(worker->access.is_mt)) {
        pthread_mutex_unlock(&worker->access.lock);
    }
}

#endif
