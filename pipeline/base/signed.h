/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Signatures (core/api/uci_signature.h): what a companion says of the types of a message goes with it, behind its payload, within what the
 * frame's digest covers, and is compared when the message is matched. Where there is no companion nothing here is on the way of a
 * message, but for those of a peer that has one.
 *
 *     sender    uci_signature_next_t.send --uci_signed_take_send()--> behind the payload; the frame's kind says so
 *     receiver  uci_signature_next_t.recv --uci_signed_take_recv()--> the request, flag SIGNED
 *               frame --uci_signed_open()--> what a frame without a signature would be, and the types
 *               matched --uci_types_compare()--> report.h
 *
 * A request that has SIGNED still when it completes has met a message without a signature, or none: uci_signed_end().
 */
#ifndef UCI_SIGNED_H_
#define UCI_SIGNED_H_

#include "frame.h"
#include "request.h"
#include "uci_signature.h"
#include "worker_state.h"

#define UCI_SIGNED_SMALL UCI_DIGEST_SMALL_MAX /**< bytes of payload up to which no memory is taken to open a frame */

/** What the companion has set for this thread. */
extern __thread uci_signature_next_t uci_signed_next;

/** The companion's; NULL: there is none. */
extern const uci_signature_ops_t *uci_signed_ops;

/** The types of a message that has come. */
typedef struct uci_sent_types {
    uint64_t word;       /**< uci_signature_word() */
    uci_trailer_t mixed; /**< if they are mixed */
} uci_sent_types_t;

/** A signed frame, opened. */
typedef struct uci_signed_frame {
    uci_frame_hdr_t hdr; /**< as if it had no signature */
    const char *payload; /**< memory of this process's own, aligned to 16 bytes */
    uci_sent_types_t types;
    uci_frame_t *memory; /**< or NULL: it is in `small` */
    char small[UCI_SIGNED_SMALL] __attribute__((aligned(16)));
} uci_signed_frame_t;

/** @return what the next send, or receive, of this thread carries, which is nobody else's from now on; or NULL. */
UCI_INLINE const uci_signature_t *uci_signed_take_send(void)
{
    const uci_signature_t *signature = uci_signed_next.send;

    uci_signed_next.send = NULL;
    return signature;
}

UCI_INLINE const uci_signature_t *uci_signed_take_recv(void)
{
    const uci_signature_t *signature = uci_signed_next.recv;

    uci_signed_next.recv = NULL;
    return signature;
}

/** The kind of most frames that are signed. */
#define UCI_SIGNED_EAGER ((UCI_FRAME_EAGER & 0x0f) | UCI_FRAME_SIGNED)

/** Copy what is small: a word at once, since it is read again as one. */
UCI_INLINE void uci_signed_copy(void *dst, const void *src, size_t length)
{
    uint64_t word;

    if (uci_likely(length == sizeof(word))) {
        memcpy(&word, src, sizeof(word));
        memcpy(dst, &word, sizeof(word));
    } else {
        memcpy(dst, src, length);
    }
}

/** Is this the usual case: a receive whose elements, and those of the message, are all of one type? */
UCI_INLINE bool uci_signed_is_plain_match(const uci_request_t *req, uint64_t word)
{
    return (req->flags & UCI_REQUEST_SIGNED) && (uci_signature_code(word) == uci_signature_code(req->signature.word)) &&
           (uci_signature_code(word) != UCI_SIGNATURE_MIXED);
}

/** @return kind of a frame with @a signature, which may be NULL. */
UCI_INLINE unsigned uci_signed_kind(uci_frame_kind_t kind, const uci_signature_t *signature)
{
    return (signature == NULL)                                            ? kind
           : (uci_signature_code(signature->word) == UCI_SIGNATURE_MIXED) ? (kind & 0x0fu) | UCI_FRAME_SIGNED_MIXED
                                                                          : (kind & 0x0fu) | UCI_FRAME_SIGNED;
}

/** Of one whose word says that they are mixed, in a frame that has no room to say which: no UCI sends that. */
void uci_signed_read_untold(uci_sent_types_t *types);

/** Write @a signature where the payload ends; uci_frame_trailer() bytes. */
void uci_signed_append(char *end, const uci_signature_t *signature);

/**
 * Take a signed frame apart.
 * @param payload  others may be able to write there.
 * @return false: its payload is damaged, or there is no memory; else uci_signed_close() it.
 */
bool uci_signed_open(uci_worker_t *worker, const uci_frame_hdr_t *hdr, const char *payload, uci_signed_frame_t *opened);
void uci_signed_close(uci_worker_t *worker, uci_signed_frame_t *opened);

/** @return header of a frame as if it had no signature; its payload can't be verified with it. */
uci_frame_hdr_t uci_signed_hdr(const uci_frame_hdr_t *hdr);

/** A receive carries a signature, which is copied. */
UCI_INLINE void uci_signed_set(uci_request_t *req, const uci_signature_t *signature)
{
    req->signature = *signature;
    req->flags |= UCI_REQUEST_SIGNED;
    if (uci_unlikely(uci_signature_code(signature->word) == UCI_SIGNATURE_MIXED)) {
        uci_signed_ops->hold(signature->type);
    }
}

/** It has been compared: it has no signature any more. */
void uci_signed_drop(uci_request_t *req);

/** A receive ends: if it has not been compared, it will not be. */
void uci_signed_end(uci_request_t *req, ucs_status_t status);

/** Fill a frame with the user's bytes, and behind them their signature, which may be NULL. @param value_p  digest of both.
 *  @return UCS_OK, or why they can't be packed. */
ucs_status_t uci_signed_fill(uci_frame_t *frame, uci_buffer_t *buffer, const uci_digest_ops_t *digest,
                             const uci_signature_t *signature, uint64_t *value_p);

#endif
