/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The other side introduces itself: its address lets us answer, its mark says what it can do. Ours: uci_control_hello().
 */
#include "base/am_handler.h"
#include "base/pair.h"
#include "conversation/conversation.h"
#include "control.h"
#include "link_recv.h"
#include "link_send.h"

static const char *uci_hello_check(const uci_am_t *am)
{
    if (am->hdr->op > 1) {
        return "a way to handle errors that there is not";
    }
    return (uci_mark_uid(am->data) == am->peer->uid) ? NULL : "that it is another one";
}

static void uci_hello_take(uci_am_t *am)
{
    uci_peer_t *peer       = am->peer;
    const uci_mark_t *mark = am->data;

    if ((uci_mark_check(mark) != UCS_OK) || (uci_peer_set_mark(peer, mark) != UCS_OK)) {
        return;
    }
    uci_conversation_hear_hello(&peer->conversation, am->hdr->value);
    uci_peer_set_address(peer, (const char *)am->data + sizeof(*mark), am->length - sizeof(*mark));
    uci_pair_hear(peer, am->hdr->index, am->hdr->extra);
    uci_pair_hear_mode(peer, am->hdr->op != 0);
    uci_control_send_pending(peer);
    if (am->hdr->value > 0) {
        uci_link_confirm(peer); /* that it is back */
        if (peer->tx.acked != peer->tx.next) {
            uci_link_watch(peer); /* since BYE nobody has looked after what it may lack */
        }
    }
}

UCI_AM_HANDLER(
        HELLO, 1, "S, before its first message to R; a closing side that never was S, before LEAVE or BYE",
        "mark, UCX address; `value`: times that S has come back after a BYE (so in LEAVE and BYE: those of an "
        "older life are void); `op`: 1 if its endpoints handle errors; `index`: endpoints that UCX makes pairs of, so far; `extra`: a bit for each that is open, the "
        "last one first",
        "none, it lets R connect back; ACK, which repeats the `value`, if that is not 0",
        "S sends it again with SENT as long as nothing has come from R, or its coming back is not confirmed; and "
        "with each QUERY but the first",
        .min = sizeof(uci_mark_t) + 1, .max = sizeof(uci_mark_t) + UCI_WIRE_ADDRESS_MAX, .grain = 1,
        .hit = UCI_AM_HIT(ACK), .check = uci_hello_check, .carries = UCI_AM_CARRIES_CLEAR, .take = uci_hello_take);
