/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_info: what its parts show.
 */
#ifndef UCI_INFO_H_
#define UCI_INFO_H_

#include <stdbool.h>

/** Exit codes of uci_info --check; see uci_info(1). */
enum {
    UCI_INFO_CHECK_ON          = 0,
    UCI_INFO_CHECK_OFF         = 1, /**< no process that is started here has UCI */
    UCI_INFO_CHECK_UNPROTECTED = 3, /**< UCI is there, and does not protect */
    UCI_INFO_CHECK_UNKNOWN     = 4  /**< it can't be found out: no UCX, or UCX fails */
};

/**
 * Is UCI on for a process that is started here and now? Starts one and asks (uci_probe), and tells on stdout.
 * @param as_json  one JSON object instead of lines for people.
 * @return one of the codes above.
 */
int uci_info_check(bool as_json);

/**
 * Print what is known of each RDMA device and port: state, link, GIDs, counters of errors. Without libibverbs, or
 * without permission to open a device, says so and prints what sysfs tells.
 * @param root  UCI_RDMA_SYSFS, or a folder of the same layout.
 */
void uci_info_print_devices(const char *root);

/**
 * Print the libraries of cryptography, with their ciphers and the speed of these here, or why they can't be used; and which
 * would be chosen with the settings in force, which must have been read.
 * @return EXIT_SUCCESS, or EXIT_FAILURE if a process with UCI_SEAL=encrypt and these settings could not seal; the key is not looked at.
 */
int uci_info_print_seal(void);

#endif
