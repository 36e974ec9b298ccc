/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_check: the manifest, which says what was in some folders, and a file of digests beside it, which says in which chunks.
 *
 *     uci_check 1                       version of this format
 *     digest xxh3
 *     chunk-size 65536
 *     arity 16
 *     path data                         as it was given; names begin with it
 *     d 0000000000000000 0 data
 *     f 510e7582525976e0 16777216 data/a
 *     end 2 6edce1c42150e121            entries, and the digest (XXH3-64) of all bytes up to here
 *
 * An entry is type, root, length and name, the rest of the line (uci_check_escape()). Types: f file, l symbolic link (root: digest of its
 * target), d folder, o other, e could not be read. Entries are in the order of their names' bytes.
 *
 * MANIFEST.leaves: three words of 64 bits, in the machine's order of bytes ("UCILEAF1", chunks, the manifest's digest), then the digest of
 * each chunk of each file in the manifest's order.
 */
#ifndef UCI_CHECK_MANIFEST_H_
#define UCI_CHECK_MANIFEST_H_

#include "check_list.h"

typedef struct uci_check_manifest {
    uci_check_list_t list;
    char **paths; /**< NULL-terminated */
    size_t paths_count;
    uint64_t digest; /**< of its bytes */
    char *text;      /**< that names lie in */
} uci_check_manifest_t;

/** Write @a list into @a file (NULL: stdout), and its leaves beside it if @a leaves. @return false if that failed (said). */
bool uci_check_manifest_write(const uci_check_list_t *list, char *const *paths, const char *file, bool leaves,
                              uint64_t *digest_p);

/** Read @a file, and the leaves beside it if they are there. @return false if it is no manifest, or damaged (said). */
bool uci_check_manifest_read(const char *file, uci_check_manifest_t *manifest);

/**
 * Parse a manifest.
 * @param text  @a length bytes and a 0 behind them, from malloc(); the manifest's from now on, whatever is returned.
 * @return NULL, or what is wrong; the manifest is to be cleaned up in both cases.
 */
const char *uci_check_manifest_parse(char *text, size_t length, uci_check_manifest_t *manifest);

/** Take the leaves of a parsed manifest from @a words. @return NULL, or what is wrong: then there are none. */
const char *uci_check_manifest_take_leaves(uci_check_manifest_t *manifest, const uint64_t *words, size_t count);

void uci_check_manifest_cleanup(uci_check_manifest_t *manifest);

/** @return name of the file of leaves, to be freed. */
char *uci_check_leaves_name(const char *file);

#endif
