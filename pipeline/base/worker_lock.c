/* SPDX-License-Identifier: BSD-3-Clause */
#include "worker_lock.h"

#include "siblings.h"

void uci_worker_lock_init(uci_worker_t *worker, ucs_thread_mode_t thread_mode)
{
    pthread_mutexattr_t attr;

    worker->access.is_mt = (thread_mode == UCS_THREAD_MODE_MULTI);
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&worker->access.lock, &attr);
    pthread_mutexattr_destroy(&attr);
    worker->access.owner = worker->access.is_mt ? 0 : uci_thread_self();
}

void uci_worker_lock_cleanup(uci_worker_t *worker)
{
    pthread_mutex_destroy(&worker->access.lock);
}

void uci_worker_enter_slow(uci_worker_t *worker)
{
    if (worker->access.is_mt) {
        pthread_mutex_lock(&worker->access.lock);
    } else {
        uci_siblings_take_over(worker);
    }
}
