/* SPDX-License-Identifier: BSD-3-Clause */
#include "ask.h"

#include "peer.h"
#include "worker_state.h"

/* How long after a damaged message we ask for what is due, at least: see uci_ask_delay() */
#define UCI_ASK_DELAY_NS 500000ul

/* A question nobody has answered is asked again after 2^5 seconds at last */
#define UCI_ASK_SHIFT 5u

/* Who is only doubted has so many times as long as who is named: most of them get what they wait for meanwhile */
#define UCI_ASK_DOUBT 16u

uint64_t uci_ask_delay(const uci_worker_t *worker)
{
    return uci_max(uci_min(2 * worker->talk.round_trip, UCI_ASK_INTERVAL_NS), UCI_ASK_DELAY_NS);
}

/* Messages that came damaged and may have been about an operation with it */
static uint64_t uci_ask_damage(const uci_peer_t *peer)
{
    return peer->talk.damage + peer->worker->talk.damage;
}

static bool uci_ask_is_doubted(const uci_ask_t *ask, const uci_peer_t *peer)
{
    return ask->damage != uci_ask_damage(peer);
}

bool uci_ask_is_urgent(const uci_ask_t *ask, const uci_peer_t *peer)
{
    return ask->hinted || uci_ask_is_damaged(ask, peer);
}

bool uci_ask_is_damaged(const uci_ask_t *ask, const uci_peer_t *peer)
{
    return ask->named || uci_ask_is_doubted(ask, peer);
}

/* Before the first question */
static uint64_t uci_ask_first(const uci_ask_t *ask, const uci_peer_t *peer)
{
    uint64_t delay = uci_ask_delay(peer->worker);

    if (ask->named || ask->hinted) {
        return delay;
    }
    return (ask->rough || uci_ask_is_doubted(ask, peer)) ? uci_min(UCI_ASK_DOUBT * delay, UCI_ASK_INTERVAL_NS)
                                                         : UCI_ASK_INTERVAL_NS;
}

void uci_ask_init(uci_ask_t *ask, const uci_peer_t *peer, uint64_t now)
{
    *ask = (uci_ask_t){.time = now, .damage = uci_ask_damage(peer)};
}

uint64_t uci_ask_time(const uci_ask_t *ask, const uci_peer_t *peer)
{
    uint64_t wait = uci_max(ask->wait, uci_ask_first(ask, peer));

    return ask->time + (uci_ask_is_urgent(ask, peer) ? uci_min(wait, UCI_ASK_INTERVAL_NS) : wait);
}

void uci_ask_done(uci_ask_t *ask, const uci_peer_t *peer, uint64_t now)
{
    uint64_t wait = uci_max(ask->wait, uci_ask_first(ask, peer));

    ask->wait   = uci_min(2 * wait, UCI_ASK_INTERVAL_NS << UCI_ASK_SHIFT);
    ask->time   = now;
    ask->damage = uci_ask_damage(peer);
    ask->named  = false;
    ask->hinted = false;
}

void uci_ask_name(uci_ask_t *ask)
{
    ask->named = true;
    ask->wait  = 0;
}

void uci_ask_hint(uci_ask_t *ask)
{
    ask->hinted = true;
}

void uci_ask_spoil(uci_ask_t *ask)
{
    ask->spoilt = true;
    uci_ask_name(ask);
}

bool uci_ask_was_spoilt(uci_ask_t *ask)
{
    bool spoilt = ask->spoilt;

    ask->spoilt = false;
    return spoilt;
}

void uci_ask_doubt(uci_ask_t *ask)
{
    ask->rough = true;
    ask->wait  = 0;
}

void uci_ask_heard(uci_ask_t *ask, uint64_t now)
{
    ask->time = now;
    ask->wait = 0;
}
