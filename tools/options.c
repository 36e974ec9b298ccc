/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"
#include "version_line.h"

#include <assert.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UCI_OPTIONS_ROW 256 /* + row: in place of a letter */

/* What getopt_long() says, as a row of the table */
static const uci_option_t *uci_option_find(const uci_option_t *options, int value)
{
    if (value >= UCI_OPTIONS_ROW) {
        return &options[value - UCI_OPTIONS_ROW];
    }
    while (options->letter != value) {
        ++options;
    }
    return options;
}

/* An empty one is a variable of a script that is not set */
static void uci_option_take(const uci_option_t *option)
{
    const char *argument = (optarg != NULL) ? optarg : option->missing;
    const char letter[]  = {option->letter, '\0'};
    bool is_long         = (option->name != NULL);

    if ((optarg != NULL) && (*optarg == '\0')) {
        errx(UCI_OPTIONS_FAILED, "the value of -%s%s is empty", is_long ? "-" : "", is_long ? option->name : letter);
    }
    if (option->flag != NULL) {
        *option->flag = true;
    } else if (option->text != NULL) {
        *option->text = argument;
    } else {
        option->take(argument);
    }
}

/* What is closed can't be used either way round, but no file that is opened later becomes standard input or output */
static void uci_options_keep_streams(void)
{
    int fd;

    for (fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
        if (fcntl(fd, F_GETFD) < 0) {
            (void)!open("/dev/null", (fd == STDIN_FILENO) ? O_WRONLY : O_RDONLY);
        }
    }
}

void uci_options_end(int status)
{
    if ((fflush(stdout) != 0) || ferror(stdout)) {
        err(UCI_OPTIONS_FAILED, "cannot write");
    }
    exit(status);
}

void uci_options_read(int argc, char **argv, const uci_option_t *options, const char *help)
{
    struct option names[UCI_OPTIONS_MAX + 3] = {{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'}};
    char letters[(3 * UCI_OPTIONS_MAX) + 2] = "h", *end = letters + 1;
    struct option *name = &names[2];
    int i, value, kind;

    uci_options_keep_streams();
    for (i = 0; (options[i].name != NULL) || (options[i].letter != '\0'); ++i) {
        assert(i < UCI_OPTIONS_MAX);
        kind = (options[i].flag != NULL)      ? no_argument
               : (options[i].missing != NULL) ? optional_argument
                                              : required_argument;
        if (options[i].name != NULL) {
            *name++ = (struct option){options[i].name, kind, NULL, UCI_OPTIONS_ROW + i};
        }
        if (options[i].letter != '\0') {
            end += sprintf(end, "%c%.*s", options[i].letter, kind, "::"); /* as many colons: none, one, two */
        }
    }
    while ((value = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        switch (value) {
        case 'h':
            fputs(help, stdout);
            uci_options_end(EXIT_SUCCESS);
        case 'V':
            printf("%s (UCI) %s\n", program_invocation_short_name, UCI_VERSION_LINE);
            uci_options_end(EXIT_SUCCESS);
        case '?': /* getopt has said what is wrong */
            fprintf(stderr, "Try '%s --help'.\n", program_invocation_short_name);
            exit(UCI_OPTIONS_FAILED);
        default:
            uci_option_take(uci_option_find(options, value));
        }
    }
}
