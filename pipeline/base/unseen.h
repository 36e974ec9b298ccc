/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Damage that nobody sees, since what it is in is not needed: it has come by another way before, or was known to be damaged. Where faults are
 * asked for, in whichever process of the job, each of them is accounted for, and these are counted (`faults_unseen`); elsewhere nothing is done.
 */
#ifndef UCI_UNSEEN_H_
#define UCI_UNSEEN_H_

#include "digest/digest.h"

/** Is it counted in this process? */
bool uci_unseen_is_counted(void);

/** Bytes that should have digest @a value are passed by: are they damaged? @param digest  NULL: none is known, and nothing is counted. */
void uci_unseen_pass(const uci_digest_ops_t *digest, const void *data, size_t length, uint64_t value);

/** What is damaged, as is known, is one more that nobody sees. */
void uci_unseen_count(void);

#endif
