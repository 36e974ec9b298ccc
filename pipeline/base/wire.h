/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The wire format. All integers are in the byte order of the machine; peers of another byte order refuse
 * each other (the mark's magic reads wrong). Everything here is described, field by field, in docs/design.md, records in docs/sealing.md.
 *
 * A user's message travels as a frame, or begins with one:
 *
 *     +--------------------+---------------------------+
 *     | header (40 bytes)  | payload (header.length)   |
 *     +--------------------+---------------------------+
 *
 * The last bytes of the payload are the signature of the message's types, if the kind of the frame says so (signed.h).
 *
 * Frames to one worker are numbered, and delivered there in this order (link_send.h). Two carriers move them: a ring in shared
 * memory (mailbox.h), and active messages of UCX's, of an id of their own.
 *
 * Everything else travels as active messages of another id, each with the 48-byte header uci_am_hdr_t.
 *
 * Where UCI_SEAL asks for it, both are sealed: active messages are records then (below), and nothing else is.
 */
#ifndef UCI_WIRE_H_
#define UCI_WIRE_H_

#include <stddef.h>
#include <string.h>
#include "util/types.h"
#include "seal/seal.h"
#include "uci_signature.h"

#define UCI_PROTOCOL_VERSION 14

/** Our active messages. High enough to stay out of the way of MPIs (0, 1), low because UCX keeps an array. */
#define UCI_GREETING_AM_ID 1019 /**< greetings, by endpoints that were made by socket address */
#define UCI_FRAME_AM_ID    1020 /**< frames */
#define UCI_AM_ID          1021 /**< all else; between workers that seal: HELLO */
#define UCI_SEALED_AM_ID   1022 /**< records: frames and all else, sealed */

/* ------------------------------------------------------------------ mark */

/**
 * The mark goes in front of the worker's address, so that both sides know, before the first byte, that the
 * other one speaks UCI. Its first 10 bytes are a valid UCX address (version 1) of the same worker without any
 * transport: a process without UCI that is given it fails cleanly in ucp_ep_create ("unreachable") instead of
 * taking frames for user data.
 */
typedef struct uci_mark {
    uint8_t ucx_header; /**< 0x20: address version 1, flag "worker uid present" */
    uint8_t ucx_uid[8]; /**< the worker's uid */
    uint8_t ucx_end;    /**< 0xff: no more devices */
    uint8_t protocol; /**< UCI_PROTOCOL_VERSION; up to `host` all protocols have the same, so that who is refused can be named */
    uint8_t mode;       /**< uci_mode_t */
    uint32_t magic;     /**< UCI_MARK_MAGIC */
    uint32_t digests;   /**< bit set of digest ids that the peer can verify */
    uint32_t eager_max; /**< payload bytes of the largest frame it takes */
    int32_t rank;       /**< -1 if unknown */
    uint32_t pid;
    char host[64];    /**< zero-terminated; Linux has none that is longer */
    uint8_t seal;     /**< uci_seal_mode_t; all below but `address_length` and `check` is 0 if it is off */
    uint8_t cipher;   /**< uci_seal_cipher_t */
    uint8_t scope;    /**< uci_seal_scope_t */
    uint8_t zero;     /**< 0 */
    uint64_t machine; /**< which kernel, host and network: two workers with the same one share them; 0: not known */
    uint8_t random[UCI_SEAL_RANDOM]; /**< this worker's, for its keys */
    uint32_t address_length;         /**< bytes of UCX's address behind the mark */
    uint8_t mac[UCI_SEAL_MAC];       /**< of all of the above and that address: uci_seal_mark_auth() */
    uint32_t check;                  /**< low 32 bits of XXH3-64 over all of the above */
} __attribute__((packed)) uci_mark_t;

#define UCI_MARK_MAGIC      0x31494355u /* "UCI1" */
#define UCI_MARK_UCX_HEADER 0x20
#define UCI_MARK_UCX_END    0xff

/** Bytes of an address of UCX's: more than any has. */
#define UCI_WIRE_ADDRESS_MAX (64u << 10)

/* -------------------------------------------------------------- greeting */

#define UCI_GREETING_MAGIC   0x53494355u /* "UCIS" */
#define UCI_GREETING_VERSION 1

/** What two workers say to each other first by an endpoint that was made by socket address (conn/sock.h). */
typedef enum {
    UCI_GREETING_FIRST = 1, /**< server: my mark and address */
    UCI_GREETING_ANSWER,    /**< client: mine */
    UCI_GREETING_PASS,      /**< client: too late, what I send by this endpoint passes, not verified. No mark */
    UCI_GREETING_REFUSE,    /**< client: you are refused. No mark */
    UCI_GREETING_LAST
} uci_greeting_kind_t;

typedef struct uci_greeting {
    uint32_t magic;
    uint8_t version;
    uint8_t kind; /**< uci_greeting_kind_t */
    uint16_t zero;
    uint32_t stream; /**< FIRST: what the server calls the endpoint's stream, 30 bits; else 0 */
    uint32_t length; /**< bytes of mark and address behind */
    uint64_t check;  /**< XXH3-64 of what is behind, seeded with that of bytes 0 to 15 */
} uci_greeting_t;

_Static_assert(sizeof(uci_greeting_t) == 24, "wire format");

/* ----------------------------------------------------------------- frame */

typedef enum {
    UCI_FRAME_EAGER = 0xe1, /**< payload: the user's bytes */
    UCI_FRAME_SYNC  = 0xe2, /**< as EAGER; the sender completes on FIN (synchronous send) */
    UCI_FRAME_RNDV  = 0xe3  /**< payload: uci_rndv_desc_t; the sender completes on FIN */
} uci_frame_kind_t;

/** Instead of 0xe0 in a kind: behind the payload, within `length` and `value`, follows the signature of the message's types. */
#define UCI_FRAME_SIGNED       0xf0 /**< uint64_t, uci_signature_word() */
#define UCI_FRAME_SIGNED_MIXED 0xd0 /**< uci_trailer_t, then that */

/**
 * The same of a program's own active message, EAGER or RNDV; its tag is a uci_user_am_what_t. Payload of EAGER: the user's bytes, `pad`
 * bytes that are 0, the user's header. A rendezvous is two frames: EAGER with the header alone, then RNDV.
 */
#define UCI_FRAME_USER_AM 0xc0

/** What the types of a message are, if a word can't say. */
typedef struct uci_trailer {
    uint64_t hash;
    uint64_t unit; /**< elements of one of `text` */
    char text[UCI_SIGNATURE_TEXT_MAX];
} uci_trailer_t;

enum {
    UCI_USER_AM_RNDV  = 1 << 0, /**< the next frame describes its data */
    UCI_USER_AM_EAGER = 1 << 1, /**< with RNDV: its handler gets all of it at once */
    UCI_USER_AM_REPLY = 1 << 2, /**< its handler gets an endpoint to answer by */
    UCI_USER_AM_ASKED = 1 << 3, /**< with RNDV: its program has said that it is one */
    UCI_USER_AM_EMPTY =
            1 << 4, /**< with RNDV: there are no data, the byte that is described is none of the program's */
    UCI_USER_AM_OWN   = 1 << 5, /**< its id is a uci_own_am_t, and no number of the program's */
    UCI_USER_AM_FLAGS = (1 << 6) - 1
};

/** What UCI itself sends in active messages of that form: the program's other ways to move bytes. */
typedef enum {
    UCI_OWN_AM_STREAM,    /**< bytes of a stream */
    UCI_OWN_AM_RMA,       /**< an operation on the receiver's memory */
    UCI_OWN_AM_RMA_REPLY, /**< what such an operation has fetched */
    UCI_OWN_AM_RMA_DONE,  /**< how many of them have been executed */
    UCI_OWN_AM_LAST
} uci_own_am_t;

/** Header of UCI_OWN_AM_STREAM. */
typedef struct uci_user_stream_header {
    uint32_t number; /**< of the sender's endpoint, from 1 on: the receiver's of the same number gets it */
    uint32_t piece;  /**< of this stream, from 0 on */
} uci_user_stream_header_t;

/** What is done to memory. */
typedef enum {
    UCI_RMA_PUT,    /**< the data are stored there; of none nothing is done, to no region: only its number counts */
    UCI_RMA_GET,    /**< what lies there is fetched */
    UCI_RMA_ATOMIC, /**< the data are operands: one, of CSWAP two */
    UCI_RMA_KIND_LAST
} uci_rma_kind_t;

typedef enum {
    UCI_RMA_ADD,
    UCI_RMA_SWAP,
    UCI_RMA_CSWAP,
    UCI_RMA_AND,
    UCI_RMA_OR,
    UCI_RMA_XOR,
    UCI_RMA_OP_LAST
} uci_rma_op_t;

/** Header of UCI_OWN_AM_RMA. */
typedef struct uci_rma_header {
    uint64_t number;  /**< of this origin's operations on this target, from 0 on */
    uint64_t owner;   /**< of the region: a context */
    uint64_t address; /**< in the target */
    uint64_t length;  /**< bytes there */
    uint32_t region;  /**< of the owner's */
    uint8_t kind;     /**< uci_rma_kind_t */
    uint8_t op;       /**< uci_rma_op_t; 0 */
    uint8_t fetch;    /**< 1: the origin is told what was there */
    uint8_t fence;    /**< 1: it comes behind a fence */
} uci_rma_header_t;

/** Header of UCI_OWN_AM_RMA_REPLY. */
typedef struct uci_rma_reply {
    uint64_t number; /**< of the operation */
    int32_t status;  /**< ucs_status_t: an error has no data */
    uint32_t offset; /**< of these bytes among those that are fetched: they may come in pieces, in order */
} uci_rma_reply_t;

/** Header of UCI_OWN_AM_RMA_DONE. */
typedef struct uci_rma_done {
    uint64_t executed; /**< operations, refused ones among them */
    uint64_t
            failed; /**< number of the last one that was refused, and is answered in no other way, plus 1; 0: none since the last time */
    uint64_t owner; /**< of the region that it had a key of */
    uint32_t region;
    int32_t status; /**< ucs_status_t, of that */
} uci_rma_done_t;

#define UCI_RMA_KEY_MAGIC 0x59454b2d49435543ul

/** Behind UCX's packed key of a region: who has no UCI does not see it, since UCX reads its own part. */
typedef struct uci_rma_packed {
    uint64_t magic;   /**< UCI_RMA_KEY_MAGIC */
    uint64_t owner;   /**< the context, a random number */
    uint64_t machine; /**< of its mark; 0: not known */
    uint64_t base;    /**< address of the first byte there */
    uint64_t length;  /**< bytes */
    uint32_t region;  /**< number of the region, never used again by this owner */
    uint32_t pid;
    uint64_t place; /**< bytes of UCX's in front of this */
    uint64_t check; /**< XXH3-64 over what is before it */
} uci_rma_packed_t;

typedef struct uci_user_am_what {
    uint16_t id;
    uint16_t header_length; /**< bytes */
    uint8_t pad; /**< bytes between data and header, so that this begins at a multiple of UCI_USER_AM_ALIGN */
    uint8_t flags;
    uint16_t name; /**< REPLY: of the endpoint that it is sent by, of uci_ep_name(); else 0 */
} uci_user_am_what_t;

/** Numbers of endpoints that are made by socket address: none of those by worker address is as large. The second bit tells whose count it is. */
#define UCI_EP_SOCK       0x80000000u
#define UCI_EP_SOCK_LOWER 0x40000000u
#define UCI_EP_SOCK_MASK  0x3fffffffu

/** @return the number of the @a count-th endpoint that a worker of uid @a server has accepted, to one of uid @a client. Of an endpoint to oneself both
 *  ends are one peer's: none. */
UCI_INLINE uint32_t uci_ep_accepted(uint32_t count, uint64_t server, uint64_t client)
{
    return (server == client) ? 0
                              : UCI_EP_SOCK | ((server < client) ? UCI_EP_SOCK_LOWER : 0) | (count & UCI_EP_SOCK_MASK);
}

/** @return what a frame carries of the number that both sides give an endpoint; 0: it has none. Of endpoints between two workers each 16,383rd
 *  has the same. */
UCI_INLINE uint16_t uci_ep_name(uint32_t number)
{
    return (number == 0) ? 0 : (uint16_t)(((number >> 30) << 14) | ((number & UCI_EP_SOCK_MASK) % 0x3fffu + 1));
}

#define UCI_USER_AM_ALIGN 8u

/** @return what is in the place of a tag. */
UCI_INLINE uci_user_am_what_t uci_user_am_what(uint64_t tag)
{
    uci_user_am_what_t what;

    memcpy(&what, &tag, sizeof(what));
    return what;
}

/** @return the name of what UCI itself has sent in an active message; NULL: it is the program's. */
const char *uci_user_am_own_name(uint64_t tag);

/** @return kind of such a frame, of a uci_frame_kind_t. */
UCI_INLINE unsigned uci_frame_user_am_kind(unsigned kind)
{
    return (kind & 0x0f) | UCI_FRAME_USER_AM;
}

UCI_INLINE bool uci_frame_is_user_am(unsigned kind)
{
    return (kind & 0xf0) == UCI_FRAME_USER_AM;
}

UCI_INLINE bool uci_frame_is_signed(unsigned kind)
{
    return (kind & UCI_FRAME_SIGNED_MIXED) == UCI_FRAME_SIGNED_MIXED; /* which both have, and no other */
}

/** @return bytes of the signature that frames of this kind have. */
UCI_INLINE uint32_t uci_frame_trailer(unsigned kind)
{
    return !uci_frame_is_signed(kind)                  ? 0
           : ((kind & 0xf0) == UCI_FRAME_SIGNED_MIXED) ? sizeof(uci_trailer_t) + sizeof(uint64_t)
                                                       : sizeof(uint64_t);
}

/** @return a uci_frame_kind_t: the kind without its signature, and of whatever it is. */
UCI_INLINE unsigned uci_frame_kind(unsigned kind)
{
    return (kind & 0x0f) | 0xe0;
}

/**
 * `check` binds the header, and with `value` the payload, to the pair of workers or to a place in a mailbox. So a header
 * that passes is this sender's and of this number, whatever becomes of the payload. 24 bytes of payload share its cache line.
 */
typedef struct uci_frame_hdr {
    uint64_t mark;   /**< active message: UCX uid of the sending worker; mailbox: of the place (box.h), stored last */
    uint32_t check;  /**< low 32 bits of XXH3-64 over the 28 bytes behind it, see uci_frame_check() */
    uint8_t kind;    /**< uci_frame_kind_t, signed or not */
    uint8_t digest;  /**< uci_digest_id_t of `value` */
    uint16_t length; /**< bytes of payload */
    uint32_t seq;    /**< number of the frame from this sender to this receiver, low 32 bits */
    uint32_t ack;    /**< every frame below this number, of the other direction, has been verified */
    uint64_t tag;    /**< the user's */
    uint64_t value;  /**< digest of the payload */
} uci_frame_hdr_t;

#define UCI_FRAME_MAX (32u << 10) /**< bytes of payload: the largest that UCI_EAGER_MAX may be */

#define UCI_SLOT_NONE UINT16_MAX

typedef struct uci_rndv_desc {
    uint64_t length;     /**< of the user's message */
    uint32_t chunk_size; /**< all chunks have this size, but the last */
    uint16_t arity;      /**< of the Merkle tree */
    uint16_t slot;       /**< of the sender's pool, in which chunk 0 comes; UCI_SLOT_NONE: say CTS */
} uci_rndv_desc_t;

/* ------------------------------------------------------- active messages */

typedef enum {
    UCI_AM_HELLO =
            1,  /**< sender's address: mark, then the UCX address; value: times that it has come back after a BYE, as of
                           LEAVE and BYE; one that is not 0 is answered by ACK, which repeats it; op: 1 if its endpoints handle errors; index, extra: see CLOSED */
    UCI_AM_ACK, /**< uint64_t: first missing frame, upto, then pairs (first, last) of missing ranges; REPAIR: send these
                           again; LAST: and say what has been sent (SENT) */
    UCI_AM_CTS, /**< receiver -> sender: matched, send the chunks; op = receiver's slot; index 1: not through slots; GET */
    UCI_AM_DATA,   /**< sender -> receiver: chunk `index`; op = receiver's slot */
    UCI_AM_FIN,    /**< receiver -> sender: verified (or truncated): the send may complete */
    UCI_AM_REPAIR, /**< receiver -> sender: uint32_t[]: chunks wanted again; GET: by RDMA; FRAME: that frame */
    UCI_AM_GRANT,  /**< sender -> receiver: where to get them: uci_am_grant_t, entries, rkey */
    UCI_AM_GONE,   /**< sender -> receiver: no copy left, cannot repair; FRAME: what there was of it */
    UCI_AM_QUERY, /**< sender -> receiver: where are you with this message? Answered by CTS, REPAIR or FIN; value: its whole number; LAST:
                     with all of them? Answered by MISSING */
    UCI_AM_TREE,   /**< receiver -> sender: root and children of nodes uint32_t[] of level `index` wanted */
    UCI_AM_LEAVES, /**< sender -> receiver: uint64_t[]: all leaves; extra = root; LAST: unasked, of segments */
    UCI_AM_SENT, /**< frames below `value` have been sent, and the position in the box whose key ends in `index` is `extra`: where are you? */
    UCI_AM_BOX,  /**< a box of this side's mailbox: uci_am_box_t, rkey */
    UCI_AM_LEAVE, /**< the user of this side closes its endpoint: what have you not finished? A report; op: number of the question */
    UCI_AM_MISSING, /**< answer, a report; op: as LEAVE */
    UCI_AM_BYE, /**< nothing more will come from this side; a report of not too many ranges; extra: places of UCX's endpoints that are closed, from 0 on */
    UCI_AM_POOL,    /**< sender -> receiver: where our bounce slots are: uci_am_pool_t, rkey */
    UCI_AM_MAPPED,  /**< answer: we can read and write them */
    UCI_AM_SLOT,    /**< answer to CTS: chunk 0 comes in slot `index` */
    UCI_AM_SEGMENT, /**< sender -> receiver: chunks from `index` on, by UCX's rendezvous: fetch them; LAST: as LEAVES */
    UCI_AM_NODES,   /**< answer to TREE: uint64_t[]: for each node its index, then its children; extra = root */
    UCI_AM_CLOSED,  /**< of our endpoints: `index` is how many UCX has made pairs of, extra: which are open (pair.h) */
    UCI_AM_LAST
} uci_am_type_t;

enum {
    UCI_AM_FLAG_LAST =
            1 << 0, /**< DATA: last chunk in order; extra = root, else border. LEAVES, SEGMENT: all leaves, unasked */
    UCI_AM_FLAG_REPAIR = 1 << 1, /**< DATA: answer to REPAIR */
    UCI_AM_FLAG_HANDOVER =
            1 << 2, /**< DATA: unasked, its send is complete, or its sender closes; op: high half of `seq` */
    UCI_AM_FLAG_GET       = 1 << 3, /**< REPAIR: by RDMA. CTS: rather than through slots */
    UCI_AM_FLAG_CHANGED   = 1 << 4, /**< DATA: the source no longer has the digest first sent */
    UCI_AM_FLAG_TRUNCATED = 1 << 5, /**< FIN: the receiver's buffer was too small */
    UCI_AM_FLAG_FRAME     = 1 << 6, /**< REPAIR, GONE: about a frame, not about chunks of its message */
    UCI_AM_FLAG_AHEAD     = 1 << 7, /**< GRANT: of the whole message, before its first chunk, in case it is needed */
    UCI_AM_FLAG_BOUNCE =
            1
            << 8, /**< SEGMENT: of the bounce path: digests are of its chunks; value = uci_cut_t; with LAST: extra = root */
    UCI_AM_FLAG_DAMAGED  = 1 << 9, /**< GONE: there is a copy, but it is damaged as well */
    UCI_AM_FLAG_GIVEN_UP = 1 << 10 /**< GONE: its send was: its endpoint has been closed by force, or has failed */
};

typedef struct uci_am_hdr {
    uint32_t
            check; /**< low 32 bits of XXH3-64 over the rest of the header, and the payload unless DATA; SEGMENT: leaves */
    uint8_t type;   /**< uci_am_type_t */
    uint8_t digest; /**< DATA: uci_digest_id_t of `value` */
    uint16_t flags;
    uint64_t uid;    /**< UCX uid of the worker that sends this */
    uint32_t seq;    /**< the message this is about, low 32 bits */
    uint32_t op;     /**< slot of the receiving side's operation */
    uint32_t index;  /**< DATA: chunk; SLOT: slot; TREE, NODES: level */
    uint32_t length; /**< DATA: bytes of the chunk; SEGMENT: bytes to fetch; others: bytes of payload */
    uint64_t value;  /**< DATA: digest of the chunk; SEGMENT with BOUNCE: its cut */
    uint64_t extra;  /**< see the type and flags */
} uci_am_hdr_t;

#define UCI_REPAIR_BATCH \
    4096u /**< chunks in one REPAIR, ascending, at most: more are asked for when these are repaired */

typedef struct uci_am_grant {
    uint32_t count;       /**< of entries */
    uint32_t rkey_length; /**< bytes after the entries */
    uint64_t root;        /**< of the tree as the source is now */
} uci_am_grant_t;

typedef struct uci_am_grant_entry {
    uint64_t address; /**< in the sender's memory */
    uint64_t value;   /**< digest of the chunk as the source is now */
    uint32_t index;
    uint32_t changed; /**< not 0: the source changed since it was first sent */
} uci_am_grant_entry_t;

typedef struct uci_am_pool {
    uint64_t address; /**< in the sender's memory */
    uint32_t slot_size;
    uint32_t slot_count;
} uci_am_pool_t;

typedef struct uci_am_box {
    uint64_t address;  /**< of the mailbox, in the memory of this side */
    uint64_t key;      /**< of the box, see uci_box_tx_init() */
    uint32_t size;     /**< of the mailbox, in bytes */
    uint32_t offset;   /**< of the box in it */
    uint32_t granules; /**< of the box's ring */
    uint32_t bell;     /**< of the box, in the mailbox's first line */
} uci_am_box_t;

/** Bytes of chunk @a index */
UCI_INLINE uint32_t uci_chunk_length(uint64_t length, uint32_t chunk_size, uint32_t index)
{
    uint64_t offset = (uint64_t)index * chunk_size;

    return (uint32_t)uci_min((uint64_t)chunk_size, length - offset);
}

/* --------------------------------------------------------------- records */

/**
 * Between workers that seal, each active message is a record (seal.h): a header in clear, sealed bytes, a tag. The sealed bytes begin
 * with a word that says what they are:
 *
 *     FRAME    word | frame
 *     MESSAGE  word | uci_am_hdr_t | payload
 *     HELLO    word | uci_am_hdr_t, whose payload lies in clear before the record: mark and address, which both of its checks cover
 *     OFFER    word | uci_am_hdr_t of SEGMENT | its payload: a record that is the header of UCX's rendezvous; the data, unless the two
 *              workers share a node that is in scope in clear, are one record for each chunk
 *     CHUNK    word | bytes of a chunk; its counter is known from the offer, so that it needs no window
 *
 * Records have the counters of their worker. Those for one peer follow each other, so that its window counts records for itself: the upper
 * 24 bits are a number that the worker gives to each pair it makes keys for, the lower 40 count records. When these are used up, the
 * pair has a new number.
 */
typedef enum {
    UCI_SEALED_FRAME   = 0xf1,
    UCI_SEALED_MESSAGE = 0xf2,
    UCI_SEALED_HELLO   = 0xf3,
    UCI_SEALED_OFFER   = 0xf4,
    UCI_SEALED_CHUNK   = 0xf5
} uci_sealed_kind_t;

/** Bytes that a record is longer than what it brings. */
#define UCI_SEALED_OVERHEAD (UCI_SEAL_OVERHEAD + sizeof(uint64_t))

/** Of these, those in front. */
#define UCI_SEALED_FRONT (sizeof(uci_seal_hdr_t) + sizeof(uint64_t))

/** By how much frames and chunks to a peer that seals are shorter, so that they are still one fragment of UCX's. A whole number of cache lines. */
#define UCI_SEALED_ROOM 64u

#define UCI_SEALED_PAIR_SHIFT 40 /**< bits of a counter that count records */

_Static_assert(UCI_SEALED_OVERHEAD <= UCI_SEALED_ROOM, "room for a record");
_Static_assert(sizeof(uci_mark_t) == 164, "mark");
_Static_assert(sizeof(uci_frame_hdr_t) == 40, "frame header");
_Static_assert(sizeof(uci_user_am_what_t) == sizeof(uint64_t), "in the place of a tag");
_Static_assert(sizeof(uci_trailer_t) == 80, "trailer");
_Static_assert(sizeof(uci_am_hdr_t) == 48, "active message header");

/** What TREE and NODES hold at most, headers aside (one node's children are never split) */
#define UCI_DESCENT_BYTES 4096

#endif
