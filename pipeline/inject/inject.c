/* SPDX-License-Identifier: BSD-3-Clause */
#include "inject.h"

#include "fault/fault.h"
#include "inject_delivery.h"
#include "inject_fetch.h"
#include "inject_memory.h"
#include "inject_send.h"

void uci_inject_install(void)
{
    uci_inject_send_install(uci_fault_enabled);
    uci_inject_fetch_install(uci_fault_enabled);
    uci_inject_memory_install(uci_fault_enabled, uci_fault_asked);
    uci_inject_delivery_install();
}
