/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames by mailbox: one box, a ring of granules in memory that anybody on the node may write to (core/box/box.[ch], pipeline/link/mailbox.c), with the link
 * above it (link_send.c, link_recv.c), which has a copy sent again by active message. docs/design.md, "Mailbox" and "Boxes"; run_model.sh says what is checked.
 *
 *   sender  --frame: words, then its mark---->  ring       --mark that comes next? header, payload-->  receiver
 *           <------how far it is--------------  first line <--acked, then consumed------------------
 *           --frame that is asked for; SENT (that is where I am)------------------------------------>
 *           <-ACK (all below is here; missing; LAST), REPAIR (that frame again)----------------------
 *
 * Somebody else writes to that memory ATTACKS times, at any step of both: changes a word, copies or exchanges lines with or without their marks, puts back what
 * lay there before (under another key, or in an older lap). FAULTS messages are lost beside that; link.pml has what else a wire may do to them.
 *
 * A frame is one granule, or two; what it says is its number. Of a line the model has: its mark; its header, as the number that it gives (0: its check fails) and
 * the mark that this check was made with; and whose payload lies there. Digests and marks meet by chance with odds of 2^-64: here never.
 */
#include "tables.pml"

#ifndef MESSAGES
#define MESSAGES 3
#endif
#ifndef ATTACKS
#define ATTACKS 1
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef EARLY
#define EARLY 0 /* times that a timer runs out while something else could happen */
#endif
#ifndef REPLAYS
#define REPLAYS 0 /* 1: the attacker may keep a line, or the first one, and put it back */
#endif
#ifndef BY_AM
#define BY_AM 255 /* number of a frame that goes by active message, since the box is not mapped yet */
#endif
#define GRANULES  4 /* of the ring */
#define LINES     (GRANULES + 1) /* and of the overflow area */
#define REWIND    2 /* UCI_BOX_REWIND */
#define TELL      2 /* granules after which the sender is told */
#define LOOK      2 /* granules of the largest frame: so far is looked behind a hidden one */
#define GAP_ASKS  1 /* UCI_LINK_GAP_ASKS */
#define AM_ROOM   (2 * MESSAGES + 2)
#define BACK_ROOM 6

#define GRANULES_OF(n) (2 - ((n) & 1))
#define FOREIGN        64 /* somebody else's frame: its number, and this */
#define WORD(n)        ((n) + 1)
#define NUMBER(word)   (((word) & (FOREIGN - 1)) - 1)
#define NO_POSITION    255
#define DAMAGED        255

/* A line */
byte mark[LINES], seal[LINES], said[LINES], payload[LINES];
/* The first line: a word tells which of both it is (uci_box_seal) */
byte consumed = DAMAGED, acked = DAMAGED;
#define MARK(position) ((position) + 1) /* of this key; those of older keys are other words */
#ifndef BUG_SEAL_ONE_KEY
#define CONSUMED(position) (2 * (position))
#define ACKED(n)           (2 * (n) + 1)
#define IS_CONSUMED(word)  ((word) != DAMAGED && ((word) & 1) == 0)
#define IS_ACKED(word)     ((word) != DAMAGED && ((word) & 1) == 1)
#else
#define CONSUMED(position) (2 * (position))
#define ACKED(n)           (2 * (n))
#define IS_CONSUMED(word)  ((word) != DAMAGED)
#define IS_ACKED(word)     ((word) != DAMAGED)
#endif
#define VALUE(word) ((word) / 2)

chan am   = [AM_ROOM] of { byte, byte, byte };         /* type (0: a frame), number, position */
chan back = [BACK_ROOM] of { byte, byte, byte, bool }; /* type, number, what is missing as bits, LAST */

byte attacks = ATTACKS, faults = FAULTS, early = EARLY;
bool harmed; /* something has been changed, or lost, or has waited in vain and overtaken what lies in the box */

/* The sender's: uci_link_tx_t, uci_mailbox_peer_t, uci_box_tx_t */
byte tx_next, tx_posted, tx_acked, tx_log, am_until;
bool waiting;
byte tx_lap, tx_place, tx_consumed, heard_consumed = DAMAGED, heard_acked = DAMAGED;

/* The receiver's: uci_link_rx_t, uci_mailbox_box_t, uci_box_rx_t */
byte rx_next, rx_held, rx_gaps, rx_asks;
bool rx_damaged, rx_suspect;
byte rx_lap, rx_place, rx_left = NO_POSITION, rx_untold;
bool rx_lost;

#define BIT(n)        (1 << (n))
#define HAS(set, n)   (((set) >> (n)) & 1)
#define BELOW(n)      (BIT(n) - 1)
#define IS_SPECIAL    (rx_held != 0 || rx_gaps != 0)
#define ALL_IS_WELL   (rx_next == MESSAGES && tx_acked == MESSAGES)
#define MIN(a, b)     ((a) < (b) -> (a) : (b))
#define PLACE(p)      ((p) % GRANULES)
#define TX_POSITION   (tx_lap + MIN(tx_place, GRANULES))
#define RX_POSITION   (rx_lap + rx_place)
#define LAP_END(p)    ((p) - PLACE(p) + GRANULES)
#define IS_MARKED(p)  (mark[PLACE(p)] == MARK(p))

/* ---------------------------------------------------------------- active messages: reliable, but what is damaged is dropped */

inline put_am(what_, n_, position_)
{
    if
    :: am ! what_, n_, position_
    :: faults > 0 -> faults--; harmed = true
    fi
}

inline put_back(what_, n_, missing_, last_)
{
    if
    :: back ! what_, n_, missing_, last_
    :: faults > 0 -> faults--; harmed = true
    fi
}

/* ---------------------------------------------------------------- who writes where he should not */

#define CHANGE attacks--; harmed = true

inline exchange(a_, b_)
{
    swapped = a_;
    a_       = b_;
    b_       = swapped
}

inline attack_line(c_)
{
    if
    :: mark[c_] != 0 -> CHANGE; mark[c_] = 0
    :: said[c_] != 0 -> CHANGE; said[c_] = 0
    :: payload[c_] != 0 -> CHANGE; payload[c_] = 0
    /* to its neighbour: the mark alone; the whole line; all but the mark */
    :: c_ + 1 < LINES && mark[c_] != 0 -> CHANGE; mark[c_ + 1] = mark[c_]
    :: c_ + 1 < LINES && said[c_] != 0 -> CHANGE; mark[c_ + 1] = mark[c_]; seal[c_ + 1] = seal[c_]; said[c_ + 1] = said[c_]; payload[c_ + 1] = payload[c_]
    :: c_ + 1 < LINES && said[c_] != 0 -> CHANGE; seal[c_ + 1] = seal[c_]; said[c_ + 1] = said[c_]; payload[c_ + 1] = payload[c_]
    /* exchanged with it: the same */
    :: c_ + 1 < LINES && said[c_] + said[c_ + 1] != 0 ->
        CHANGE;
        exchange(mark[c_], mark[c_ + 1]);
        exchange(seal[c_], seal[c_ + 1]);
        exchange(said[c_], said[c_ + 1]);
        exchange(payload[c_], payload[c_ + 1])
    :: c_ + 1 < LINES && said[c_] + said[c_ + 1] != 0 ->
        CHANGE;
        exchange(seal[c_], seal[c_ + 1]);
        exchange(said[c_], said[c_ + 1]);
        exchange(payload[c_], payload[c_ + 1])
    /* what lay there under an older key, all but the mark */
    :: said[c_] != 0 && said[c_] < FOREIGN -> CHANGE; seal[c_] = 0; said[c_] = FOREIGN + said[c_]; payload[c_] = said[c_]
    fi
}

inline attack_first_line()
{
    if
    :: consumed != DAMAGED -> CHANGE; consumed = DAMAGED
    :: acked != DAMAGED -> CHANGE; acked = DAMAGED
    :: acked != consumed -> CHANGE; consumed = acked
    :: acked != consumed -> CHANGE; acked = consumed
    :: acked != consumed -> CHANGE; exchange(acked, consumed)
    fi
}

#define MAY_ATTACK_FIRST (consumed != DAMAGED || acked != DAMAGED)
#define MAY_ATTACK(c)    (mark[c] != 0 || said[c] != 0 || payload[c] != 0)

inline attack()
{
    if
    :: MAY_ATTACK_FIRST -> attack_first_line()
    :: MAY_ATTACK(0) -> attack_line(0)
    :: MAY_ATTACK(1) -> attack_line(1)
    :: MAY_ATTACK(2) -> attack_line(2)
    :: MAY_ATTACK(3) -> attack_line(3)
    :: MAY_ATTACK(4) -> attack_line(4)
    fi
}

#define MAY_ATTACK_ANY (MAY_ATTACK_FIRST || MAY_ATTACK(0) || MAY_ATTACK(1) || MAY_ATTACK(2) || MAY_ATTACK(3) || MAY_ATTACK(4))

/* At any time; or when all else waits for a timer; and then it is quiet for good */
active proctype attacker()
{
    byte swapped;
#if REPLAYS
    byte kept = DAMAGED, kept_mark, kept_seal, kept_said, kept_payload;
#endif

    do
    :: atomic { attacks > 0 && MAY_ATTACK_ANY -> attack() }
    :: atomic { attacks > 0 && timeout && MAY_ATTACK_ANY -> attack() }
#if REPLAYS
    :: atomic { attacks > 0 && kept == DAMAGED && (consumed != DAMAGED || said[0] != 0 || said[2] != 0) ->
        if
        :: consumed != DAMAGED -> kept = LINES; kept_mark = consumed; kept_seal = acked
        :: said[0] != 0 -> kept = 0; kept_mark = mark[0]; kept_seal = seal[0]; kept_said = said[0]; kept_payload = payload[0]
        :: said[2] != 0 -> kept = 2; kept_mark = mark[2]; kept_seal = seal[2]; kept_said = said[2]; kept_payload = payload[2]
        fi
       }
    :: atomic { attacks > 0 && kept != DAMAGED ->
        CHANGE;
        if
        :: kept == LINES -> consumed = kept_mark
        :: kept == LINES -> acked = kept_seal
        :: kept == LINES -> consumed = kept_mark; acked = kept_seal
        :: kept < LINES -> mark[kept] = kept_mark; seal[kept] = kept_seal; said[kept] = kept_said; payload[kept] = kept_payload
        :: kept < LINES -> seal[kept] = kept_seal; said[kept] = kept_said; payload[kept] = kept_payload
        fi
       }
#endif
    :: break
    od
}

/* ---------------------------------------------------------------- the sender */

/* uci_box_tx_take_consumed(): intact, and between what was known and what was posted */
#define TOLD_IS_GOOD(known) (IS_CONSUMED(consumed) && VALUE(consumed) >= (known) && VALUE(consumed) <= TX_POSITION)

/* uci_link_box_place(): all that went before has been delivered, so a lap may begin at once */
#ifndef BUG_REWIND_EARLY
#define REWINDS(n) (tx_acked == (n) && tx_place >= REWIND)
#else
#define REWINDS(n) (tx_place >= REWIND)
#endif
#define BEGINS(n)  (REWINDS(n) || tx_place >= GRANULES)
#define LAP(n)     (BEGINS(n) -> tx_lap + GRANULES : tx_lap)
#define AT(n)      (BEGINS(n) -> 0 : tx_place)
#define KNOWN(n)   (REWINDS(n) -> tx_lap + GRANULES : tx_consumed)
#define NEXT(n)    MIN(LAP(n) + AT(n) + GRANULES_OF(n), LAP(n) + GRANULES)
#ifndef BUG_NO_ROOM_NEEDED
#define FITS(n)    (NEXT(n) <= KNOWN(n) + GRANULES || (TOLD_IS_GOOD(KNOWN(n)) && NEXT(n) <= VALUE(consumed) + GRANULES))
#else
#define FITS(n)    true
#endif

/* uci_box_tx_place() */
inline box_place(n_)
{
    p           = LAP(n_);
    at          = AT(n_);
    tx_consumed = KNOWN(n_);
    tx_lap      = p;
    tx_place    = at;
    if
    :: tx_lap + MIN(tx_place + GRANULES_OF(n_), GRANULES) > tx_consumed + GRANULES && TOLD_IS_GOOD(tx_consumed) -> tx_consumed = VALUE(consumed)
    :: else
    fi
}

/* uci_box_tx_post(): the words, then the mark */
inline box_write(n_)
{
    seal[at]    = MARK(tx_lap + at);
    said[at]    = WORD(n_);
    payload[at] = WORD(n_);
    if
    :: GRANULES_OF(n_) > 1 ->
        assert(at + 1 < LINES); /* no frame leaves the box */
        mark[at + 1]    = 0;
        seal[at + 1]    = 0;
        said[at + 1]    = 0;
        payload[at + 1] = WORD(n_)
    :: else
    fi
}

inline box_mark(n_)
{
    mark[at] = MARK(tx_lap + at)
}

inline posted()
{
    if
    :: tx_posted == tx_next -> waiting = false
    :: else
    fi
}

inline box_post(n_)
{
#ifndef BUG_MARK_FIRST
    atomic { box_write(n_) };
    atomic { box_mark(n_); tx_place = tx_place + GRANULES_OF(n_); tx_posted++; posted() }
#else
    atomic { box_mark(n_) };
    atomic { box_write(n_); tx_place = tx_place + GRANULES_OF(n_); tx_posted++; posted() }
#endif
}

/* uci_link_send_am() */
inline am_post(n_)
{
    am_until = n_ + 1;
    tx_posted++;
    put_am(0, n_, 0);
    posted()
}

/* uci_txlog_ack() */
inline take_ack(n_)
{
    if
    :: n_ > tx_acked && n_ <= tx_next ->
        assert(n_ <= rx_next); /* what leaves the log is in the receiver's hands */
        tx_acked = n_;
        tx_log   = tx_log & ~BELOW(n_)
    :: else /* old; or refused: what was never sent */
    fi
}

/* uci_link_resend_range() */
inline send_again(set_)
{
    i = 0;
    do
    :: i < tx_posted ->
        if
        :: HAS(set_, i) && i >= tx_acked ->
            assert(HAS(tx_log, i));
            put_am(0, i, 0)
        :: else
        fi;
        i++
    :: else -> break
    od
}

inline say_sent()
{
    p = TX_POSITION;
    put_am(AM_SENT, tx_posted, p)
}

#ifndef BUG_CARRIER_CHANGE
#define MAY_USE_BOX(n) ((n) != BY_AM && tx_acked >= am_until)
#else
#define MAY_USE_BOX(n) ((n) != BY_AM)
#endif
#define IS_HEARD    (IS_ACKED(acked) && TOLD_IS_GOOD(tx_consumed) && (consumed != heard_consumed || acked != heard_acked))
#define ROOM_AM(n)  (len(am) + (n) <= AM_ROOM)

active proctype sender()
{
    byte type, n, missing, i, p, at;
    bool last;

    do
    /* uci_link_send(): by box, if it has room; behind what waits; or by active message */
    :: atomic { tx_next < MESSAGES && !waiting && MAY_USE_BOX(tx_next) && FITS(tx_next) ->
        n = tx_next;
        tx_log = tx_log | BIT(n);
        tx_next++;
        box_place(n)
       };
       box_post(n)
    :: atomic { tx_next < MESSAGES && (waiting || (MAY_USE_BOX(tx_next) && !FITS(tx_next))) ->
        tx_log  = tx_log | BIT(tx_next);
        waiting = true;
        tx_next++
       }
    :: atomic { tx_next < MESSAGES && !waiting && !MAY_USE_BOX(tx_next) && ROOM_AM(1) ->
        tx_log = tx_log | BIT(tx_next);
        tx_next++;
        am_post(tx_next - 1)
       }
    /* uci_link_progress(): there is room now, or there was none for long */
    :: atomic { waiting && MAY_USE_BOX(tx_posted) && FITS(tx_posted) -> n = tx_posted; box_place(n) };
       box_post(n)
    :: atomic { (timeout || early > 0) && waiting && ROOM_AM(MESSAGES) ->
        if
        :: early > 0 -> early--
        :: else
        fi;
        harmed = true;
        do
        :: tx_posted < tx_next -> n = tx_posted; am_post(n)
        :: else -> break
        od
       }
    /* uci_mailbox_heard() */
    :: atomic { IS_HEARD ->
        tx_consumed    = VALUE(consumed);
        heard_consumed = consumed;
        heard_acked    = acked;
        take_ack(VALUE(acked))
       }
    :: atomic { nempty(back) && ROOM_AM(MESSAGES + 1) ->
        back ? type, n, missing, last;
        if
        :: type == AM_ACK ->
            take_ack(n);
            send_again(missing);
            if
            :: last -> say_sent()
            :: else
            fi
        :: type == AM_REPAIR -> send_again(BIT(n))
        fi
       }
#ifndef BUG_NO_SENT
    /* uci_link_look_at() */
    :: atomic { timeout && tx_acked < tx_next && tx_posted > 0 && ROOM_AM(1) -> say_sent() }
    :: atomic { early > 0 && tx_acked < tx_next && ROOM_AM(1) -> early--; say_sent() }
#endif
    :: ALL_IS_WELL -> break
    od
}

/* ---------------------------------------------------------------- the receiver: its link */

inline suspect()
{
    assert(harmed); /* where nobody has done anything nothing is missing, or damaged */
    if
    :: !rx_suspect -> rx_suspect = true; rx_asks = 0
    :: else
    fi
}

inline trust()
{
    rx_suspect = false;
    rx_damaged = false
}

inline settle()
{
    if
    :: !IS_SPECIAL -> trust()
    :: else
    fi
}

inline deliver(word_)
{
    assert(word_ == WORD(rx_next)); /* this one's, in order, each once */
    rx_gaps = rx_gaps & ~BIT(rx_next);
    rx_next++;
    do
    :: HAS(rx_held, rx_next) -> rx_held = rx_held & ~BIT(rx_next); rx_next++
    :: else -> break
    od;
    settle()
}

/* uci_link_take(), uci_link_take_other(); too_early: it looks back afterwards */
inline take(word_, intact_)
{
    if
    :: NUMBER(word_) < rx_next || (word_ < FOREIGN && HAS(rx_held, NUMBER(word_))) /* repeated */
    :: else ->
        if
#ifndef BUG_PAYLOAD_BELIEVED
        :: !intact_ ->
            suspect();
            rx_gaps = rx_gaps | BIT(NUMBER(word_));
            put_back(AM_REPAIR, NUMBER(word_), 0, false)
        :: intact_ && NUMBER(word_) == rx_next -> deliver(word_)
#else
        :: NUMBER(word_) == rx_next -> assert(intact_); deliver(word_)
#endif
        :: intact_ && NUMBER(word_) != rx_next ->
            assert(word_ < FOREIGN);
            suspect();
            rx_held   = rx_held | BIT(NUMBER(word_));
            rx_gaps   = rx_gaps & ~BIT(NUMBER(word_));
            too_early = true
        fi
    fi
}

/* uci_link_send_ack() */
inline send_ack(upto_, last_, repair_)
{
    known = upto_;
    i     = rx_next;
    do
    :: i < MESSAGES ->
        if
        :: HAS(rx_held | rx_gaps, i) && i >= known -> known = i + 1
        :: else
        fi;
        i++
    :: else -> break
    od;
    if
    :: repair_ -> known = (BELOW(known) | rx_gaps) & ~BELOW(rx_next) & ~rx_held
    :: else -> known = 0
    fi;
    put_back(AM_ACK, rx_next, known, last_)
}

/* ---------------------------------------------------------------- the receiver: its box */

#ifndef BUG_HEADER_UNBOUND
#define IS_HEADER(word, sealed, p) ((word) != 0 && (sealed) == MARK(p))
#else
#define IS_HEADER(word, sealed, p) ((word) != 0)
#endif
#define IS_WHOLE(word, place) \
    (payload[place] == (word) && (GRANULES_OF(NUMBER(word)) == 1 || ((place) + 1 < LINES && payload[((place) + 1) % LINES] == (word))))

/* uci_box_rx_next() */
inline box_next(granules_)
{
    looked    = false;
    rx_untold = rx_untold + granules_;
    rx_place  = rx_place + granules_;
    if
    :: rx_place >= GRANULES -> rx_lap = rx_lap + GRANULES; rx_place = 0
    :: else
    fi
}

/* uci_box_rx_leave_lap() */
inline leave_lap()
{
    looked   = false;
    rx_left  = RX_POSITION;
    rx_lap   = rx_lap + GRANULES;
    rx_place = 0
}

/* uci_mailbox_take_passed(): what is marked from here on and below the end */
inline take_passed(from_, end_)
{
    p = from_;
    do
    :: p < end_ ->
        if
        :: IS_MARKED(p) && IS_HEADER(said[PLACE(p)], seal[PLACE(p)], p) -> take(said[PLACE(p)], IS_WHOLE(said[PLACE(p)], PLACE(p)))
        :: else
        fi;
        p++
    :: else -> break
    od
}

/* uci_mailbox_look_back() */
inline look_back()
{
    too_early = false;
    if
    :: rx_left != NO_POSITION ->
        from    = rx_left;
        rx_left = NO_POSITION;
        take_passed(from, LAP_END(from));
        too_early = false
    :: else
    fi
}

#define NEXT_LAP (rx_lap + GRANULES)
#define LOOKS(k) (rx_place + (k) < GRANULES && IS_MARKED(RX_POSITION + (k))) /* uci_box_rx_look() */

/* uci_mailbox_find(): peek, or skip. What is before the frame that is seen is there by now, so it is looked at once more */
inline find()
{
    look_back();
    rx_lost = false;
    if
    :: IS_MARKED(RX_POSITION)
    :: else ->
        if
        :: LOOKS(1) -> box_next(1)
        :: !LOOKS(1) && LOOKS(2) -> box_next(2)
        :: !LOOKS(1) && !LOOKS(2) && IS_MARKED(NEXT_LAP) -> leave_lap()
        :: else -> rx_lost = true
        fi
    fi;
    look_back()
}

/* uci_mailbox_drain(), of one frame whose header has been read */
inline drain()
{
    if
    :: IS_HEADER(word, sealed, RX_POSITION) ->
        whole = IS_WHOLE(word, rx_place);
        box_next(GRANULES_OF(NUMBER(word)));
        take(word, whole);
        if
        :: too_early -> look_back()
        :: else
        fi
    :: else ->
        suspect(); /* uci_mailbox_broken() */
        rx_damaged = true;
        box_next(1);
        find()
    fi
}

/* uci_mailbox_catch_up() */
inline catch_up()
{
    do
    :: IS_MARKED(RX_POSITION) -> word = said[rx_place]; sealed = seal[rx_place]; drain()
    :: !IS_MARKED(RX_POSITION) && IS_MARKED(NEXT_LAP) -> leave_lap()
    :: !IS_MARKED(RX_POSITION) && !IS_MARKED(NEXT_LAP) && rx_lost && (LOOKS(1) || LOOKS(2)) -> find()
    :: else -> break
    od
}

/* uci_mailbox_on_sent(), uci_mailbox_resume(): laps may have begun that were not seen, and what is there is in the last two of them */
inline on_sent(position_)
{
    catch_up();
    if
    :: position_ > RX_POSITION ->
        from = LAP_END(position_) - GRANULES;
        from = (from > 0 -> from - GRANULES : 0);
        from = (from > RX_POSITION -> from : RX_POSITION);
        take_passed(from, position_);
        too_early = false;
        rx_untold = rx_untold + position_ - RX_POSITION;
        rx_lap    = position_ - PLACE(position_);
        rx_place  = PLACE(position_);
        rx_lost   = false;
        looked    = false
    :: else
    fi
}

#define HAS_BACK_ROOM (len(back) + MESSAGES + 1 <= BACK_ROOM)

active proctype receiver()
{
    byte type, n, position, i, p, from, known, word, sealed;
    bool whole, too_early, looked;

    do
    /* uci_box_rx_peek(), uci_mailbox_drain(): the mark, the header, the payload */
    :: atomic { IS_MARKED(RX_POSITION) && HAS_BACK_ROOM -> skip };
       atomic { word = said[rx_place]; sealed = seal[rx_place] };
       atomic { drain(); word = 0; sealed = 0 }
    /* there was none where it comes next; where a lap begins there is; and was that not too early to look? */
    :: atomic { !looked && !IS_MARKED(RX_POSITION) && rx_next < MESSAGES -> looked = true }
    :: atomic { looked && IS_MARKED(NEXT_LAP) ->
        looked = false;
        if
#ifndef BUG_ONE_LOOK
        :: IS_MARKED(RX_POSITION)
        :: else -> leave_lap()
#else
        :: leave_lap()
#endif
        fi
       }
    /* uci_box_rx_tell(): acked, then consumed */
    :: atomic { rx_untold >= TELL -> acked = ACKED(rx_next) };
       atomic { consumed = CONSUMED(RX_POSITION); rx_untold = 0 }
    :: atomic { rx_lost && HAS_BACK_ROOM && (IS_MARKED(RX_POSITION) || LOOKS(1) || LOOKS(2) || IS_MARKED(NEXT_LAP)) -> find() }
    :: atomic { nempty(am) && HAS_BACK_ROOM ->
        am ? type, n, position;
        if
        :: type == 0 ->
            take(WORD(n), true);
            if
            :: too_early -> look_back()
            :: else
            fi
        :: type == AM_SENT ->
            on_sent(position);
            if
            :: n <= rx_next && !IS_SPECIAL -> trust()
            :: else
            fi;
            send_ack(n, false, (n > rx_next))
        fi
       }
    /* uci_link_ask_peer() */
    :: atomic { (timeout || early > 0) && rx_suspect && HAS_BACK_ROOM ->
        if
        :: early > 0 -> early--
        :: else
        fi;
        send_ack(0, rx_damaged, true);
        if
        :: !IS_SPECIAL && rx_asks >= GAP_ASKS -> trust()
        :: !IS_SPECIAL && rx_asks < GAP_ASKS -> rx_asks++
        :: else
        fi
       }
    :: ALL_IS_WELL -> break
    od
}

init
{
#ifdef BUG_KEY_REUSED
    /* whoever had this box before has left frames in it, numbered as ours */
    atomic {
        mark[0] = MARK(0); seal[0] = MARK(0); said[0] = FOREIGN + WORD(0); payload[0] = said[0]; payload[1] = said[0]
    }
#else
    skip
#endif
}

/* When whoever writes there is quiet, nothing waits for ever */
ltl arrives { <> ALL_IS_WELL }
