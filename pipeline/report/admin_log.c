/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin_log.h"

#include "util/process.h"
#include "settings/settings.h"
#include "util/system_log.h"

void uci_admin_log_damaged(const uci_peer_t *peer, uint64_t length, const char *verdict, const char *cause,
                           const char *path)
{
    const char *job = uci_process_job();

    if (uci_settings.syslog) {
        uci_system_log("message of %lu bytes from %s to %s, job %s, arrived damaged: %s, cause %s%s%s",
                       (unsigned long)length, uci_peer_name(peer), uci_process_name(), (job != NULL) ? job : "unknown",
                       verdict, cause, (path != NULL) ? ", path " : "", (path != NULL) ? path : "");
    }
}
