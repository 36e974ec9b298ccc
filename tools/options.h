/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Options of a tool, as a table. All have -h, --help and --version.
 */
#ifndef UCI_OPTIONS_H_
#define UCI_OPTIONS_H_

#include <stdbool.h>

#define UCI_OPTIONS_MAX    16 /**< rows */
#define UCI_OPTIONS_FAILED 2  /**< exit status: wrong usage */

/** An option: one of `flag`, `text` and `take` says what comes of it. */
typedef struct uci_option {
    const char *name; /**< long; NULL: none */
    char letter;      /**< short; 0: none */
    bool *flag;       /**< becomes true */
    const char **text;
    void (*take)(const char *text);
    const char *missing; /**< what the argument is if it is left out; NULL: it may not be */
} uci_option_t;

/**
 * Read the options of a command line; what follows them begins at `optind`. Ends the process if it asks for help or version, or is wrong.
 * @param options  behind the last one comes one that has neither name nor letter.
 */
void uci_options_read(int argc, char **argv, const uci_option_t *options, const char *help);

/** End the process with @a status, or, as a full disk must not look like success, with UCI_OPTIONS_FAILED if standard output can't be written. */
void __attribute__((noreturn)) uci_options_end(int status);

#endif
