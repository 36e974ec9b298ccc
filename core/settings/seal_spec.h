/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What may be said of sealing in the settings, and its sizes. seal.h is the manual.
 */
#ifndef UCI_SEAL_SPEC_H_
#define UCI_SEAL_SPEC_H_

#include "util/types.h"

/** UCI_SEAL. The values travel in marks. */
typedef enum { UCI_SEAL_OFF, UCI_SEAL_SIGN, UCI_SEAL_ENCRYPT } uci_seal_mode_t;

/** UCI_SEAL_SCOPE. The values travel in marks. */
typedef enum {
    UCI_SEAL_SCOPE_NET, /**< what leaves the node */
    UCI_SEAL_SCOPE_ALL  /**< what leaves the process */
} uci_seal_scope_t;

/** UCI_SEAL_CIPHER. The values travel in marks, and are in the HKDF's info; auto does not: it is resolved by uci_seal_init(). */
typedef enum {
    UCI_SEAL_CIPHER_AUTO,
    UCI_SEAL_AES128,
    UCI_SEAL_AES256,
    UCI_SEAL_CHACHA20,
    UCI_SEAL_CIPHER_LAST
} uci_seal_cipher_t;

/** UCI_SEAL_LIBRARY. Any of them understands what any other has sealed. */
typedef enum { UCI_SEAL_LIBRARY_AUTO, UCI_SEAL_OPENSSL, UCI_SEAL_IPSEC_MB, UCI_SEAL_LIBRARY_LAST } uci_seal_lib_t;

/** Names by value, NULL-terminated, as in the settings. */
extern const char *const uci_seal_mode_names[];
extern const char *const uci_seal_scope_names[];
extern const char *const uci_seal_cipher_names[];
extern const char *const uci_seal_library_names[];

#define UCI_SEAL_KEY    32 /**< bytes of a job's key */
#define UCI_SEAL_RANDOM 32 /**< bytes that a worker draws when it is made */
#define UCI_SEAL_TAG    16 /**< bytes that authenticate a record */
#define UCI_SEAL_MAC    16 /**< bytes that authenticate a mark */

/** Records of a worker until its keys change. SP 800-38D, section 8.3, allows 2^32 with a key; with 2^20 records of at most
 *  2^24 bytes, 2^20 AES blocks each, an observer's advantage over a random function stays below 2^-49. */
#define UCI_SEAL_EPOCH ((uint64_t)1 << 20)

#endif
