/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One direction of a link (pipeline/link): numbers, log, gaps, acknowledgements, and a wire that damages, loses, repeats, delays and
 * exchanges. docs/design.md, "Link" and "Log and acknowledgements"; run_model.sh says what is checked, and how.
 *
 *   sender   --frame(number)----------------------------->  receiver
 *            --SENT(numbers below have been sent)--------->
 *            <--ACK(all below is here; missing; LAST)------
 *            <--REPAIR(that frame again)-------------------
 *
 * A message's content is its number. Faults are FAULTS in all; whenever they may strike, they may as well not. A timer may run out EARLY
 * times while something else could happen, else only when nothing can: what is waited for then can't come by itself.
 */
#include "tables.pml"

#ifndef MESSAGES
#define MESSAGES 3
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef EARLY
#define EARLY 1
#endif
#define FRAMES_ROOM  (2 * MESSAGES + 2)
#define CONTROL_ROOM 6

#define FRAME 0 /* a frame is none of the active messages that are numbered */

chan frames  = [FRAMES_ROOM] of { byte, byte, bool, bool }; /* kind, number, header intact, payload intact */
chan control = [CONTROL_ROOM] of { byte, byte, byte, bool }; /* kind, number, what is missing as bits, LAST */

byte faults = FAULTS, early = EARLY;
byte late = 255; /* a frame that the wire keeps back */

/* The sender's */
byte tx_next, tx_acked;
byte tx_log; /* bits: copies that are there */

/* The receiver's */
byte rx_next;
byte rx_held;    /* bits: intact, and out of order */
byte rx_gaps;    /* bits: came with a damaged payload */
bool rx_damaged; /* something of the sender's was damaged, what is not known */
byte rx_asks;    /* how often it has been asked what is missing, when nothing was known to be */

#define BIT(n)       (1 << (n))
#define HAS(set, n)  (((set) >> (n)) & 1)
#define BELOW(n)     (BIT(n) - 1)
#define ALL_SENT     (tx_next == MESSAGES)
#define ALL_IS_WELL  (rx_next == MESSAGES && tx_acked == MESSAGES)

/* ---------------------------------------------------------------- the wire */

inline put_frame(n)
{
    if
    :: frames ! FRAME, n, true, true
    :: faults > 0 -> faults--; frames ! FRAME, n, true, false                             /* payload damaged */
    :: faults > 0 -> faults--; frames ! FRAME, n, false, true                             /* header damaged */
    :: faults > 0 -> faults--                                                             /* lost */
    :: faults > 0 -> faults--; frames ! FRAME, n, true, true; frames ! FRAME, n, true, true /* repeated, or an old one of a mailbox seen again */
    :: faults > 0 && late == 255 -> faults--; late = n                                    /* overtaken by any number of others */
    fi
}

inline put_sent()
{
    if
    :: frames ! AM_SENT, tx_next, true, true
    :: faults > 0 -> faults-- /* a damaged one is dropped */
    fi
}

inline put_control(kind, n, missing, last)
{
    if
    :: control ! kind, n, missing, last
    :: faults > 0 -> faults--
    fi
}

/* What is late may come at any time, and comes when nothing else does */
active proctype wire()
{
end:
    do
    :: atomic { late != 255 && len(frames) < FRAMES_ROOM -> frames ! FRAME, late, true, true; late = 255 }
    od
}

/* -------------------------------------------------------------- the sender */

inline take_ack(n)
{
    assert(n <= tx_next); /* else it is refused: a peer that lies */
    assert(n <= rx_next); /* what leaves the log is in the receiver's hands */
    if
    :: n > tx_acked ->
        tx_acked = n;
        tx_log   = tx_log & ~BELOW(n)
    :: else
    fi
}

inline send_again(set)
{
    i = 0;
    do
    :: i < tx_next ->
        if
        :: HAS(set, i) && i >= tx_acked ->
            assert(HAS(tx_log, i)); /* else: GONE, and the policy */
            put_frame(i)
        :: else
        fi;
        i++
    :: else -> break
    od
}

active proctype sender()
{
    byte kind, n, missing, i;
    bool last;

    do
    :: atomic { !ALL_SENT && len(frames) + 2 <= FRAMES_ROOM ->
        tx_log = tx_log | BIT(tx_next);
#ifdef BUG_NO_LOG
        if
        :: tx_next == 0 -> tx_log = 0
        :: else
        fi;
#endif
        tx_next++;
        put_frame(tx_next - 1)
       }
    :: atomic { nempty(control) && len(frames) + MESSAGES + 2 <= FRAMES_ROOM ->
        control ? kind, n, missing, last;
        if
        :: kind == AM_ACK ->
            take_ack(n);
            send_again(missing);
            if
            :: last -> put_sent()
            :: else
            fi
        :: kind == AM_REPAIR -> send_again(BIT(n))
        fi
       }
#ifndef BUG_NO_SENT
    :: atomic { timeout && tx_acked < tx_next -> put_sent() }
    :: atomic { early > 0 && tx_acked < tx_next && len(frames) < FRAMES_ROOM -> early--; put_sent() }
#endif
    :: ALL_IS_WELL -> break
    od
}

/* ------------------------------------------------------------ the receiver */

#ifdef BUG_ACKS_HELD
#define NEXT_TOLD (rx_next + (rx_held != 0))
#else
#define NEXT_TOLD rx_next
#endif

/* What is missing below this number, as far as is known */
inline ask(upto, last)
{
    put_control(AM_ACK, NEXT_TOLD, ((BELOW(upto) | rx_gaps) & ~BELOW(rx_next) & ~rx_held), last)
}

inline deliver(n)
{
    assert(n == rx_next); /* in order, each once, as it was sent */
    rx_next++;
    rx_gaps = rx_gaps & ~BIT(n)
}

inline settle()
{
    do
    :: HAS(rx_held, rx_next) -> rx_held = rx_held & ~BIT(rx_next); deliver(rx_next)
    :: else -> break
    od;
    if
    :: rx_held == 0 && rx_gaps == 0 -> rx_damaged = false
    :: else
    fi
}

inline take_frame(n, intact)
{
    if
#ifndef BUG_REPEATED_IS_NEW
    :: n < rx_next || HAS(rx_held, n) /* it was there already */
#else
    :: HAS(rx_held, n)
#endif
#ifndef BUG_PAYLOAD_BELIEVED
    :: n >= rx_next && !HAS(rx_held, n) && !intact ->
        rx_gaps = rx_gaps | BIT(n);
        put_control(AM_REPAIR, n, 0, false)
    :: n == rx_next && intact -> deliver(n); settle()
#else
    :: n == rx_next -> assert(intact); deliver(n); settle()
#endif
#ifndef BUG_ORDER
    :: n > rx_next && !HAS(rx_held, n) && intact -> rx_held = rx_held | BIT(n); rx_gaps = rx_gaps & ~BIT(n)
#else
    :: n > rx_next && intact -> deliver(n)
#endif
#ifdef BUG_REPEATED_IS_NEW
    :: n < rx_next && intact -> deliver(n)
#endif
    fi
}

/* The highest number that is known to have been sent, and one more */
inline known_sent(upto)
{
    upto = rx_next;
    i    = rx_next;
    do
    :: i < MESSAGES ->
        if
        :: HAS(rx_held | rx_gaps, i) -> upto = i + 1
        :: else
        fi;
        i++
    :: else -> break
    od
}

active proctype receiver()
{
    byte kind, n, upto, i;
    bool header, payload;

    do
    :: atomic { nempty(frames) && len(control) + 2 <= CONTROL_ROOM ->
        frames ? kind, n, header, payload;
        if
        :: !header -> rx_damaged = true; rx_asks = 0
        :: header && kind == FRAME -> take_frame(n, payload)
#ifndef BUG_SENT_IGNORED
        :: header && kind == AM_SENT -> ask(n, false)
#else
        :: header && kind == AM_SENT -> put_control(AM_ACK, NEXT_TOLD, 0, false)
#endif
        fi
       }
    /* every so many frames, else with the next one that goes back: at any time, or never */
    :: atomic { early > 0 && rx_next > tx_acked && len(control) < CONTROL_ROOM -> early--; put_control(AM_ACK, NEXT_TOLD, 0, false) }
    /* a suspect is asked: after a moment, and again */
    :: atomic { (timeout || early > 0) && rx_damaged && rx_asks < 4 && len(control) < CONTROL_ROOM ->
        if
        :: early > 0 -> early--
        :: else
        fi;
        rx_asks++;
        known_sent(upto);
        ask(upto, true)
       }
    :: atomic { timeout && (rx_held != 0 || rx_gaps != 0) && len(control) < CONTROL_ROOM -> known_sent(upto); ask(upto, false) }
    :: ALL_IS_WELL -> break
    od
}

/* On a wire that has done its worst nothing waits for ever */
ltl arrives { <> ALL_IS_WELL }
