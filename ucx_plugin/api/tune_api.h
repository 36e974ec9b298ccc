/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the library exports for uci_tune, which compares the ways a message can take within one job. Found with dlsym();
 * not for anything else. No message may be under way, and only one thread may use UCX, while these are called.
 */
#ifndef UCI_TUNE_API_H_
#define UCI_TUNE_API_H_

#include <stddef.h>
#include <stdint.h>

/** Force eager limit, chunk size and path (as UCI_EAGER_MAX, UCI_CHUNK_SIZE, UCI_PATH) of what this process sends from
 *  now on; SIZE_MAX is auto. The eager limit can only be lowered below the one the process started with. */
void uci_tune_force(size_t eager_max, size_t chunk_size, unsigned path);

/** @return the transports UCX uses to send to this rank, or "" if there is no connection to it. */
const char *uci_tune_transports(int rank);

/** @return UCI_PATH_BIT()s of what messages to this rank can take. */
uint32_t uci_tune_paths(int rank);

/** Register @a length bytes at @a memory for remote access with all transports of this process, and release them.
 *  @return nanoseconds of both; 0 if there is no context, or UCX refuses (told at UCI_LOG_LEVEL=info). */
uint64_t uci_tune_register(void *memory, size_t length);

#endif
