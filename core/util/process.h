/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Who is this process: host name, pid, and its rank as the launcher's environment tells it.
 */
#ifndef UCI_PROCESS_H_
#define UCI_PROCESS_H_

#include "types.h"

/** Short host name (cut at the first dot), read once. Of graphic ASCII, as names of hosts are: what else is in it, and quotes and slashes, is "_". */
const char *uci_process_host(void);

/** Rank from OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, SLURM_PROCID, first that is set; -1 if none is. */
int uci_process_rank(void);

/** @return how many ranks the job was started with, from OMPI_COMM_WORLD_SIZE, PMI_SIZE, SLURM_STEP_NUM_TASKS; 0: none is set. */
unsigned uci_process_job_size(void);

/** @return how many lines of a kind this process prints, from 1 to 10: so many that those of all processes of its job are about 40. */
unsigned uci_process_lines(void);

/** @return how many processes of the job this node has, as its launcher says; 0: it does not. */
unsigned uci_process_local_count(void);

/** What to call this process in a log line: "rank 3 (node7:4711)", or "node7:4711" outside of MPI; a forked child has its own. */
const char *uci_process_name(void);

/**
 * The job that this process is part of, as whoever started it names it: "slurm:1234", "pbs:77.head", "lsf:55", "prrte:NAMESPACE" (Open MPI's
 * own launcher), "hydra:HOST.PID" (MPICH's, which gives its jobs no name: the process that has started those of this host).
 * @return NULL: nobody did. Made once.
 */
const char *uci_process_job(void);

/** Monotonic time in nanoseconds. */
uint64_t uci_process_time_ns(void);

/** Seconds since the epoch. */
double uci_process_wall_time(void);

/**
 * Make a file name of this process from @a pattern: %h becomes the host name, %p the pid, %r the rank ("x" if
 * unknown), %% a percent sign.
 * @return UCI_OK, or UCI_ERR_INVALID_PARAM (not logged) if '%' is followed by something else or @a size bytes
 *         do not hold the name; @a path is then not to be used.
 */
uci_status_t uci_process_expand(const char *pattern, char *path, size_t size);

/**
 * May another process be meant to write to all of these bytes, so that nothing of our own is hit if they are written? They are mapped,
 * readable and writable, and shared. Reads /proc/self/maps: some ten microseconds.
 * @return false also if that can't be read.
 */
bool uci_process_is_shared(const void *address, size_t length);

/** The file that this code is in, by its full path: UCI's library, or a program it is linked into. Thread safe. */
const char *uci_process_library(void);

/**
 * Which file with @a name in its own name has a process of this host loaded?
 * @param path  its path, @a size bytes at most.
 * @return false: none, or it is not this user's to ask. Reads /proc/PID/maps.
 */
bool uci_process_find_library(uint32_t pid, const char *name, char *path, size_t size);

/**
 * May this process write to the page of @a address as it is mapped now? Reads /proc/self/maps: some ten microseconds.
 * @return false also if nothing is mapped there, or that can't be read.
 */
bool uci_process_is_writable(const void *address);

/**
 * Would reading all of these bytes be no fault? One system call for each page, some 100 ns.
 * @return false also if they reach beyond the end of all addresses.
 */
bool uci_process_is_readable(const void *address, size_t length);

#endif
