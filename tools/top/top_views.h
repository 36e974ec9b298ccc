/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What uci_top makes of a look: JSON, OpenMetrics, lines for people, a screen.
 */
#ifndef UCI_TOP_VIEWS_H_
#define UCI_TOP_VIEWS_H_

#include <stdio.h>
#include "top_jobs.h"

/** One JSON object, one line. */
void uci_top_write_json(const uci_top_look_t *look, FILE *stream);

/** OpenMetrics text: each counter summed over the processes of a job. */
void uci_top_write_metrics(const uci_top_look_t *look, FILE *stream);

typedef enum {
    UCI_TOP_PLAIN,
    UCI_TOP_TITLE,
    UCI_TOP_HEADING,
    UCI_TOP_DAMAGE, /**< something is damaged there */
    UCI_TOP_OVER    /**< the process is gone */
} uci_top_style_t;

typedef void (*uci_top_line_func_t)(void *arg, uci_top_style_t style, const char *text);

/** Call @a func for each line of a report for people. */
void uci_top_for_each_line(const uci_top_look_t *look, uci_top_line_func_t func, void *arg);

/** Print these lines; with colours if @a colours. */
void uci_top_print(const uci_top_look_t *look, FILE *stream, bool colours);

/**
 * Show looks on the terminal until the user has enough.
 * @param seconds  between two. @return UCI_OK, or UCI_ERR_IO (said on stderr).
 */
uci_status_t uci_top_show(const uci_top_scope_t *scope, double seconds);

#endif
