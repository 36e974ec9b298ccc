/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What uci_top knows: the processes whose live files lie in some folders, by job, with rates since the look before.
 */
#ifndef UCI_TOP_JOBS_H_
#define UCI_TOP_JOBS_H_

#include "live/live_file.h"

#define UCI_TOP_WORKERS 512u /* of a process that are looked at */

/** Sums of counters that every view shows. */
typedef enum {
    UCI_TOP_SENT, /**< messages */
    UCI_TOP_RECEIVED,
    UCI_TOP_VERIFIED, /**< bytes of messages that have been received */
    UCI_TOP_DAMAGED,  /**< chunks, frames, control messages and roots */
    UCI_TOP_PARTS,    /**< of these, chunks, the program's own changes among them */
    UCI_TOP_REPAIRED, /**< chunks */
    UCI_TOP_LOST,     /**< chunks that could not be repaired */
    UCI_TOP_CHANGED,  /**< chunks that the program changed while they were sent, and that arrived so */
    UCI_TOP_NOTICED,  /**< those that their senders have noticed */
    UCI_TOP_PASSED,   /**< bytes that went to UCX, not verified */
    UCI_TOP_ASIDE,    /**< streams and one-sided operations, verified */
    UCI_TOP_REFUSED,  /**< messages that no UCI sends */
    UCI_TOP_TYPES,    /**< messages and collectives whose types do not match */
    UCI_TOP_SUMS
} uci_top_sum_t;

/** What is to be said of a job: the levels of tools/jobreport/levels.py that a host can tell, the worst first. */
typedef enum {
    UCI_TOP_LEVEL_LOST,
    UCI_TOP_LEVEL_REPAIRED,
    UCI_TOP_LEVEL_SOURCE,
    UCI_TOP_LEVEL_TYPES,
    UCI_TOP_LEVEL_FAILED,  /**< a process was killed, or ended by UCI */
    UCI_TOP_LEVEL_UNKNOWN, /**< nothing was verified */
    UCI_TOP_LEVEL_PARTLY,
    UCI_TOP_LEVEL_CLEAN
} uci_top_level_t;

/** Names in JSON, and titles for people. */
extern const char *const uci_top_level_names[];
extern const char *const uci_top_level_titles[];

/** Names in JSON, by value. */
extern const char *const uci_top_sum_names[];

typedef struct uci_top_process {
    char *path;
    uci_live_file_t file;
    uint64_t sums[UCI_TOP_SUMS];
    double seconds;     /**< that the rates are of: since the look before, or since it began */
    double messages;    /**< sent and received, in a second */
    double bytes;       /**< verified, in a second */
    uint64_t log_bytes; /**< log and copies of all workers */
    uint64_t log_limit;
    uci_live_wait_t wait; /**< what it has waited for longest; of kind NONE: nothing */
    uint64_t looked;      /**< when one of its workers said so last, in ns since the epoch; 0: never */
} uci_top_process_t;

typedef struct uci_top_job {
    uci_top_process_t **processes; /**< those with damage first, then by rank */
    unsigned count;
    unsigned fates[UCI_LIVE_FATES];
    uint64_t sums[UCI_TOP_SUMS];
    double messages, bytes;
} uci_top_job_t;

typedef struct uci_top_skipped {
    char *path;
    char *reason;
} uci_top_skipped_t;

/** One look. */
typedef struct uci_top_look {
    uint64_t time; /**< ns since the epoch */
    uci_top_process_t *processes;
    unsigned count;
    uci_top_job_t *jobs; /**< those that run first, of them those with damage, then the youngest */
    unsigned jobs_count;
    uci_top_process_t **order; /**< what the jobs point into */
    uci_top_skipped_t *skipped;
    unsigned skipped_count;
    unsigned hidden; /**< processes that are not in the scope */
} uci_top_look_t;

#define UCI_TOP_ANYBODY (-1l)

/** What to look at. */
typedef struct uci_top_scope {
    char *const *folders; /**< none: those of UCI_LIVE=auto on this host, the user's own, of root all of them */
    unsigned count;
    long uid;        /**< whose processes, or UCI_TOP_ANYBODY */
    const char *job; /**< "slurm:77", or "77"; NULL: any */
} uci_top_scope_t;

/**
 * Look at what is in @a scope.
 * @param before  the look before, or NULL: rates are means since the processes began.
 * @return UCI_OK, or UCI_ERR_IO (said on stderr): a folder that was asked for can't be read.
 */
uci_status_t uci_top_look(const uci_top_scope_t *scope, const uci_top_look_t *before, uci_top_look_t *look_p);

void uci_top_look_cleanup(uci_top_look_t *look);

/** Name of a job: "slurm:77", or "none" for processes that know of no job. */
const char *uci_top_job_name(const uci_top_job_t *job);

/** The verdict on what its processes have counted up to now. */
uci_top_level_t uci_top_job_level(const uci_top_job_t *job);

/** Chunks that its program has changed: senders notice all, receivers those that came so. */
uint64_t uci_top_job_changed(const uci_top_job_t *job);

/** Its ranks as the launcher has counted them; 0: not known. */
unsigned uci_top_job_size(const uci_top_job_t *job);

/** @return for how many seconds, or -1 if that is not known. */
double uci_top_wait_seconds(const uci_top_look_t *look, const uci_live_wait_t *wait);

/** @return for how many seconds none of its workers has made progress, as far as can be seen: about 0 while it waits in MPI; -1 if it
 *  has no worker, or is gone. */
double uci_top_idle_seconds(const uci_top_look_t *look, const uci_top_process_t *process);

#endif
