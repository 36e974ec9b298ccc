/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_info -d: RDMA devices and ports, as sysfs and libibverbs show them.
 */
#ifndef UCI_INFO_DEVICES_H_
#define UCI_INFO_DEVICES_H_

/**
 * Print what is known of each RDMA device and port: state, link, GIDs, counters of errors. Without libibverbs, or
 * without permission to open a device, says so and prints what sysfs tells.
 * @param root  UCI_RDMA_SYSFS, or a folder of the same layout.
 */
void uci_info_print_devices(const char *root);

#endif
