/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_check: find what is in folders, and digest it.
 */
#ifndef UCI_CHECK_SCAN_H_
#define UCI_CHECK_SCAN_H_

#include "check_list.h"

typedef struct uci_check_scan_options {
    unsigned threads; /**< 0: as many as this process may use cores */
    bool one_file_system;
    bool relative; /**< names are relative to the path they were found in, "." for itself */
    bool progress; /**< show it on stderr */
    struct {
        dev_t dev;
        ino_t ino;
    } skip[2]; /**< files that are left out: a manifest may lie in the folder that it is of */
} uci_check_scan_options_t;

/** Work done, for reports. */
typedef struct uci_check_work {
    uint64_t bytes; /**< read; holes are not */
    double seconds;
} uci_check_work_t;

/**
 * Fill @a list with what is at @a paths and below (NULL-terminated), digests included, sorted. What can't be read is an entry too, and is
 * said; symbolic links are not followed.
 * @param work  added to.
 * @return false: a path does not exist, or two entries have one name (said).
 */
bool uci_check_scan(char *const *paths, const uci_check_scan_options_t *options, uci_check_list_t *list,
                    uci_check_work_t *work);

/** Digest the files and links of @a list, in parallel: roots and leaves. uci_check_scan() does it. */
void uci_check_read(uci_check_list_t *list, const uci_check_scan_options_t *options, uci_check_work_t *work);

#endif
