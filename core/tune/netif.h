/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the kernel says of a network interface.
 */
#ifndef UCI_NETIF_H_
#define UCI_NETIF_H_

#include "util/types.h"

/** Where the kernel shows network interfaces. */
#define UCI_NETIF_SYSFS "/sys/class/net"

/** Bytes of a name with its end: IFNAMSIZ of Linux. */
#define UCI_NETIF_NAME_SIZE 16

/**
 * Speed of an interface's link.
 * @param root  UCI_NETIF_SYSFS, or a folder of the same layout.
 * @return Mbit/s; 0 if it is not known (many virtual interfaces do not say), or there is no such interface.
 */
unsigned uci_netif_speed(const char *root, const char *name);

#endif
