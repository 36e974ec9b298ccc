/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory for keys: left out of core dumps, kept out of the swap area where RLIMIT_MEMLOCK allows it, empty in children that
 * the process forks, and wiped when it is freed. An allocator of its own, since what a cryptographic library makes of a key
 * (a key schedule) is as secret as the key, and its contexts are many and small.
 */
#ifndef UCI_SECRET_H_
#define UCI_SECRET_H_

#include "util/types.h"

#define UCI_SECRET_ALIGN 64 /* bytes: what vector instructions want of a key schedule */

/**
 * @param size  bytes.
 * @return memory for secrets, aligned to UCI_SECRET_ALIGN, zeroed; NULL (logged) if there is none. Thread safe.
 */
void *uci_secret_alloc(size_t size);

/** Wipe and give back; @a secret may be NULL. Thread safe. */
void uci_secret_free(void *secret);

/** @return is @a ptr memory of uci_secret_alloc()? Thread safe, and cheap: one load when nothing was ever allocated. */
bool uci_secret_owns(const void *ptr);

/** @return bytes that @a secret has room for, at least what was asked for. */
size_t uci_secret_size(const void *secret);

#endif
