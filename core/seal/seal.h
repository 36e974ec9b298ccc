/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Sealed records: what authenticates, and encrypts, all that a pair of workers says to each other. docs/security.md tells what
 * that protects, and against whom; here is the construction.
 *
 *     record     = header (16 bytes, in clear) | sealed head and body | tag (16 bytes)
 *     encrypt    : AEAD(key, nonce, AAD = header, plaintext = head | body)
 *     sign       : AEAD(key, nonce, AAD = header | head | body, no plaintext): with AES that is GMAC
 *     nonce      = 32 bits of zero | 64 bits of counter, most significant byte first
 *     epoch      = counter / UCI_SEAL_EPOCH
 *     key        = HKDF-SHA256(IKM  = job key,
 *                              salt = sender's random bytes | receiver's random bytes,
 *                              info = "uci seal v1" | cipher | mode | sender's uid | receiver's uid | epoch)
 *     mark key   = HKDF-SHA256(IKM = job key, no salt, info = "uci mark v1")
 *
 * No nonce is ever used twice with a key: a key is of one direction of one pair of workers for one epoch, a worker has one counter for
 * all that it sends, whomever to, and never takes a number twice; its random bytes are as old as the worker. A receiver takes each
 * counter once, in any order within UCI_SEAL_WINDOW (seal_window.h) of the highest that was authentic.
 *
 * The cryptography is a library's (seal_cipher.h), opened by uci_seal_init() and never linked.
 */
#ifndef UCI_SEAL_H_
#define UCI_SEAL_H_

#include "settings/seal_spec.h"

/** In front of each record, in clear, authenticated. In the byte order of the job. */
typedef struct uci_seal_hdr {
    uint64_t uid;     /**< of the worker that sealed it: which keys */
    uint64_t counter; /**< of that worker: which epoch, and the nonce */
} uci_seal_hdr_t;

/** Bytes that sealing adds to what is sealed. */
#define UCI_SEAL_OVERHEAD (sizeof(uci_seal_hdr_t) + UCI_SEAL_TAG)

/** Keys of both directions and the replay window of one pair of workers. Calls for one pair must not overlap; those for
 *  different pairs may, in different threads. */
typedef struct uci_seal_pair uci_seal_pair_t;

/**
 * Read UCI_KEY_FILE and open the library, if UCI_SEAL (uci_settings.seal) asks for it. Idempotent until uci_seal_cleanup() (the first
 * call's status is returned again), thread safe.
 * @return UCI_OK, also if sealing is off; else the job must not go on (all logged, with what to do): UCI_ERR_NO_ELEM if there is no key,
 *         UCI_ERR_INVALID_PARAM if the file is not as uci_seal_key_read() wants it, UCI_ERR_IO if it can't be read,
 *         UCI_ERR_UNSUPPORTED if there is no library, or none that has the cipher.
 */
uci_status_t uci_seal_init(void);

/** Wipe the job's key. Pairs must have been destroyed. */
void uci_seal_cleanup(void);

/** @return has uci_seal_init() succeeded, with UCI_SEAL other than off? */
bool uci_seal_is_on(void);

/** @return the cipher in force, never auto; only after a successful uci_seal_init() of a process that seals. */
uci_seal_cipher_t uci_seal_cipher(void);

/** Is this a forked child, which has none of its parent's keys? Nothing is sealed or authenticated then, until uci_seal_cleanup() and
 *  uci_seal_init(). Not so before Linux 4.14, where it has them. */
bool uci_seal_is_inherited(void);

/** Random bytes for a worker, from the kernel. @return UCI_OK or UCI_ERR_IO (logged). */
uci_status_t uci_seal_random(uint8_t random[UCI_SEAL_RANDOM]);

/**
 * Authenticate a worker's mark and what stands behind it: HMAC-SHA256 of @a data and @a more under the mark key, the first 16 bytes.
 * @param more  may be NULL with @a more_length 0.
 * @return UCI_OK, or UCI_ERR_NO_MEMORY (logged): no memory, or no keys.
 */
uci_status_t uci_seal_mark_auth(const void *data, size_t length, const void *more, size_t more_length,
                                uint8_t mac[UCI_SEAL_MAC]);

/** @return is @a mac what uci_seal_mark_auth() gives? Takes as long for a wrong one as for the right one. */
bool uci_seal_mark_is_authentic(const void *data, size_t length, const void *more, size_t more_length,
                                const uint8_t mac[UCI_SEAL_MAC]);

/**
 * Make the state of a pair. Keys are derived when they are first needed, some 5 us each, and again for each epoch.
 * @param own_uid, own_random    of this process's worker, as they stand in its mark
 * @param peer_uid, peer_random  of the other one, from an authentic mark
 * @return UCI_OK or UCI_ERR_NO_MEMORY (logged).
 */
uci_status_t uci_seal_pair_create(uint64_t own_uid, const uint8_t own_random[UCI_SEAL_RANDOM], uint64_t peer_uid,
                                  const uint8_t peer_random[UCI_SEAL_RANDOM], uci_seal_pair_t **pair_p);

/** Wipe and free; @a pair may be NULL. */
void uci_seal_pair_destroy(uci_seal_pair_t *pair);

/**
 * Seal @a head and @a body, either of which may be empty, into one record, in one pass over them.
 * @param counter  of the worker, from 0; the caller has just taken it, and never takes it again.
 * @param record   room for head_length + body_length + UCI_SEAL_OVERHEAD bytes, any alignment. It must not overlap head and body, but
 *                 either may lie where it will lie in the record (behind the header, and behind that the head).
 * @return UCI_OK; or an error of the library's (logged), after which the record must not be sent.
 */
uci_status_t uci_seal_close(uci_seal_pair_t *pair, uint64_t counter, const void *head, size_t head_length,
                            const void *body, size_t body_length, void *record);

/**
 * Check and open a record of the peer's: its first @a head_length sealed bytes go to @a head, all others to @a body. What is written
 * must not be used, nor be seen by the program, unless UCI_OK is returned.
 * @param record  any alignment; in memory that nobody else writes to meanwhile, or the check is of other bytes than what is opened.
 *                head and body must not overlap it, but either may be the place where it lies in the record.
 * @param length  of the whole record; what goes to @a body is length - head_length - UCI_SEAL_OVERHEAD bytes.
 * @return UCI_OK;
 *         UCI_ERR_CORRUPT if it is not authentic: damaged, cut, forged, of another pair, direction or job (not logged);
 *         UCI_ERR_NO_ELEM if it has arrived before, or is older than the window (not logged);
 *         UCI_ERR_NO_MEMORY (logged).
 */
uci_status_t uci_seal_open(uci_seal_pair_t *pair, const void *record, size_t length, void *head, size_t head_length,
                           void *body);

/**
 * As uci_seal_open(), for a record that another, authentic one has announced: it must have exactly @a counter, and the window is neither
 * asked nor changed, so that it may come as late as it likes. The caller takes each announcement once.
 * @return as uci_seal_open(), UCI_ERR_CORRUPT for another counter; never UCI_ERR_NO_ELEM.
 */
uci_status_t uci_seal_open_at(uci_seal_pair_t *pair, uint64_t counter, const void *record, size_t length, void *head,
                              size_t head_length, void *body);

#endif
