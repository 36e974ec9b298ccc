/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading live files (live_layout.h) of other processes, of other users perhaps, and on other hosts: nothing in them is trusted.
 */
#ifndef UCI_LIVE_FILE_H_
#define UCI_LIVE_FILE_H_

#include "live_layout.h"

#define UCI_LIVE_SHM        "/dev/shm"
#define UCI_LIVE_SHM_PREFIX "uci-"          /* and the number of the user */
#define UCI_LIVE_KEEP_NS    3600000000000ul /* after the last sign of a process that is gone */
#define UCI_LIVE_ENDED_NS   600000000000ul  /* of one that has ended in an orderly way */
#define UCI_LIVE_GONE_MAX   512u            /* files of processes that are gone: more than that, and the oldest go */
#define UCI_LIVE_SILENCE_NS 60000000000ul   /* of a process that can't be looked for */

/** What became of the process. */
typedef enum {
    UCI_LIVE_FATE_RUNNING,
    UCI_LIVE_FATE_ENDED,   /**< in an orderly way */
    UCI_LIVE_FATE_ABORTED, /**< by UCI */
    UCI_LIVE_FATE_KILLED,  /**< gone without a word: by a signal, MPI_Abort, _exit() */
    UCI_LIVE_FATE_SILENT,  /**< on another host, or in another container, and long not heard of */
    UCI_LIVE_FATES
} uci_live_fate_t;

/** Names by value: "running", ... */
extern const char *const uci_live_fate_names[];

/** By value of uci_live_wait_kind_t: what it is that has not come. */
extern const char *const uci_live_wait_names[];

/** A file that has been read and found right: every offset in it lies inside, every text ends. */
typedef struct uci_live_file {
    char *data;
    size_t length;
    const uci_live_header_t *header; /**< in data */
    uci_live_fate_t fate;
    uint64_t last_time; /**< when it was last heard of, in ns since the epoch */
} uci_live_file_t;

/**
 * Take over what is in @a data, from malloc(), whatever becomes of it: it is freed here, or by uci_live_file_cleanup(). Texts are made
 * printable: what is not becomes '?'.
 * @param reason_p  on failure: why, a static text. @return UCI_OK, UCI_ERR_CORRUPT, UCI_ERR_UNSUPPORTED: a newer version.
 */
uci_status_t uci_live_file_parse(char *data, size_t length, uci_live_file_t *file_p, const char **reason_p);

/**
 * Read @a name in the folder @a folder_fd. Links are not followed; nothing but a regular file is read.
 * @return as uci_live_file_parse(), or UCI_ERR_IO, with a reason that lives until the next call of this thread.
 */
uci_status_t uci_live_file_read(int folder_fd, const char *name, uci_live_file_t *file_p, const char **reason_p);

void uci_live_file_cleanup(uci_live_file_t *file);

/** What a terminal could obey, or a reader of lines or JSON take for more than text, becomes '?'; and there is an end within @a size bytes. */
void uci_live_file_make_printable(char *text, size_t size);

/** Now, as times in these files are: in ns since the epoch. */
uint64_t uci_live_time(void);

/** Is it a name of a live file? */
bool uci_live_file_is_name(const char *name);

/** What runs there, as "UCI 1.0.0 (5ff81d8) of /opt/uci/lib/libucx_integrity.so": as much of it as the file tells. */
void uci_live_file_describe(const uci_live_file_t *file, char *text, size_t size);

/** @return name of a counter. @param i  below header->counters. */
const char *uci_live_file_name(const uci_live_file_t *file, unsigned i);

/** @return a counter, over all blocks. */
uint64_t uci_live_file_sum(const uci_live_file_t *file, unsigned i);

/** @return the counter called @a name, over all blocks; 0 if there is none. */
uint64_t uci_live_file_value(const uci_live_file_t *file, const char *name);

/** Copy the state of the worker that has block @a i. @return false: none has, or it was being written. */
bool uci_live_file_gauges(const uci_live_file_t *file, unsigned i, uci_live_gauges_t *gauges_p);

/**
 * Open a user's folder of live files, or another folder. No link is followed at its end.
 * @param own  it must belong to @a uid, and nobody else may write to it.
 * @return a descriptor, or -1 with errno (EPERM: it is not as it must be).
 */
int uci_live_folder_open(const char *path, bool own, uint32_t uid);

/** Remove files of processes that are gone and were last heard of UCI_LIVE_KEEP_NS ago, those that have ended as they should after
 *  UCI_LIVE_ENDED_NS, and of the others that are gone the oldest beyond UCI_LIVE_GONE_MAX; at most once a minute, whoever does it. */
void uci_live_folder_clean(int folder_fd);

#endif
