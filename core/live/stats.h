/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters of one process, written as one JSON object when it exits (UCI_STATS=FILE) or as a summary for
 * people on stderr (UCI_STATS=-). While it runs they are in its live file (UCI_LIVE; live.h), where there is one.
 */
#ifndef UCI_STATS_H_
#define UCI_STATS_H_

#include <stdio.h>
#include "util/list.h"
#include "util/types.h"

/** The counters: name in JSON, text in the summary. Order is the order of printing. */
#define UCI_STATS_COUNTERS(_X) \
    _X(messages_sent, "messages sent") \
    _X(messages_received, "messages received") \
    _X(bytes_sent, "bytes sent") \
    _X(bytes_received, "bytes received") \
    _X(eager_messages, "sent eager") \
    _X(rendezvous_messages, "sent by rendezvous") \
    _X(direct_messages, "of these, through shared memory slots") \
    _X(far_chunks, "chunks put there around the caches") \
    _X(get_messages, "of these, fetched by the receiver") \
    _X(bounce_messages, "of these, through registered bounce buffers") \
    _X(rendezvous_bytes, "bytes sent by rendezvous") \
    _X(direct_bytes, "of these, through shared memory slots") \
    _X(get_bytes, "of these, fetched by the receiver") \
    _X(bounce_bytes, "of these, through registered bounce buffers") \
    _X(buffered_messages, "rendezvous completed from a copy") \
    _X(staged_messages, "sent from or received into a GPU's memory") \
    _X(user_am_sent, "active messages sent") \
    _X(user_am_received, "active messages received") \
    _X(stream_sent, "stream sends") \
    _X(put_sent, "puts by message") \
    _X(get_sent, "gets by message") \
    _X(atomic_sent, "atomic operations by message") \
    _X(rma_memory, "one-sided operations in memory that both reach") \
    _X(passthrough_messages, "passed through, not verified") \
    _X(passthrough_am, "active messages that passed through") \
    _X(passthrough_put, "puts that passed through") \
    _X(passthrough_get, "gets that passed through") \
    _X(passthrough_atomic, "atomic operations that passed through") \
    _X(passthrough_stream, "stream sends that passed through") \
    _X(passthrough_bytes, "bytes of all that passed through") \
    _X(unverified_connections, "connections that are not verified") \
    _X(chunks_verified, "chunks verified") \
    _X(mismatched_chunks, "chunks mismatched") \
    _X(repaired_chunks, "chunks repaired") \
    _X(unrepaired_chunks, "chunks not repaired") \
    _X(mismatched_headers, "frame headers damaged") \
    _X(frames_resent, "frames sent again") \
    _X(frames_repeated, "frames that came once more") \
    _X(mismatched_control, "control messages damaged (resent)") \
    _X(refused_messages, "messages refused (lies of a peer)") \
    _X(sealed_records, "records sealed") \
    _X(sealed_rejected, "records rejected (not authentic, or replayed)") \
    _X(mismatched_roots, "tree roots mismatched") \
    _X(tree_nodes, "tree nodes compared to find chunks") \
    _X(tree_bytes, "bytes for that") \
    _X(source_changed, "sources changed in flight") \
    _X(repaired_by_get, "chunks repaired by RDMA get") \
    _X(repaired_by_copy, "chunks repaired by active message") \
    _X(mismatched_gets, "chunks damaged again by RDMA get") \
    _X(retransmitted_bytes, "bytes retransmitted") \
    _X(log_dropped, "log copies dropped (detect only)") \
    _X(copies_damaged, "damaged copies that were to repair") \
    _X(sources_checked, "sends digested again at completion") \
    _X(source_changed_late, "chunks changed after they were read") \
    _X(signatures_compared, "types compared") \
    _X(signatures_differ, "of these, that do not match") \
    _X(signatures_missing, "received from a peer that tells no types") \
    _X(allreduces, "all-reduces by node") \
    _X(allreduce_damaged, "damaged chunks of these in shared memory") \
    _X(events_lost, "events that could not be written") \
    _X(acks_sent, "acknowledgements sent") \
    _X(control_sent, "control messages sent") \
    _X(faults_injected, "faults injected") \
    _X(faults_unseen, "of these, in what nobody read (again)")

typedef struct uci_stats {
#define UCI_STATS_FIELD(_name, _text) uint64_t _name;
    UCI_STATS_COUNTERS(UCI_STATS_FIELD)
#undef UCI_STATS_FIELD
} uci_stats_t;

/** Counters of one worker. What is counted in a worker is protected as the worker is: by its lock or its only thread. */
typedef struct uci_stats_block {
    uci_list_t link;
    uci_stats_t *counters; /**< in the live file, or own */
    uint64_t *live;        /**< block of the live file; NULL: none */
    uci_stats_t own;
} uci_stats_block_t;

/** What was counted outside of all workers, and by workers that are gone, as long as there is no live file. faults_injected is
 *  taken from uci_fault_count() whenever the counters are written. */
extern uci_stats_t uci_stats;

/** The same with or without a live file: &uci_stats, or the file's first block. */
extern uci_stats_t *uci_stats_outside;

/** Where this thread counts: in the worker that it has entered last. */
extern __thread uci_stats_t *uci_stats_here;

/** Count in a live file from now on. @param where  UCI_LIVE. Nothing changes if there can be none, which has been logged. */
void uci_stats_open_live(const char *where);

/** Take part in what is written. What a block of the live file has from workers before stays in it. @param uid  of the worker,
 *  not 0. Thread safe. */
void uci_stats_join(uci_stats_block_t *block, uint64_t uid);

/** The worker goes: its counters stay. Thread safe. */
void uci_stats_leave(uci_stats_block_t *block);

/** All counters become zero, those of workers too: this process is a fork of one that counted. It has no live file. */
void uci_stats_reset(void);

#define UCI_STATS_ADD(_name, _value) (uci_stats_here->_name += (_value))
#define UCI_STATS_INC(_name)         UCI_STATS_ADD(_name, 1)

/** Count outside of all workers: any thread, at any time. @return what it was before. */
#define UCI_STATS_ADD_OUTSIDE(_name, _value) __atomic_fetch_add(&uci_stats_outside->_name, _value, __ATOMIC_RELAXED)

/** Count one operation that passes, not verified. @param _add  one of the above. @param _way  behind "passthrough_". */
#define UCI_STATS_PASSED(_add, _way, _bytes) (_add(passthrough_##_way, 1), _add(passthrough_bytes, _bytes))

/** What the JSON says beside the counters. Strings must stay valid. Thread safe: threads make workers at the same time. */
void uci_stats_set_info(const char *digest, const char *mode, const char *ucx_version);

/**
 * Write to where @a destination says: "" nowhere, "-" summary on stderr, else JSON into that file, with %h
 * replaced by the host name, %p by the pid, %r by the rank ("x" if unknown), %% by %. A failure is logged.
 *
 * May be called again, for instance at abort and at exit: a file is replaced as a whole, so that a reader sees
 * the old or the new one; a summary is printed again only if a counter has changed since.
 */
void uci_stats_report(const char *destination);

/**
 * Would several ranks of this job write to the same file, so that only the last one's statistics are left? As far as the launcher
 * tells how many there are.
 * @param destination  as of uci_stats_report().
 */
bool uci_stats_is_shared(const char *destination);

#endif
