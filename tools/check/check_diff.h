/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_check: what two lists do not have in common.
 */
#ifndef UCI_CHECK_DIFF_H_
#define UCI_CHECK_DIFF_H_

#include "check_list.h"
#include "util/ranges.h"

typedef enum {
    UCI_CHECK_DIFF_MISSING,   /**< only the first list has it */
    UCI_CHECK_DIFF_NEW,       /**< only the second one */
    UCI_CHECK_DIFF_TYPE,      /**< a file here, a folder there */
    UCI_CHECK_DIFF_CONTENT,   /**< of a file, or the target of a link */
    UCI_CHECK_DIFF_UNREADABLE /**< on one side, or on both: it is not known whether it differs */
} uci_check_diff_kind_t;

typedef struct uci_check_diff {
    uci_check_diff_kind_t kind;
    const uci_check_entry_t *a, *b; /**< NULL: there is none */
    uci_ranges_t ranges;            /**< of a file's content, by whole chunks; none: they are not known */
} uci_check_diff_t;

typedef struct uci_check_diffs {
    uci_check_diff_t *list;
    size_t count;
    size_t room;
    size_t compared; /**< entries of both lists together */
} uci_check_diffs_t;

/** Compare sorted lists entry by entry; ranges are not looked for. */
void uci_check_join(const uci_check_list_t *a, const uci_check_list_t *b, uci_check_diffs_t *diffs);

/** Find the ranges of files whose leaves both lists have. */
void uci_check_find_ranges(const uci_check_form_t *form, uci_check_diffs_t *diffs);

/** @return whether this is a file on both sides, and has other content. */
bool uci_check_is_file_diff(const uci_check_diff_t *diff);

/** @return the name that both have, or the one that has it. */
const char *uci_check_diff_name(const uci_check_diff_t *diff);

/** @return number of @a kind. */
size_t uci_check_diffs_count(const uci_check_diffs_t *diffs, uci_check_diff_kind_t kind);

void uci_check_diffs_cleanup(uci_check_diffs_t *diffs);

#endif
