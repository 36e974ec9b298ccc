/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What was measured on a machine: the costs of digests and copies, and of the ways a message can take between two
 * processes. Written by uci_tune and by the calibration at start, read by every process that uses UCI.
 *
 * The file is JSON:
 *
 *     {"uci_profile": 1, "source": "uci_tune", "created": "2026-11-21T12:00:00Z", "host": "node1",
 *      "machine": {"cpu": "AMD EPYC 9654", "cores": 192, "ucx": "1.13.1"},
 *      "kernels": [{"digest": "xxh3", "isa": "avx512", "form": "fused", "cached": true, "ns": [[64, 5.2], ...]}, ...],
 *      "paths": [{"transports": "posix cma", "path": "stream", "chunk": 8192, "ns": [[4096, 2120], ...]}, ...],
 *      "registrations": [{"transports": "posix cma", "ns": [[4096, 150], ...]}, ...]}
 *
 * A profile holds for the CPU model, number of cores and UCX version it was made with, and is refused elsewhere. Names it
 * does not know (of a later UCI) are left out when it is read; what is wrong in any other way makes it invalid as a whole.
 */
#ifndef UCI_PROFILE_H_
#define UCI_PROFILE_H_

#include <stdio.h>
#include "cost_model.h"
#include "digest/digest.h"

#define UCI_PROFILE_VERSION 1

typedef struct uci_profile_kernel {
    uci_digest_id_t digest;
    uci_digest_isa_t isa;
    uci_form_t form;
    bool cached; /**< the same buffers again and again; otherwise memory that is in no cache */
    uci_cost_t cost;
} uci_profile_kernel_t;

#define UCI_PROFILE_TRANSPORTS_MAX 128

typedef struct uci_profile_path {
    char transports[UCI_PROFILE_TRANSPORTS_MAX]; /**< as UCX lists them for an endpoint: "posix cma" */
    uci_path_t path;
    uint64_t chunk;  /**< bytes; 0 for UCI_PATH_EAGER */
    uci_cost_t cost; /**< time of a message, one way, by its size */
} uci_profile_path_t;

#define UCI_PROFILE_NAME_MAX 128

#define UCI_PROFILE_SOURCE_QUICK "calibration" /**< `source` of the calibration at start */

/** What it costs to register a buffer for remote access and to release it again, with all the transports of a job: what paths that
 *  need that are charged with, in part (README.md) */
typedef struct uci_profile_registration {
    char transports[UCI_PROFILE_TRANSPORTS_MAX];
    uci_cost_t cost;
} uci_profile_registration_t;

/** Which machine a profile is of */
typedef struct uci_profile_machine {
    char cpu[UCI_PROFILE_NAME_MAX];
    unsigned cores;
    char ucx[UCI_PROFILE_NAME_MAX]; /**< version of UCX, "" if there was none */
} uci_profile_machine_t;

typedef struct uci_profile {
    uci_profile_machine_t machine;
    char source[UCI_PROFILE_NAME_MAX]; /**< who made it */
    char created[UCI_PROFILE_NAME_MAX];
    char host[UCI_PROFILE_NAME_MAX];
    unsigned kernels_count, paths_count, registrations_count;
    uci_profile_kernel_t *kernels;
    uci_profile_path_t *paths;
    uci_profile_registration_t *registrations; /**< none in profiles of UCI before they were measured */
} uci_profile_t;

/** An empty profile of this machine; @a ucx is the version of UCX, or NULL. To be released with uci_profile_cleanup(). */
void uci_profile_init(uci_profile_t *profile, const char *source, const char *ucx);

/** Release what the profile holds; it is empty then. */
void uci_profile_cleanup(uci_profile_t *profile);

/** @return the cost of this kernel, a new empty one if there is none yet, or NULL if there is no memory (logged). Valid
 *  until the next one is added. */
uci_cost_t *uci_profile_add_kernel(uci_profile_t *profile, uci_digest_id_t digest, uci_digest_isa_t isa,
                                   uci_form_t form, bool cached);

/** The same for a path. @a transports is cut at UCI_PROFILE_TRANSPORTS_MAX. */
uci_cost_t *uci_profile_add_path(uci_profile_t *profile, const char *transports, uci_path_t path, uint64_t chunk);

/** The same for registrations. */
uci_cost_t *uci_profile_add_registration(uci_profile_t *profile, const char *transports);

/** @return the cost of registering a buffer for these transports, or NULL if it was not measured. */
const uci_cost_t *uci_profile_find_registration(const uci_profile_t *profile, const char *transports);

/** @return the cost of this kernel, or NULL. */
const uci_cost_t *uci_profile_find_kernel(const uci_profile_t *profile, uci_digest_id_t digest, uci_digest_isa_t isa,
                                          uci_form_t form, bool cached);

/** @return nanoseconds for @a size bytes: the mean of cached and uncached memory, since nobody knows where a user's buffer
 *  is; or the one that was measured; 0 if neither was. */
double uci_profile_kernel_ns(const uci_profile_t *profile, uci_digest_id_t digest, uci_digest_isa_t isa,
                             uci_form_t form, uint64_t size);

/** Complete @a profile with what it has not of @a from: kernels, if it has none at all; paths and registrations, of transports that it
 *  does not know. */
uci_status_t uci_profile_merge(uci_profile_t *profile, const uci_profile_t *from);

/** Describe this machine; @a ucx as above. */
void uci_profile_machine_init(uci_profile_machine_t *machine, const char *ucx);

/** @return a number that differs between machines that need profiles of their own: part of file names. */
uint32_t uci_profile_machine_key(const uci_profile_machine_t *machine);

/**
 * @return true if @a profile is of this machine. Otherwise @a reason says what differs, for a message
 * ("it is of cpu 'A', this is 'B'").
 */
bool uci_profile_fits(const uci_profile_t *profile, const uci_profile_machine_t *machine, char *reason, size_t size);

/** Write the profile as JSON; errors are the stream's. */
void uci_profile_write(const uci_profile_t *profile, FILE *stream);

/** Replace the file @a path, so that readers see the old or the new one; makes its folder.
 *  @return UCI_OK or UCI_ERR_IO (logged). */
uci_status_t uci_profile_save(const uci_profile_t *profile, const char *path);

/** The same without a word of it. @return UCI_OK or UCI_ERR_IO with errno set. */
uci_status_t uci_profile_try_save(const uci_profile_t *profile, const char *path);

/**
 * Read the file @a path. libjansson.so.4 is opened for it and stays.
 * @param profile_p  on success to be released with uci_profile_cleanup().
 * @return UCI_OK; UCI_ERR_NO_ELEM (not logged) if there is no such file; UCI_ERR_IO, UCI_ERR_CORRUPT,
 *         UCI_ERR_UNSUPPORTED (another version of the format, or no jansson) or UCI_ERR_NO_MEMORY, all logged as warnings
 *         that say what is wrong where.
 */
uci_status_t uci_profile_load(const char *path, uci_profile_t *profile_p);

/** The same for text in memory; @a name is what messages call it. */
uci_status_t uci_profile_parse(const char *text, size_t length, const char *name, uci_profile_t *profile_p);

#endif
