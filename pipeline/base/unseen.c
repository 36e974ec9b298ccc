/* SPDX-License-Identifier: BSD-3-Clause */
#include "unseen.h"

#include "fault/fault.h"
#include "live/stats.h"

bool uci_unseen_is_counted(void)
{
    return uci_fault_asked;
}

void uci_unseen_pass(const uci_digest_ops_t *digest, const void *data, size_t length, uint64_t value)
{
    if (uci_unlikely(uci_fault_asked) && (digest != NULL) && (digest->digest(data, length) != value)) {
        UCI_STATS_INC(faults_unseen);
    }
}

void uci_unseen_count(void)
{
    UCI_STATS_ADD(faults_unseen, uci_fault_asked);
}
