/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The conversation between two workers, by the table of pipeline/conversation/conversation.c (tables.py), and the closes of both sides
 * (pipeline/conn/close.c, leave.c, bye.c): messages that are over for their sender, and closes, and users that come back, on a wire that loses what it
 * damages. docs/design.md, "Closing"; run_model.sh says what is checked, and how.
 *
 * Each side sends up to SENDS messages in all, each over for its user at once, and opens again up to RETURNS times. Deadlines, of who is silent for 10 s,
 * run out where nobody is there any more, and nowhere else: all other that is waited for has to come.
 */
#include "tables.pml"

#ifndef SENDS
#define SENDS 1
#endif
#ifndef RETURNS
#define RETURNS 1
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef EARLY
#define EARLY 0 /* times that a side's timers run out while something else could happen */
#endif
#ifndef FORCED
#define FORCED 0 /* a close by force may be one of them */
#endif
#ifndef DEATHS
#define DEATHS 0 /* sides that end at any step without a word */
#endif
#ifndef NOTICED
#define NOTICED 1 /* 1: the other side's endpoint fails then; 0: it is silent, and what is waited for runs out after 10 s (uci_close_t.deadline) */
#endif
#define ROOM 8

/* What comes to a side: type, number (of a message, or of LEAVE), life, received of the other one's, LEAVE that is repeated */
chan to[2] = [ROOM] of { byte, byte, byte, byte, bool };

byte faults = FAULTS, forced = FORCED, early = EARLY, deaths = DEATHS;
byte turn; /* whose timers run out next, when nothing else happens */

/* uci_conversation_t */
byte state[2], life[2], confirmed[2], peer_life[2], rounds[2], fins_told[2];
bool has_failed[2]; /* its status */
bool dead[2];
/* uci_close_t: of the last endpoint */
bool is_closing[2], answered[2], is_late[2];
byte asked[2]; /* number of this close's last LEAVE */
/* what has been sent and received */
byte sent[2], settled[2], received[2], fins_sent[2], sent_at_bye[2];
/* what the user may yet do */
byte sends[2] = SENDS, returns[2] = RETURNS;

#define OURS(i)       (state[i] / 4)
#define THEIRS(i)     (state[i] % 4)
#define IS_OPEN(i)    (OURS(i) == 0)
#define IS_LEFT(i)    (OURS(i) == 2)
#define IS_LEAVING(i) (THEIRS(i) != 0)
#define IS_WAITING(i) (THEIRS(i) == 1)
#define IS_GONE(i)    (THEIRS(i) == 3)
#define IS_LACKING(i) (settled[i] < sent[i])
#define IS_BACK(i)    (life[i] != confirmed[i])
#define IS_ENDED(i)   (IS_LEFT(i) && !is_closing[i] && sends[i] == 0 && returns[i] == 0)
#define ROOM_FOR(i, n) (dead[1 - (i)] || len(to[1 - (i)]) + (n) <= ROOM)

inline happens(i, event)
{
    table(state[i], event, next, action);
    assert(action != ACTION_NEVER);
    state[i] = next
}

/* Whatever is damaged is dropped */
inline tell(i, type, number, again)
{
    if
    :: dead[1 - i]
    :: !dead[1 - i] -> to[1 - i] ! type, number, life[i], received[i], again
    :: !dead[1 - i] && faults > 0 -> faults--
    fi
}

inline hear_report(i, got)
{
    assert(got <= sent[i]);
    if
    :: got > settled[i] -> settled[i] = got
    :: else
    fi
}

/* ------------------------------------------------------------------ closing */

inline ask(i, again)
{
    answered[i] = false;
    rounds[i]++;
    asked[i]     = rounds[i];
    fins_told[i] = fins_sent[i];
    tell(i, AM_LEAVE, rounds[i], again)
}

/* Every message that its user takes for sent has been received, but by a side that leaves too: that one wants nothing more */
inline say_bye(i)
{
    assert(received[1 - i] == sent[i] || IS_LEAVING(i) || has_failed[i] || !IS_OPEN(1 - i) || dead[1 - i]);
    happens(i, EVENT_SAY_BYE);
    is_late[i] = false;
    tell(i, AM_BYE, 0, false)
}

#define HAS_TO_ASK(i) (!IS_GONE(i) && !has_failed[i] && (fins_told[i] != fins_sent[i] || (!IS_LEAVING(i) && IS_LACKING(i))))

#ifndef BUG_FAILED_IS_ASKED
#define MAY_ANSWER(i) (!IS_GONE(i) && !has_failed[i] && !is_late[i])
#else
#define MAY_ANSWER(i) (!IS_GONE(i))
#endif
#ifndef BUG_BYE_AT_ONCE
#define IS_ASKING(i) \
    (MAY_ANSWER(i) && \
     ((asked[i] > 0 && !answered[i]) || (!IS_LEAVING(i) && IS_LACKING(i)) || fins_told[i] != fins_sent[i]))
#else
#define IS_ASKING(i) false
#endif

/* uci_close_has_to_wait(): for its BYE, but not of who is known to have failed */
#ifdef BUG_FAILED_IS_WAITED_FOR
#define HAS_TO_WAIT(i) IS_WAITING(i)
#else
#define HAS_TO_WAIT(i) (IS_WAITING(i) && !has_failed[i])
#endif
/* PROMPT: where the other side is known to have failed, no close waits until its deadline */
#ifdef PROMPT
#define SHALL_NOT_WAIT(i) assert(!has_failed[i])
#else
#define SHALL_NOT_WAIT(i) skip
#endif

inline close(i)
{
    happens(i, EVENT_CLOSE);
    is_closing[i] = true;
    answered[i]   = false;
    asked[i]      = 0;
    if
    :: HAS_TO_ASK(i) -> ask(i, false)
    :: !HAS_TO_ASK(i) && !HAS_TO_WAIT(i) -> say_bye(i); is_closing[i] = false /* at once */
    :: else
    fi
}

inline close_by_force(i)
{
    happens(i, EVENT_CLOSE);
    if
    :: !has_failed[i] -> happens(i, EVENT_SAY_BYE); tell(i, AM_BYE, 0, false)
    :: else
    fi;
    has_failed[i] = true;
    happens(i, EVENT_FAIL);
    settled[i] = sent[i] /* given up */
}

/* uci_ep_fail() */
inline fail(i)
{
    has_failed[i] = true;
    happens(i, EVENT_FAIL);
    settled[i] = sent[i] /* what is not over ends with the error */
}

inline open(i)
{
    happens(i, EVENT_OPEN);
    has_failed[i] = false;
    is_closing[i] = false; /* this close is not the last one's any more */
    if
    :: action == ACTION_RETURN -> life[i]++; tell(i, AM_HELLO, 0, false)
    :: else
    fi
}

/* ------------------------------------------------------------------ hearing */

inline hear_leave(i, number, again)
{
    if
    :: again && IS_LEFT(i) -> /* 100 ms after our BYE, or sooner */
        if
        :: happens(i, EVENT_LEAVE_AGAIN)
        :: faults > 0 -> faults--; happens(i, EVENT_LEAVE) /* which its sender, too, may find too soon but so many times */
        fi
    :: again && !IS_LEFT(i) -> happens(i, EVENT_LEAVE_AGAIN)
    :: else -> happens(i, EVENT_LEAVE)
    fi;
    if
    :: action != ACTION_IGNORE ->
        hear_report(i, got);
        if
        :: action == ACTION_ANSWER -> tell(i, AM_MISSING, number, false)
#ifndef BUG_BYE_NOT_REPEATED
        :: action == ACTION_REPEAT -> happens(i, EVENT_SAY_BYE); tell(i, AM_BYE, 0, false)
#endif
        :: else
        fi
    :: else
    fi
}

inline hear(i)
{
    to[i] ? type, number, their_life, got, again;
    if
    :: type == AM_HELLO ->
        if
        :: their_life > peer_life[i] -> peer_life[i] = their_life; happens(i, EVENT_BACK)
        :: else
        fi;
        if
        :: their_life > 0 -> tell(i, AM_ACK, peer_life[i], false)
        :: else
        fi
    :: type == AM_DATA ->
        if
        :: number == received[i] -> received[i]++; fins_sent[i]++; tell(i, AM_FIN, peer_life[i], false)
        :: else -> tell(i, AM_ACK, peer_life[i], false)
        fi
    :: type == AM_FIN || type == AM_ACK ->
        hear_report(i, got);
        if
        :: number == life[i] -> confirmed[i] = number
        :: else
        fi
    :: type == AM_LEAVE && their_life >= peer_life[i] -> hear_leave(i, number, again)
    :: type == AM_BYE && their_life >= peer_life[i] ->
        if
        :: !IS_GONE(i) -> sent_at_bye[i] = sent[i]
        :: else
        fi;
        happens(i, EVENT_BYE);
        hear_report(i, got)
    :: type == AM_MISSING ->
        hear_report(i, got);
        if
        :: is_closing[i] && number == asked[i] -> answered[i] = true
        :: else
        fi
    :: else /* of an older life */
    fi
}

/* ------------------------------------------------------------------- timers */

#define IS_OVER(i) (has_failed[i] || (IS_GONE(i) && sent[i] <= sent_at_bye[i]) || (IS_LEFT(i) && !IS_LACKING(i)))

/* A close that is not answered asks again; one that is, as long as something is lacking */
inline close_runs_out(i)
{
    if
    :: is_closing[i] && IS_ASKING(i) && asked[i] > 0 && !answered[i] -> ask(i, true)
    :: is_closing[i] && IS_ASKING(i) && answered[i] && !IS_LEAVING(i) && IS_LACKING(i) -> ask(i, false)
#ifndef BUG_BYE_NOT_ASKED_FOR
    :: is_closing[i] && !IS_ASKING(i) && IS_WAITING(i) -> ask(i, true) /* its BYE may be lost */
#endif
    :: else
    fi
}

inline link_runs_out(i)
{
    if
    :: (IS_LACKING(i) || IS_BACK(i)) && !IS_OVER(i) ->
        if
        :: IS_BACK(i) -> tell(i, AM_HELLO, 0, false)
        :: else
        fi;
        if
        :: IS_LACKING(i) -> tell(i, AM_DATA, settled[i], false)
        :: else
        fi
    :: else
    fi
}

inline run_out(i)
{
    close_runs_out(i);
    link_runs_out(i)
}

/* --------------------------------------------------------------- each side */

proctype side(byte i)
{
    byte type, number, their_life, got, next, action;
    bool again;

    do
    /* the user's */
    :: atomic { IS_OPEN(i) && !IS_GONE(i) && sends[i] > 0 && ROOM_FOR(i, 1) -> sends[i]--; sent[i]++; tell(i, AM_DATA, sent[i] - 1, false) }
    :: atomic { sends[i] > 0 && (!IS_OPEN(i) || IS_GONE(i)) -> sends[i] = 0 }
    :: atomic { IS_OPEN(i) && ROOM_FOR(i, 1) -> close(i) }
    :: atomic { IS_OPEN(i) && forced > 0 && ROOM_FOR(i, 1) -> forced--; close_by_force(i) }
    :: atomic { !IS_OPEN(i) && returns[i] > 0 && ROOM_FOR(i, 1) -> returns[i]--; open(i) }
    :: atomic { IS_LEFT(i) && returns[i] > 0 -> returns[i] = 0; sends[i] = 0 }
    /* the close's */
    :: atomic { is_closing[i] && !IS_ASKING(i) && (!HAS_TO_WAIT(i) || is_late[i]) && ROOM_FOR(i, 1) -> say_bye(i); is_closing[i] = false }
    :: atomic { is_closing[i] && IS_ASKING(i) && answered[i] && (IS_LEAVING(i) || !IS_LACKING(i)) && ROOM_FOR(i, 1) -> ask(i, false) }
    :: atomic { is_closing[i] && IS_ASKING(i) && asked[i] == 0 && ROOM_FOR(i, 1) -> ask(i, false) } /* since more has come, or it is back */
    :: atomic { timeout && turn == i -> turn = 1 - i; run_out(i) }
    :: atomic { early > 0 && ROOM_FOR(i, 3) -> early--; run_out(i) }
    :: atomic { nempty(to[i]) && ROOM_FOR(i, 1) -> hear(i) }
    /* somebody ends without a word */
    :: atomic { deaths > 0 -> deaths--; dead[i] = true; break }
#if NOTICED
    :: atomic { dead[1 - i] && !has_failed[i] && !IS_LEFT(i) -> fail(i) }
#endif
    :: atomic { timeout && dead[1 - i] && is_closing[i] && !is_late[i] -> SHALL_NOT_WAIT(i); is_late[i] = true }
    od
}

init
{
    atomic {
        run side(0);
        run side(1)
    }
}

/* On a wire that has done its worst each close comes to its end, whoever else has ended */
ltl ends_0 { [] (is_closing[0] -> <> (!is_closing[0] || dead[0])) }
