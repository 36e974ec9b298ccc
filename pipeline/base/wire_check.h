/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Peers are not to be trusted. A check tells whether a message arrived as it was sent, not whether what it says is possible. So
 * every field of every message is looked at here, once, before anything else looks at it; what no UCI sends is refused, as if it had
 * not come, with a warning, and counted (refused_messages). A user's receive that depends on it is asked for again, or ends by the
 * policy; it never ends well with other bytes than were digested. docs/sealing.md has the ranges field by field.
 *
 * Here is what can be told of frames, descriptors and keys; what can be told of an active message is in its row (am_handler.h),
 * and looked at by dispatch.h.
 */
#ifndef UCI_WIRE_CHECK_H_
#define UCI_WIRE_CHECK_H_

#include "wire.h"
#include "peer.h"

/** Bytes of a packed key: more than any has */
#define UCI_WIRE_KEY_MAX (64u << 10)

/* All of these @return NULL, or what is wrong, for people. */

/** A frame's header whose check is right. */
const char *uci_wire_check_frame(const uci_frame_hdr_t *hdr);

/** Nothing can be wrong with most of them, of a length that a carrier has looked at. */
UCI_INLINE bool uci_wire_is_plain(const uci_frame_hdr_t *hdr)
{
    return uci_likely(hdr->kind == UCI_FRAME_EAGER) && uci_likely(hdr->digest == UCI_DIGEST_XXH3);
}

/** A descriptor whose digest is right. What passes leads to no more than 1/8 of the message's length in tables of chunks. */
const char *uci_wire_check_desc(const uci_rndv_desc_t *desc);

/** The number of a message, expanded. Numbers begin at 0, and never end. */
UCI_INLINE const char *uci_wire_check_seq(uint64_t seq)
{
    return uci_likely((int64_t)seq >= 0) ? NULL : "a message number before the first";
}

/** The digest of a chunk. */
UCI_INLINE const char *uci_wire_check_digest(const uci_am_hdr_t *hdr)
{
    return uci_likely(uci_digest_by_id(hdr->digest) != NULL) ? NULL : "a digest that there is not";
}

/** Where all is sealed nobody offers memory, nor what lies in it. */
#define UCI_WIRE_IN_CLEAR "that it uses memory in clear, and all between us is sealed"

/**
 * ucp_ep_rkey_unpack() of a key of @a length bytes. UCX is not told how many there are, and reads as far as they say: at most zeros follow. On a key of
 * memory that is gone UCX 1.13 crashes (it destroys what it has not unpacked yet), and 1.18 ends the process.
 * @param peer  whose memory it is.
 */
ucs_status_t uci_wire_unpack_key(const uci_peer_t *peer, ucp_ep_h ep, const void *key, size_t length,
                                 ucp_rkey_h *rkey_p);

/** May @a length bytes at a peer's @a address be read with the key it gave? UCX itself looks at neither where the key leads into memory
 *  that is mapped here: it would read whatever is there. */
bool uci_wire_is_reachable(ucp_rkey_h rkey, uint64_t address, size_t length);

/** Say, and count, that @a what of this peer is refused. The first few are warnings. */
void uci_wire_refuse(const uci_peer_t *peer, const char *what, const char *wrong);

#endif
