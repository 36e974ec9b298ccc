/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * UCI_EVENTS: one JSON object a line for each message that did not arrive as it was sent. docs/records.md describes each field; what is
 * changed or taken away there raises UCI_RECORD_SCHEMA, what is added does not.
 */
#ifndef UCI_RECORD_H_
#define UCI_RECORD_H_

#include "base/damage.h"
#include "util/json_writer.h"
#include "util/quiet.h"
#include "base/peer.h"
#include "transfer/recv_op_part.h"
#include "tune/rdma.h"
#include "base/transports.h"
#include "base/verdict.h"

#define UCI_RECORD_SCHEMA 2

/** Types that do not match: what is told of it. */
typedef struct uci_types_differ {
    uci_peer_t *peer; /**< who has sent it; NULL: a collective, `sent` and `posted` are what two ranks call */
    uint64_t seq;
    ucp_tag_t tag;
    uint64_t length;
    const char *sent;   /**< "4 x MPI_INT" */
    const char *posted; /**< "2 x MPI_DOUBLE" */
    const char *call;   /**< "MPI_Recv" */
    const char *group;  /**< "MPI_COMM_WORLD", NULL: as `tag` says */
} uci_types_differ_t;

/** What a record, and what is printed, is about: a message by rendezvous, or a frame. */
typedef struct uci_record {
    const char *verdict; /**< "repaired", "not repaired", "source changed", "types differ" */
    uci_cause_t cause;
    char evidence[512];
    const char *reason; /**< why it is not repaired, or "" */
    bool by_sender;     /**< this process has sent it; else it receives it */
    uci_peer_t *peer;   /**< the other side; NULL: not known */
    ucp_tag_t tag;
    bool user_am; /**< an active message of the program's: `tag` is a uci_user_am_what_t */
    uint64_t seq;
    const char *kind;
    uint64_t length;
    uint32_t chunk_size;
    uint32_t chunks;
    uint32_t bad;
    uci_way_t way;
    const uci_damages_t *damages; /**< of it; or NULL */
    const uci_digest_ops_t *digest;
    uint64_t expected; /**< digest of the chunk that is damaged */
    uci_rung_t rung;
    uci_rung_t healed_by;
    unsigned gets_wrong;
    unsigned attempts;
    uint64_t start_time;
    const uci_rdma_sample_t *ports;   /**< as they are now, or NULL */
    const uci_types_differ_t *differ; /**< nothing is damaged, types do not match; or NULL */
} uci_record_t;

/** Is there a file for records? */
bool uci_record_is_on(void);

/** A worker is created: say what is wrong with UCI_EVENTS, if anything is, before it is needed. Only the first call counts. */
void uci_record_init(void);

/** Write it, if there is UCI_EVENTS: one line, one write, so that several processes may share the file. What can't be written is counted,
 *  and said: of the first, and how many at the end. */
void uci_record_write(const uci_record_t *record);

/** For lines of another kind: a stream for one, NULL: it is lost (counted, said). To be given to uci_record_close(), with @a quiet_p. */
FILE *uci_record_open(uci_quiet_t *quiet_p);
void uci_record_close(FILE *stream, const uci_quiet_t *quiet);

/** The members "tag" and "mpi". */
void uci_record_write_tag(uci_json_t *json, ucp_tag_t tag);

/** "get", "copy", "none" */
const char *uci_record_rung(uci_rung_t rung);

/** @return microseconds since its damage was seen, 0 if that is not known. */
uint64_t uci_record_microseconds(const uci_record_t *record);

#endif
