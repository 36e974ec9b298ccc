/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_info -s: what UCI_SEAL would be done with here.
 */
#ifndef UCI_INFO_SEAL_H_
#define UCI_INFO_SEAL_H_

/**
 * Print the libraries of cryptography, with their ciphers and the speed of these here, or why they can't be used; and which
 * would be chosen with the settings in force, which must have been read.
 * @return EXIT_SUCCESS, or EXIT_FAILURE if a process with UCI_SEAL=encrypt and these settings could not seal; the key is not looked at.
 */
int uci_info_print_seal(void);

#endif
