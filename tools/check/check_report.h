/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_check: say what was found, in text or JSON.
 */
#ifndef UCI_CHECK_REPORT_H_
#define UCI_CHECK_REPORT_H_

#include "check_diff.h"
#include "check_scan.h"

/** Bytes that two hosts exchanged. */
typedef struct uci_check_moved {
    uint64_t sent;
    uint64_t received;
    uint64_t rounds; /**< messages in each direction */
} uci_check_moved_t;

typedef struct uci_check_report {
    const char *command; /**< "verify", "compare" */
    const char *a, *b;   /**< what was compared: the manifest, or two paths */
    const uci_check_form_t *form;
    const uci_check_diffs_t *diffs;
    const uci_check_work_t *work;
    const uci_check_moved_t *moved; /**< NULL: nothing was */
    bool all_ranges;                /**< do not leave any out */
    bool quiet;                     /**< text: nothing but differences */
} uci_check_report_t;

/** @return whether something could not be compared. */
bool uci_check_report_is_partial(const uci_check_report_t *report);

void uci_check_report_text(const uci_check_report_t *report);
void uci_check_report_json(const uci_check_report_t *report);

/** What `sum` says beside its manifest: @a json to stdout, else one line to stderr. */
void uci_check_report_sum(const uci_check_list_t *list, const uci_check_work_t *work, const char *file, uint64_t digest,
                          bool json);

#endif
