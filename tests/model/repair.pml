/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One message of CHUNKS chunks, and its repair (pipeline/transfer): by slots (PATH 1: direct_send.c, direct_recv.c), as a stream (2: stream.c, stream_recv.c) or
 * fetched (3: get.c), and then the ladder (repair.c, grant.c, descent.c), until FIN, or until the policy decides. docs/design.md, "Send operation", "Receive";
 * run_model.sh says what is checked.
 *
 *   S --descriptor (a frame: link.pml)----------------------> R   matched: takes the slots that it names, or says CTS
 *     <-CTS, REPAIR (chunks; GET), TREE, FIN-----------------
 *     --DATA, SEGMENT, LEAVES, GRANT, GONE, QUERY----------->
 *     ==slots: words, data, mark, next =====================>     <== ack: shared memory, which somebody else may write to
 *     <=fetch of a segment, get of what GRANT names==========     S's memory: it has to be there until then
 *
 * FAULTS times a message is lost (its check fails: who drops it knows that something was lost), comes twice or late, or brings other bytes of a chunk, or a fetch does;
 * FORGES times other bytes whose digest fits, which only the root of the tree tells. ATTACKS times a word of a slot is changed, or copied over another one.
 * DIES: 1 S, 2 R stops at any step; FAILS: the connection fails, seen by both, though they live. What the other side then waits for has to end.
 *
 * Bytes of a chunk: RIGHT, WRONG (their digest tells), FORGED. Left out: two messages at once (QUEUED, SLOT), both ways, the bounce path, what is handed over, grants
 * told ahead, packers, programs that change what they send, questions of a few nodes of a tree (NODES): here the answer is LEAVES.
 */
#include "tables.pml"

#ifndef PATH
#define PATH 1
#endif
#ifndef CHUNKS
#define CHUNKS 2
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef FORGES
#define FORGES 0
#endif
#ifndef ATTACKS
#define ATTACKS 0
#endif
#ifndef DIES
#define DIES 0
#endif
#ifndef FAILS
#define FAILS 0
#endif
#ifndef EARLY
#define EARLY 0 /* times that a timer runs out while something else could happen */
#endif
#ifndef COPIED
#define COPIED 0 /* 1: the message has been copied, and that copy may be damaged: one of the faults */
#endif
#ifndef REMOTE
#define REMOTE 1 /* 0: S's memory can't be read from afar */
#endif
#ifndef INLINE
#define INLINE 0 /* 1: digests travel in the offers */
#endif
#ifndef TORN
#define TORN 0 /* 1: a fetch that fails may have brought other bytes before */
#endif
#define WINDOW        2 /* UCI_DIRECT_WINDOW: slots of a message */
#define COPY_ATTEMPTS 2 /* UCI_REPAIR_COPY_ATTEMPTS */
#define ROOT_ATTEMPTS 2 /* UCI_ROOT_ATTEMPTS */
#define PATIENCE      1 /* UCI_RECV_PATIENCE */
#define ROOM          (2 * CHUNKS + 4)
#define ALL           (BIT(CHUNKS) - 1)

#define RIGHT  1
#define WRONG  0
#define FORGED 2

/* type, chunk or chunks, bytes (of GRANT: has a key), flags */
chan to_r = [ROOM] of { byte, byte, byte, short };
chan to_s = [ROOM] of { byte, byte, byte, short };

byte faults = FAULTS, forges = FORGES, attacks = ATTACKS, early = EARLY, dies = (DIES != 0), fails = FAILS;
byte harms; /* of all these, those that were */
byte late_type, late_chunks, late_bytes;
short late_flags;

/* S: uci_send_op_t */
byte s_state = SEND_DESCRIBED;
byte s_next, s_leaves, s_again, s_held, s_queries;
byte s_filled, s_acked;
bool s_reminded, s_failed, s_dead;
bool s_freed; /* the memory that it reads is its user's again, or is given back */
bool s_copy_damaged;
bool failed; /* the connection */

/* Slots: uci_slot_t. A word that is 0 is damaged, or not there yet; marks, checks and acknowledgements are of chunk + 1, next of slot + 1 */
byte slot_mark[WINDOW], slot_check[WINDOW], slot_data[WINDOW], slot_next[WINDOW], slot_ack[WINDOW];
#define GARBAGE 15
#ifndef BUG_ACK_IS_MARK
#define ACK_OF(mark) ((mark) + 16)
#else
#define ACK_OF(mark) (mark)
#endif

/* R: uci_recv_op_t */
byte r_chunk[CHUNKS], r_expected[CHUNKS], r_bytes[CHUNKS];
byte r_rung, r_attempts, r_awaiting, r_before, r_roots, r_asked;
byte r_gets, r_fetches; /* bits: chunks that are being read by get; as segments */
byte r_taken, r_slot;
bool r_matched, r_over, r_direct, r_by_slots, r_holds, r_slotless, r_reminded, r_has_root, r_has_leaves, r_descends, r_arrived, r_doubt, r_failed, r_dead, r_reads;
bool r_delivered, r_reported;

#define BIT(n)      (1 << (n))
#define HAS(set, n) (((set) >> (n)) & 1)
#define S_OVER      (s_state == SEND_DONE && s_held == 0)
#define R_GETS      (r_gets != 0 || r_fetches != 0)
#define IS_HARMED   (harms > 0 || failed)
#define IS_OVER     ((S_OVER || s_dead) && (r_over || r_dead))

/* Chunks of R's in a state */
#if CHUNKS == 2
#define COUNT(state_) ((r_chunk[0] == state_) + (r_chunk[1] == state_))
#define SET(state_)   ((r_chunk[0] == state_) + 2 * (r_chunk[1] == state_))
#define SIZE(set_)    (HAS(set_, 0) + HAS(set_, 1))
#define ROOT_MATCHES  (r_expected[0] == RIGHT && r_expected[1] == RIGHT)
#define ALL_RIGHT     (r_bytes[0] == RIGHT && r_bytes[1] == RIGHT)
#else
#define COUNT(state_) ((r_chunk[0] == state_) + (r_chunk[1] == state_) + (r_chunk[2] == state_))
#define SET(state_)   ((r_chunk[0] == state_) + 2 * (r_chunk[1] == state_) + 4 * (r_chunk[2] == state_))
#define SIZE(set_)    (HAS(set_, 0) + HAS(set_, 1) + HAS(set_, 2))
#define ROOT_MATCHES  (r_expected[0] == RIGHT && r_expected[1] == RIGHT && r_expected[2] == RIGHT)
#define ALL_RIGHT     (r_bytes[0] == RIGHT && r_bytes[1] == RIGHT && r_bytes[2] == RIGHT)
#endif
#define GOOD COUNT(CHUNK_GOOD)
#define BAD  COUNT(CHUNK_BAD)

/* ---------------------------------------------------------------- the wire: what is damaged is dropped, and who drops it knows that it was something */

#define HARM harms++; faults--

/* UCX reads S's memory for it until it is there */
#define IS_HELD(type_) ((type_) == AM_DATA || (type_) == AM_SEGMENT)
#define R_HEARS   (!r_dead && !r_failed)
#define S_HEARS   (!s_dead && !s_failed)
#define ROOM_R(n) (!R_HEARS || len(to_r) + (n) <= ROOM)
#define ROOM_S    (!S_HEARS || len(to_s) + 4 <= ROOM)

inline put_r(type_, chunks_, bytes_, flags_)
{
    assert(FLAGS_ARE_GOOD(type_, flags_));
    if
    :: !R_HEARS -> s_held = s_held - IS_HELD(type_)
    :: R_HEARS -> to_r ! type_, chunks_, bytes_, flags_
    :: R_HEARS && faults > 0 ->
        HARM;
        if
        :: to_r ! 0, type_, 0, 0 /* its check fails */
        :: CARRIES_BYTES(type_) -> to_r ! type_, chunks_, WRONG, flags_
        :: !IS_HELD(type_) && len(to_r) + 2 <= ROOM -> to_r ! type_, chunks_, bytes_, flags_; to_r ! type_, chunks_, bytes_, flags_
        :: late_type == 0 -> late_type = type_; late_chunks = chunks_; late_bytes = bytes_; late_flags = flags_
        fi
    :: R_HEARS && forges > 0 && CARRIES_BYTES(type_) -> harms++; forges--; to_r ! type_, chunks_, FORGED, flags_
    fi
}

inline put_s(type_, chunks_, bytes_, flags_)
{
    assert(FLAGS_ARE_GOOD(type_, flags_));
    if
    :: !S_HEARS
    :: S_HEARS -> to_s ! type_, chunks_, bytes_, flags_
    :: S_HEARS && faults > 0 -> HARM
    :: S_HEARS && faults > 0 && len(to_s) + 2 <= ROOM -> HARM; to_s ! type_, chunks_, bytes_, flags_; to_s ! type_, chunks_, bytes_, flags_
    fi
}

/* What is late may come at any time, and comes when nothing else does */
active proctype wire()
{
end:
    do
    :: atomic { late_type != 0 && nfull(to_r) -> to_r ! late_type, late_chunks, late_bytes, late_flags; late_type = 0 }
    od
}

/* ---------------------------------------------------------------- who writes where he should not */

#if ATTACKS > 0
inline attack(k)
{
    if
    :: slot_mark[k] != 0 -> slot_mark[k] = 0
    :: slot_check[k] != 0 -> slot_check[k] = 0
    :: slot_data[k] == RIGHT -> slot_data[k] = WRONG
    :: slot_next[k] != 0 -> slot_next[k] = 0
    :: slot_next[k] != 0 -> slot_next[k] = GARBAGE
    :: slot_ack[k] != 0 -> slot_ack[k] = 0
    :: slot_mark[k] != 0 -> slot_ack[k] = slot_mark[k] /* the word 64 bytes before */
    :: slot_check[k] != 0 && slot_mark[1 - k] != 0 -> /* exchanged with its neighbour, but for the mark; or with it */
        other = slot_check[k]; slot_check[k] = slot_check[1 - k]; slot_check[1 - k] = other;
        other = slot_data[k]; slot_data[k] = slot_data[1 - k]; slot_data[1 - k] = other;
        if
        :: other = slot_mark[k]; slot_mark[k] = slot_mark[1 - k]; slot_mark[1 - k] = other
        :: skip
        fi
    fi
}

active proctype attacker()
{
    byte other;

    do
    :: atomic { attacks > 0 && slot_mark[0] != 0 -> attacks--; harms++; attack(0) }
    :: atomic { attacks > 0 && slot_mark[1] != 0 -> attacks--; harms++; attack(1) }
    :: break
    od
}
#endif

/* ---------------------------------------------------------------- S: its operation */

/* uci_direct_release(): they are another message's */
inline slots_are_used_again()
{
    slot_mark[0]  = GARBAGE; slot_mark[1]  = GARBAGE;
    slot_check[0] = GARBAGE; slot_check[1] = GARBAGE;
    slot_data[0]  = WRONG;   slot_data[1]  = WRONG
}

inline s_end()
{
    if
#ifndef BUG_FREED_WITH_FIN
    :: s_state == SEND_DONE && s_held == 0 -> s_freed = true; slots_are_used_again()
#else
    :: s_state == SEND_DONE -> s_freed = true; slots_are_used_again()
#endif
    :: else
    fi
}

/* uci_send_op_finish(): the user's request waits until UCX has let go of what it reads */
inline s_finish()
{
    s_state = SEND_DONE;
    s_again = 0;
    s_end()
}

/* uci_send_op_unpin() */
inline s_unpin()
{
    s_held--;
    s_end()
}

/* uci_stream_chunk() */
inline s_chunk(i_, flags_)
{
    s_leaves = s_leaves | BIT(i_);
    if
    :: s_copy_damaged && (flags_ & FLAG_REPAIR) -> put_r(AM_GONE, 0, 0, FLAG_DAMAGED)
    :: else ->
        flags = flags_;
        if
        :: s_leaves == ALL && ((flags_ & FLAG_REPAIR) || i_ + 1 == CHUNKS) -> flags = flags | FLAG_LAST
        :: else
        fi;
        bytes = (s_copy_damaged -> WRONG : RIGHT);
        s_held++;
        put_r(AM_DATA, i_, bytes, flags)
    fi
}

/* uci_stream_rest() */
inline s_stream()
{
    s_state = SEND_STREAMING;
    s_next  = 0
}

/* uci_get_offer() */
inline s_offer()
{
    s_leaves = ALL;
    s_next   = CHUNKS;
    flags    = (INLINE -> FLAG_LAST : 0);
    k        = 0;
    do
    :: k < CHUNKS -> s_held++; put_r(AM_SEGMENT, k, 0, flags); k++
    :: else -> break
    od;
    s_state = (INLINE -> SEND_WAIT_FIN : SEND_OFFERED)
}

/* uci_send_on_cts() */
inline s_hear_cts()
{
    if
    :: s_state == SEND_DESCRIBED && PATH == 3 -> s_offer()
    :: s_state == SEND_DESCRIBED && PATH != 3 -> s_stream()
    :: s_state == SEND_DIRECT ->
        if
#ifndef BUG_MERELY_SLOW
        :: (flags & FLAG_REPAIR) && chunks == 0 && !s_reminded && s_queries == 0 -> s_reminded = true /* we may just have been slow */
        :: else -> s_stream()
#else
        :: (flags & FLAG_REPAIR) && chunks == 0 -> s_reminded = true
        :: else -> s_stream()
#endif
        fi
    :: else /* repeated */
    fi
}

/* uci_send_on_repair(), uci_repair_answer(), uci_grant_chunks() */
inline s_hear_repair()
{
    if
    :: s_state == SEND_DONE -> put_r(AM_GONE, 0, 0, 0)
    :: s_state == SEND_DESCRIBED -> flags = 0; chunks = 0; s_hear_cts()
    :: s_state != SEND_DONE && s_state != SEND_DESCRIBED ->
        if
        :: (flags & FLAG_GET) && s_leaves == ALL && s_copy_damaged && REMOTE -> put_r(AM_GONE, 0, 0, FLAG_DAMAGED)
        :: (flags & FLAG_GET) && s_leaves == ALL && !s_copy_damaged && REMOTE -> put_r(AM_GRANT, chunks, 1, 0)
        :: (flags & FLAG_GET) && s_leaves == ALL && !REMOTE -> put_r(AM_GRANT, 0, 0, 0)
        :: else -> s_again = s_again | (chunks & (BIT(s_next) - 1))
        fi
    fi
}

inline s_hear()
{
    to_s ? type, chunks, bytes, flags;
    if
    :: type == AM_CTS && s_state != SEND_DONE -> s_hear_cts()
    :: type == AM_REPAIR -> s_hear_repair()
    :: type == AM_TREE && s_state != SEND_DONE && s_leaves == ALL -> put_r(AM_LEAVES, 0, 0, 0)
    :: type == AM_FIN && s_state != SEND_DONE -> s_finish()
    :: else
    fi
}

/* uci_direct_fill(), uci_direct_fill_next(): what is in it, its mark, and where it is */
inline s_fill_words()
{
    slot_next[s_filled % WINDOW]  = 0;
    slot_data[s_filled % WINDOW]  = (s_copy_damaged -> WRONG : RIGHT);
    slot_check[s_filled % WINDOW] = s_filled + 1;
    s_leaves                      = s_leaves | BIT(s_filled)
}

inline s_fill_mark()
{
    slot_mark[s_filled % WINDOW] = s_filled + 1
}

inline s_fill_next()
{
    if
    :: s_filled > 0 -> slot_next[(s_filled - 1) % WINDOW] = s_filled % WINDOW + 1
    :: else
    fi;
    s_filled++;
    s_next = s_filled
}

proctype s()
{
    byte type, chunks, bytes, k;
    short flags;

    do
    /* uci_direct_advance() */
    :: atomic { s_state == SEND_DIRECT && s_filled < CHUNKS && s_filled - s_acked < WINDOW ->
#ifndef BUG_MARK_FIRST
        s_fill_words()
#else
        s_fill_mark()
#endif
       };
       atomic {
#ifndef BUG_MARK_FIRST
        s_fill_mark()
#else
        s_fill_words()
#endif
       };
       atomic { s_fill_next() }
    :: atomic { s_state == SEND_DIRECT && s_acked < s_filled && slot_ack[s_acked % WINDOW] == ACK_OF(s_acked + 1) ->
        s_acked++;
        if
        :: s_acked == CHUNKS -> assert(r_over); s_finish() /* who sends without a copy goes on when it has arrived */
        :: else
        fi
       }
    /* uci_stream_next_again(), uci_stream_next() */
    :: atomic { s_again != 0 && s_state != SEND_DONE && ROOM_R(2) ->
        k = 0;
        do
        :: HAS(s_again, k) -> break
        :: else -> k++
        od;
        s_again = s_again & ~BIT(k);
        s_chunk(k, FLAG_REPAIR)
       }
    :: atomic { s_again == 0 && s_state == SEND_STREAMING && ROOM_R(2) ->
        s_next++;
        if
        :: s_next == CHUNKS -> s_state = SEND_WAIT_FIN
        :: else
        fi;
        k = s_next - 1;
        s_chunk(k, 0)
       }
    /* uci_get_send_progress() */
    :: atomic { s_state == SEND_OFFERED && ROOM_R(2) -> s_state = SEND_WAIT_FIN; put_r(AM_LEAVES, 0, 0, FLAG_LAST) }
    :: atomic { nempty(to_s) && ROOM_R(CHUNKS + 2) -> s_hear() }
#ifndef BUG_NO_QUERY
    :: atomic { timeout && s_state != SEND_DONE && ROOM_R(2) -> s_queries = 1; put_r(AM_QUERY, 0, 0, 0) }
#endif
#if COPIED
    :: atomic { faults > 0 && !s_copy_damaged && s_state != SEND_DONE -> HARM; s_copy_damaged = true }
#endif
    /* uci_ep_abandon_ops() */
    :: atomic { failed || r_dead -> s_failed = true; s_held = 0; s_finish(); break }
#if DIES == 1
    :: atomic { dies > 0 -> dies--; s_dead = true; break }
#endif
    od
}

/* ---------------------------------------------------------------- R: its operation */

/* uci_recv_op_end(), uci_direct_finish() */
inline r_end()
{
#ifndef BUG_END_WHILE_READ
    assert(!R_GETS); /* else UCX would write to memory that is the user's again */
#endif
    r_over = true;
    if
    :: r_by_slots && r_taken == CHUNKS && !r_reminded -> slot_ack[r_slot] = ACK_OF(CHUNKS)
    :: r_by_slots && r_taken == CHUNKS && r_reminded -> slot_ack[r_slot] = ACK_OF(CHUNKS); put_s(AM_FIN, 0, 0, 0)
    :: else -> put_s(AM_FIN, 0, 0, 0)
    fi;
    r_direct = false; r_reads = false;
    r_asked  = 0; r_rung = 0; r_attempts = 0; r_awaiting = 0; r_before = 0; r_roots = 0;
    r_doubt  = false; r_arrived = false; r_holds = false
}

inline r_deliver()
{
    assert(ALL_RIGHT); /* what is delivered is what was sent */
    r_delivered = true;
    ends        = true
}

/* uci_repair_failed(): the job stops here, or goes on knowing */
inline r_fail()
{
    assert(harms > 2 || s_copy_damaged); /* as long as there is a right copy less harm than this is repaired */
    r_reported = true;
    ends       = true
}

/* uci_repair_request() */
inline r_request(missing_too_)
{
    chunks = SET(CHUNK_BAD);
    if
    :: missing_too_ -> chunks = chunks | SET(CHUNK_MISSING)
    :: else
    fi;
    r_awaiting = (r_rung == RUNG_GET -> 1 : BAD);
    r_before   = GOOD;
    flags      = (r_rung == RUNG_GET -> FLAG_GET : 0);
    if
    :: chunks != 0 -> put_s(AM_REPAIR, chunks, 0, flags)
    :: else
    fi
}

/* uci_repair_advance() */
inline r_climb()
{
    if
    :: r_rung == RUNG_NONE -> r_rung = RUNG_GET; r_attempts = 1; r_request(false)
    :: r_rung == RUNG_GET ->
#ifndef BUG_NO_NEXT_RUNG
        if
        :: GOOD == r_before -> r_rung = RUNG_COPY; r_attempts = 1
        :: else
        fi;
#endif
        r_request(false)
    :: r_rung == RUNG_COPY ->
        r_attempts = (GOOD == r_before -> r_attempts + 1 : 1);
        if
        :: r_attempts > COPY_ATTEMPTS -> r_fail()
        :: else -> r_request(false)
        fi
    fi
}

/* uci_descent_start(), uci_descent_ask() */
inline r_descend()
{
    r_descends = true;
    put_s(AM_TREE, 0, 0, FLAG_REPAIR)
}

/* uci_recv_op_ask_root() */
inline r_ask_root()
{
    r_has_root = false;
    r_roots++;
    if
    :: r_roots > ROOT_ATTEMPTS -> r_fail()
    :: else -> r_descend()
    fi
}

/* uci_recv_op_advance() */
inline r_advance()
{
    if
#ifndef BUG_END_WHILE_READ
    :: R_GETS || r_descends
#else
    :: r_descends
#endif
    :: else ->
        if
        :: GOOD < CHUNKS && r_awaiting > 0
        :: GOOD < CHUNKS && r_awaiting == 0 && BAD > 0 && GOOD + BAD == CHUNKS -> r_climb()
#ifndef BUG_NO_ROOT
        :: GOOD == CHUNKS && (!r_has_root || !ROOT_MATCHES) -> r_ask_root()
        :: GOOD == CHUNKS && r_has_root && ROOT_MATCHES -> r_deliver()
#else
        :: GOOD == CHUNKS -> r_deliver()
#endif
        :: else
        fi
    fi
}

/* uci_recv_op_compare() */
inline r_compare(i_, value_, expected_)
{
    if
    :: value_ == expected_ -> r_chunk[i_] = CHUNK_GOOD
    :: else -> assert(IS_HARMED); r_chunk[i_] = CHUNK_BAD
    fi;
    r_expected[i_] = expected_
}

/* uci_recv_op_chunk_landed() */
inline r_land(i_)
{
    r_arrived = true;
    if
#ifndef BUG_OVERWRITTEN
    :: r_chunk[i_] == CHUNK_GOOD && r_bytes[i_] != r_expected[i_] -> r_chunk[i_] = CHUNK_BAD /* repaired meanwhile, and overwritten */
#endif
    :: r_chunk[i_] == CHUNK_MISSING && !r_has_leaves -> r_chunk[i_] = CHUNK_LANDED; r_expected[i_] = r_bytes[i_]
    :: r_chunk[i_] == CHUNK_LANDED -> r_expected[i_] = r_bytes[i_]
    :: (r_chunk[i_] == CHUNK_MISSING && r_has_leaves) || r_chunk[i_] == CHUNK_BAD -> r_compare(i_, r_bytes[i_], r_expected[i_])
    :: else
    fi
}

/* uci_descent_on_leaves(), uci_recv_op_leaf(), uci_descent_end() */
inline r_hear_leaves()
{
    r_has_root   = true;
    r_has_leaves = true;
    r_descends   = false;
    k            = 0;
    do
    :: k < CHUNKS ->
        if
        :: r_chunk[k] == CHUNK_LANDED -> r_compare(k, r_expected[k], RIGHT)
        :: r_chunk[k] == CHUNK_GOOD && r_expected[k] != RIGHT -> r_chunk[k] = CHUNK_BAD; r_expected[k] = RIGHT
        :: else -> r_expected[k] = RIGHT
        fi;
        k++
    :: else -> break
    od;
    due = true
}

/* uci_stream_take() */
inline r_hear_data()
{
    if
    :: (flags & FLAG_REPAIR) && r_awaiting > 0 -> r_awaiting--
    :: else
    fi;
    if
    :: r_chunk[chunks] == CHUNK_GOOD
    :: else ->
        r_arrived = true;
        if
        :: flags & FLAG_LAST -> r_has_root = true
        :: else
        fi;
        k = chunks;
        if
        :: r_chunk[k] == CHUNK_LANDED -> r_compare(k, r_expected[k], (bytes == FORGED -> FORGED : RIGHT))
        :: else
        fi;
        if
        :: r_chunk[k] == CHUNK_GOOD
        :: else ->
            r_bytes[k] = bytes;
            if
#ifndef BUG_BELIEVED
            :: bytes == WRONG -> assert(IS_HARMED); r_chunk[k] = CHUNK_BAD; r_expected[k] = RIGHT
            :: else -> r_chunk[k] = CHUNK_GOOD; r_expected[k] = bytes
#else
            :: r_chunk[k] = CHUNK_GOOD; r_expected[k] = (bytes == WRONG -> RIGHT : bytes)
#endif
            fi
        fi;
        due = true
    fi
}

/* uci_repair_ask_again() */
inline r_ask_again()
{
    if
    :: R_GETS
#ifndef BUG_READ_FAILED
    :: !R_GETS && r_failed -> ends = true
#else
    :: !R_GETS && r_failed
#endif
    :: !R_GETS && !r_failed && r_arrived -> r_arrived = false; r_asked = 0
    :: !R_GETS && !r_failed && !r_arrived ->
        r_asked = (r_asked > PATIENCE -> r_asked : r_asked + 1);
        damaged = r_doubt;
        r_doubt = false;
        if
        :: r_descends -> put_s(AM_TREE, 0, 0, FLAG_REPAIR)
        :: !r_descends && (GOOD == CHUNKS || COUNT(CHUNK_LANDED) > 0) && COUNT(CHUNK_MISSING) == 0 -> r_descend()
        :: else ->
            if
            :: r_rung == RUNG_NONE -> r_reminded = true; k = r_slotless; put_s(AM_CTS, k, 0, FLAG_REPAIR)
            :: else
            fi;
            if
            :: r_rung != RUNG_NONE -> r_request(false)
            :: r_rung == RUNG_NONE && (damaged || r_asked > PATIENCE) -> r_request(true)
            :: else
            fi
        fi
    fi
}

inline r_hear()
{
    to_r ? type, chunks, bytes, flags;
    if
    :: type == 0 -> r_doubt = !r_over; type = chunks /* uci_blame() */
    :: type == AM_QUERY && r_over -> put_s(AM_FIN, 0, 0, FLAG_REPAIR)
#ifndef BUG_NO_ASK
    :: type == AM_QUERY && r_matched && !r_over -> r_ask_again()
#endif
    :: type == AM_DATA && !r_over -> r_hear_data()
    :: type == AM_SEGMENT && !r_over && !HAS(r_fetches, chunks) ->
        r_fetches = r_fetches | BIT(chunks);
        if
        :: flags & FLAG_LAST -> r_hear_leaves()
        :: else
        fi;
        type = 0 /* UCX reads it until it is here */
    :: type == AM_LEAVES && !r_over && ((flags & FLAG_LAST) || COUNT(CHUNK_MISSING) == 0) -> r_hear_leaves()
    :: type == AM_GRANT && !r_over && r_rung == RUNG_GET && !R_GETS ->
        r_has_root = true;
        r_awaiting = 0;
        r_gets     = (bytes -> (chunks & SET(CHUNK_BAD)) : 0);
        due = true
    :: type == AM_GONE && !r_over && !R_GETS ->
        assert((flags & FLAG_DAMAGED) || failed); /* what R lacks S still has */
        r_fail()
    :: else
    fi;
    if
    :: IS_HELD(type) && S_HEARS -> assert(!s_freed); s_unpin()
    :: else
    fi
}

/* In any order: which one is k */
inline one_of(set_)
{
    if
    :: HAS(set_, 0) -> k = 0
    :: HAS(set_, 1) -> k = 1
#if CHUNKS > 2
    :: HAS(set_, 2) -> k = 2
#endif
    fi
}

/* Bytes come from S's memory, which is there; or its end of it is gone, and this fails at any point, or what comes is not what was there */
inline r_read()
{
    assert(!r_over); /* nor does it go where the user's memory is his again */
    if
    :: S_HEARS ->
        assert(!s_freed);
        if
        :: r_bytes[k] = (s_copy_damaged -> WRONG : RIGHT)
        :: faults > 0 -> HARM; r_bytes[k] = WRONG
        fi
    :: !S_HEARS -> r_bytes[k] = RIGHT
    :: !S_HEARS -> harms++; r_bytes[k] = WRONG
    :: !S_HEARS -> torn = true
#if TORN
    :: !S_HEARS -> torn = true; harms++; r_bytes[k] = WRONG
#endif
    fi
}

/* One that has failed. What was right is compared once more: uci_recv_op_chunk_torn() */
inline r_torn()
{
    r_doubt = true;
#ifndef BUG_TORN_NOT_LOOKED_AT
    if
    :: r_chunk[k] == CHUNK_GOOD && r_bytes[k] != r_expected[k] -> r_chunk[k] = CHUNK_BAD
    :: else
    fi
#endif
}

/* uci_segment_done() */
inline r_fetched()
{
    r_read();
    r_fetches = r_fetches & ~BIT(k);
    if
    :: S_HEARS -> s_unpin()
    :: else
    fi;
    if
    :: torn -> r_torn()
    :: else -> r_land(k)
    fi;
    due = true
}

/* uci_repair_get_done() */
inline r_got()
{
    r_read();
    r_gets = r_gets & ~BIT(k);
    if
    :: torn -> r_torn()
    :: !torn && r_chunk[k] != CHUNK_BAD -> r_land(k)
    :: !torn && r_chunk[k] == CHUNK_BAD -> r_compare(k, r_bytes[k], RIGHT)
    fi;
    due = true
}

/* uci_direct_give_up() */
inline r_give_up_slots()
{
    assert(IS_HARMED);
    r_direct   = false;
    r_reads    = false;
    r_by_slots = false;
    r_holds    = false;
    r_slotless = true;
    r_doubt    = true;
    put_s(AM_CTS, 1, 0, 0)
}

/* uci_direct_take_chunk() */
inline r_take_chunk()
{
    k = r_taken;
    r_taken++;
    r_holds   = true;
    r_arrived = true;
    if
    :: r_taken == CHUNKS -> r_has_root = true
    :: else
    fi;
    if
    :: r_chunk[k] == CHUNK_GOOD
    :: else ->
        r_bytes[k]    = slot_data[r_slot];
        r_expected[k] = RIGHT;
        if
#ifndef BUG_BELIEVED
        :: r_bytes[k] == WRONG -> assert(IS_HARMED); r_chunk[k] = CHUNK_BAD
        :: else -> r_chunk[k] = CHUNK_GOOD
#else
        :: r_chunk[k] = CHUNK_GOOD
#endif
        fi
    fi;
    if
    :: r_taken == CHUNKS -> r_direct = false; due = true
    :: else
    fi
}

/* What a step has brought: uci_recv_op_advance(), and the end */
inline r_conclude()
{
    if
    :: due && !r_over && !ends -> r_advance()
    :: else
    fi;
    if
    :: ends -> r_end()
    :: else
    fi;
    due    = false;
    ends   = false;
    chunks = 0; bytes = 0; k = 0; flags = 0; type = 0; damaged = false; torn = false
}

proctype r()
{
    byte type, chunks, bytes, k;
    short flags;
    bool damaged, due, ends, torn;

    do
    :: atomic {
        if
        /* uci_recv_begin(): it is matched */
        :: !r_matched && ROOM_S ->
            r_matched = true;
            if
            :: PATH == 1 -> r_direct = true; r_by_slots = true
            :: PATH != 1 -> put_s(AM_CTS, 0, 0, 0)
            fi
        /* uci_direct_follow(), uci_direct_advance_recv(): of a slot the words are read first, then the data */
        :: r_direct && r_holds && slot_next[r_slot] != 0 ->
            slot_ack[r_slot] = ACK_OF(r_taken);
            r_holds          = false;
            r_slot           = slot_next[r_slot] - 1
        :: r_direct && !r_holds && r_slot >= WINDOW && ROOM_S -> r_give_up_slots()
        :: r_direct && !r_holds && r_slot < WINDOW && !r_reads && slot_mark[r_slot] == r_taken + 1 && ROOM_S ->
            if
            :: slot_check[r_slot] != r_taken + 1 -> r_give_up_slots()
            :: else -> r_reads = true
            fi
        :: r_reads && ROOM_S -> r_reads = false; r_take_chunk()
        :: nempty(to_r) && ROOM_S -> r_hear()
        :: r_fetches != 0 && ROOM_S -> one_of(r_fetches); r_fetched()
        :: r_gets != 0 && ROOM_S -> one_of(r_gets); r_got()
#ifndef BUG_NO_ASK
        :: (timeout || early > 0) && r_matched && !r_over && ROOM_S ->
            if
            :: early > 0 -> early--
            :: else
            fi;
            r_ask_again()
#endif
        /* uci_ep_abandon_ops(): what waits for a get ends when that has failed */
        :: (failed || s_dead) && !r_failed ->
            r_failed = true;
            if
#ifndef BUG_END_WHILE_READ
            :: r_matched && !r_over && !R_GETS -> ends = true
#else
            :: r_matched && !r_over -> ends = true
#endif
            :: else
            fi
        fi;
        r_conclude()
       }
#if DIES == 2
    :: atomic { dies > 0 -> dies--; r_dead = true; break }
#endif
    od
}

#if FAILS
active proctype network()
{
    if
    :: failed = true
    :: skip
    fi
}
#endif

init
{
    atomic {
        s_state  = (PATH == 1 -> SEND_DIRECT : SEND_DESCRIBED);
        s_leaves = (COPIED -> ALL : 0);
        run s();
        run r()
    }
}

/* On a wire that has done its worst, with slots that nobody writes to any more, the message arrives, or its end is known, on both sides that live */
ltl ends { <> IS_OVER }
