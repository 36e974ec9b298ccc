/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The live file of this process (UCI_LIVE): counters in memory that a small file backs, so that nothing is lost when the process
 * is killed, and others can read while it runs. Counting is a plain store either way. What is in the file: live_layout.h; who
 * reads it: live_file.h.
 *
 * Nothing here fails a job: without a file, counters are in the process's own memory as ever. The file may be removed at any
 * time. (Who cuts it short instead, which only its owner may, kills the process with SIGBUS.) A child that is forked off has its
 * own, empty copy of the memory, and no file.
 */
#ifndef UCI_LIVE_H_
#define UCI_LIVE_H_

#include "live_layout.h"

#define UCI_LIVE_AUTO "auto"
#define UCI_LIVE_OFF  "off"

/**
 * Make the file of this process, unless it has one.
 * @param where     "auto": in the user's folder in /dev/shm, where files of processes that have gone long ago are removed; "off";
 *                  or a pattern for uci_process_expand(): a folder, which is made if need be.
 * @param names     of the counters, static.
 * @param block_p   block 0, @a counters numbers of 8 bytes, all 0.
 * @return UCI_OK; UCI_ERR_UNSUPPORTED: "off"; or UCI_ERR_IO (logged: a warning if a folder was asked for, else info). Thread safe.
 */
uci_status_t uci_live_open(const char *where, const char *const *names, unsigned counters, uint64_t **block_p);

/** Texts are copied. Nothing happens without a file. Thread safe. */
void uci_live_set_info(const char *digest, const char *mode, const char *ucx_version);

/** @return counters of a free block, which go on from where they are, for worker @a uid; NULL: no file, or no room. Thread safe. */
uint64_t *uci_live_take_block(uint64_t uid);

/** The worker goes; its numbers stay. @param block  of uci_live_take_block(), or NULL. Thread safe. */
void uci_live_give_block(uint64_t *block);

/** How many workers count elsewhere, since there was no block for them. */
void uci_live_set_unlisted(unsigned count);

/** @return where the state of a block's worker is written; uci_live_end_gauges() must follow. Called by who owns the worker. */
uci_live_gauges_t *uci_live_begin_gauges(uint64_t *block);
void uci_live_end_gauges(uci_live_gauges_t *gauges);

/** Call @a func for the counters of each block that no worker has, but the first. */
void uci_live_for_each_free(void (*func)(void *arg, const uint64_t *counters), void *arg);

/** The process ends. Only the first call counts. */
void uci_live_end(uci_live_state_t state);

/**
 * What a process runs that has its live file in the folder where this one has its own: of this host, or, where UCI_LIVE is a folder that
 * hosts share, of another.
 * @return false: no file of that process is there, or none that can be read. @a text  as of uci_live_file_describe().
 */
bool uci_live_find_peer(const char *host, uint32_t pid, char *text, size_t size);

/** Has this process a file, of its own? */
bool uci_live_is_open(void);

#endif
