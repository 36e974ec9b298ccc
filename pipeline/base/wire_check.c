/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire_check.h"

#include <stdlib.h>

#include "link/bounce_part.h"
#include "digest/digest.h"
#include "util/log.h"
#include "tree/merkle.h"
#include "util/process.h"
#include "settings/settings.h"
#include "siblings.h"
#include "signed.h"
#include "live/stats.h"

void uci_wire_refuse(const uci_peer_t *peer, const char *what, const char *wrong)
{
    static unsigned lines;
    unsigned line = __atomic_add_fetch(&lines, 1, __ATOMIC_RELAXED);

    UCI_STATS_INC(refused_messages);
    if (line <= uci_process_lines()) {
        uci_warn("%s of %s is refused: it is intact, but says %s%s", what, uci_peer_name(peer), wrong,
                 (line == uci_process_lines()) ? " (further ones are counted only)" : "");
    }
}

/* ---------------------------------------------------------------- frames */

const char *uci_user_am_own_name(uint64_t tag)
{
    static const char *const names[UCI_OWN_AM_LAST] = {[UCI_OWN_AM_STREAM]    = "stream",
                                                       [UCI_OWN_AM_RMA]       = "one-sided operation",
                                                       [UCI_OWN_AM_RMA_REPLY] = "one-sided answer",
                                                       [UCI_OWN_AM_RMA_DONE]  = "one-sided count"};
    uci_user_am_what_t what                         = uci_user_am_what(tag);

    return ((what.flags & UCI_USER_AM_OWN) && (what.id < UCI_OWN_AM_LAST)) ? names[what.id] : NULL;
}

static const char *uci_wire_check_user_am(const uci_frame_hdr_t *hdr)
{
    uci_user_am_what_t what;

    if (hdr->kind == uci_frame_user_am_kind(UCI_FRAME_RNDV)) {
        return (hdr->length == sizeof(uci_rndv_desc_t)) ? NULL : "a length that no descriptor has";
    }
    what = uci_user_am_what(hdr->tag);
    if ((what.flags & UCI_USER_AM_OWN) && (what.id >= UCI_OWN_AM_LAST)) {
        return "an active message of UCI's that does not exist";
    }
    if ((hdr->kind != uci_frame_user_am_kind(UCI_FRAME_EAGER)) || (what.flags & ~UCI_USER_AM_FLAGS) ||
        ((what.name != 0) && !(what.flags & UCI_USER_AM_REPLY))) {
        return "a kind of active message that does not exist";
    }
    if ((hdr->length > UCI_FRAME_MAX) || (what.pad >= UCI_USER_AM_ALIGN) ||
        (what.header_length + what.pad > hdr->length) ||
        ((what.flags & UCI_USER_AM_RNDV)
                 ? (what.header_length != hdr->length)
                 : (what.flags & (UCI_USER_AM_EAGER | UCI_USER_AM_ASKED | UCI_USER_AM_EMPTY)))) {
        return "a header that is longer than its frame";
    }
    return NULL;
}

const char *uci_wire_check_frame(const uci_frame_hdr_t *hdr)
{
    uint32_t trailer;

    if (uci_likely((hdr->kind == UCI_SIGNED_EAGER) && (hdr->digest == UCI_DIGEST_XXH3) &&
                   (hdr->length >= sizeof(uint64_t)) && (hdr->length <= UCI_FRAME_MAX))) {
        return NULL; /* where types are compared, nearly all */
    }
    if (uci_unlikely(uci_digest_by_id(hdr->digest) == NULL)) {
        return "a digest that there is not";
    }
    if (uci_frame_is_user_am(hdr->kind)) {
        return uci_wire_check_user_am(hdr);
    }
    if (((hdr->kind & 0xf0) != 0xe0) && ((hdr->kind & 0xf0) != UCI_FRAME_SIGNED) &&
        ((hdr->kind & 0xf0) != UCI_FRAME_SIGNED_MIXED)) {
        return "a kind of frame that does not exist";
    }
    trailer = uci_frame_trailer(hdr->kind);
    switch (uci_frame_kind(hdr->kind)) {
    case UCI_FRAME_EAGER:
    case UCI_FRAME_SYNC:
        return ((hdr->length >= trailer) && (hdr->length <= UCI_FRAME_MAX)) ? NULL : "a length that no frame has";
    case UCI_FRAME_RNDV:
        return (hdr->length == sizeof(uci_rndv_desc_t) + trailer) ? NULL : "a length that no descriptor has";
    default:
        return "a kind of frame that does not exist";
    }
}

const char *uci_wire_check_desc(const uci_rndv_desc_t *desc)
{
    if (desc->length == 0) {
        return "a rendezvous of no bytes";
    }
    if ((desc->chunk_size < UCI_CHUNK_SIZE_MIN) || (desc->chunk_size > UCI_CHUNK_SIZE_MAX)) {
        return "a chunk size that can't be";
    }
    if (((desc->length - 1) / desc->chunk_size) >= UINT32_MAX) {
        return "more chunks than can be numbered";
    }
    if ((desc->arity < UCI_MERKLE_ARITY_MIN) || (desc->arity > UCI_MERKLE_ARITY_MAX)) {
        return "an arity that no tree has";
    }
    if ((desc->slot != UCI_SLOT_NONE) && ((desc->slot >= UCI_SLOT_COUNT) || (desc->chunk_size > UCI_SLOT_SIZE))) {
        return "a slot that can't hold its chunks";
    }
    return NULL;
}

/* --------------------------------------------------------------- memory */

ucs_status_t uci_wire_unpack_key(const uci_peer_t *peer, ucp_ep_h ep, const void *key, size_t length,
                                 ucp_rkey_h *rkey_p)
{
    ucs_status_t status;
    char *copy;

    if (uci_siblings_lack(peer)) {
        return UCS_ERR_UNREACHABLE;
    }
    copy = calloc(1, length + UCI_WIRE_KEY_MAX);
    if (copy == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    memcpy(copy, key, length);
    status = uci_ucp.ep_rkey_unpack(ep, copy, rkey_p);
    free(copy);
    return status;
}

bool uci_wire_is_reachable(ucp_rkey_h rkey, uint64_t address, size_t length)
{
    void *here;

    return (uci_ucp.rkey_ptr(rkey, address, &here) != UCS_OK) || uci_process_is_shared(here, length);
}
