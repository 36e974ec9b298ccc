/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_top: what the processes with UCI on this host are doing, and what became of those that are gone.
 */
#include "util/file.h"
#include "options.h"
#include "top_views.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct uci_top_options {
    bool once;
    bool json;
    const char *metrics; /* NULL: none; "-": standard output */
    double seconds;      /* between two looks; 0: not given */
    bool all;
    uci_top_scope_t scope;
} uci_top_options_t;

static const char uci_top_usage[] =
        "usage: uci_top [options] [FOLDER...]\n"
        "\n"
        "Show the processes with UCI on this host: rates, paths, damage, memory in use, and who waits for whom; jobs\n"
        "that run first. Of those that are gone, killed ones too, the files stay (UCI_LIVE).\n"
        "FOLDER: where these files are; none: the user's own in /dev/shm, where they stay for an hour.\n"
        "\n"
        "  -u, --user NAME      the processes of this user, by name or number (of others only for root)\n"
        "      --job JOB        those of this job: slurm:77, or 77\n"
        "  -a, --all            those of all users; so it is with --json and --openmetrics\n"
        "  -1, --once           print once, as text, and end\n"
        "  -j, --json           print JSON objects, one a line\n"
        "  -m, --openmetrics FILE\n"
        "                       write OpenMetrics text to FILE, which is replaced as a whole; '-': standard output\n"
        "  -i, --interval SEC   seconds between two looks (default 2, of --openmetrics 15); with --once: rates of so many\n"
        "                       seconds, and not since the processes began\n"
        "  -h, --help           this text\n"
        "      --version        version, revision, protocol and the UCX built with\n"
        "\n"
        "examples:\n"
        "  uci_top                                     on a terminal: live, until 'q' is pressed\n"
        "  uci_top --once --json | python3 -m json.tool\n"
        "  uci_top --once --openmetrics /var/lib/prometheus/node-exporter/uci.prom\n"
        "  uci_top --once /scratch/me/live             of a job with UCI_LIVE=/scratch/me/live\n";

static uci_top_options_t uci_top_options = {.scope = {.uid = UCI_TOP_ANYBODY}};

static void uci_top_take_user(const char *name)
{
    const struct passwd *user = getpwnam(name);
    char *end;

    uci_top_options.scope.uid = (user != NULL) ? (long)user->pw_uid : strtol(name, &end, 10);
    if ((user == NULL) && ((end == name) || (*end != '\0') || (uci_top_options.scope.uid < 0) ||
                           (uci_top_options.scope.uid > UINT32_MAX))) {
        errx(UCI_OPTIONS_FAILED, "there is no user %s", name);
    }
}

static void uci_top_take_interval(const char *text)
{
    char *end;

    uci_top_options.seconds = strtod(text, &end);
    if ((end == text) || (*end != '\0') || !(uci_top_options.seconds >= 0.1) || !(uci_top_options.seconds <= 86400)) {
        errx(UCI_OPTIONS_FAILED, "--interval %s: expected 0.1 to 86400 seconds", text);
    }
}

static const uci_option_t uci_top_option_table[] = {{"once", '1', .flag = &uci_top_options.once},
                                                    {"json", 'j', .flag = &uci_top_options.json},
                                                    {"openmetrics", 'm', .text = &uci_top_options.metrics},
                                                    {"interval", 'i', .take = uci_top_take_interval},
                                                    {"user", 'u', .take = uci_top_take_user},
                                                    {"job", 0, .text = &uci_top_options.scope.job},
                                                    {"all", 'a', .flag = &uci_top_options.all},
                                                    {0}};

static void uci_top_read_options(int argc, char **argv)
{
    uci_options_read(argc, argv, uci_top_option_table, uci_top_usage);
    if (uci_top_options.json && (uci_top_options.metrics != NULL)) {
        errx(UCI_OPTIONS_FAILED, "--json and --openmetrics exclude each other");
    }
    uci_top_options.scope.folders = argv + optind;
    uci_top_options.scope.count   = (unsigned)(argc - optind);
    if (!uci_top_options.all && !uci_top_options.json && (uci_top_options.metrics == NULL) &&
        (uci_top_options.scope.count == 0) && (uci_top_options.scope.job == NULL) &&
        (uci_top_options.scope.uid == UCI_TOP_ANYBODY)) {
        uci_top_options.scope.uid =
                (long)geteuid(); /* people want their own; programs, and who says where, what is there */
    }
}

static void uci_top_write_metrics_file(FILE *stream, const void *look)
{
    uci_top_write_metrics(look, stream);
}

/* @return false, after saying so, if it can't be written */
static bool uci_top_write(const uci_top_options_t *options, const uci_top_look_t *look)
{
    if ((options->metrics != NULL) && (strcmp(options->metrics, "-") != 0)) {
        if (uci_file_replace(options->metrics, uci_top_write_metrics_file, look) != UCI_OK) {
            fprintf(stderr, "uci_top: cannot write %s: %s\n", options->metrics, uci_file_error(errno));
            return false;
        }
        return true;
    }
    if (options->metrics != NULL) {
        uci_top_write_metrics(look, stdout);
    } else if (options->json) {
        uci_top_write_json(look, stdout);
    } else {
        uci_top_print(look, stdout, isatty(STDOUT_FILENO) && (getenv("NO_COLOR") == NULL));
    }
    if ((fflush(stdout) != 0) || ferror(stdout)) {
        fprintf(stderr, "uci_top: cannot write to standard output: %s\n", strerror(errno));
        return false;
    }
    return true;
}

/* Without a screen */
static int uci_top_run(const uci_top_options_t *options)
{
    double seconds = (options->seconds > 0) ? options->seconds : (options->metrics != NULL) ? 15 : 2;
    bool skip = options->once && (options->seconds > 0), failed = false; /* the first look serves the second one */
    uci_top_look_t before = {0}, look;

    for (;;) {
        if (uci_top_look(&options->scope, (before.time != 0) ? &before : NULL, &look) != UCI_OK) {
            uci_top_look_cleanup(&before);
            return EXIT_FAILURE;
        }
        failed = !skip && !uci_top_write(options, &look);
        uci_top_look_cleanup(&before);
        before = look;
        if (failed || (options->once && !skip)) {
            break;
        }
        skip = false;
        poll(NULL, 0, (int)(seconds * 1000));
    }
    uci_top_look_cleanup(&before);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    const uci_top_options_t *options = &uci_top_options;

    uci_top_read_options(argc, argv);
    if (!options->once && !options->json && (options->metrics == NULL) && isatty(STDOUT_FILENO) &&
        isatty(STDIN_FILENO)) {
        return (uci_top_show(&options->scope, (options->seconds > 0) ? options->seconds : 2) == UCI_OK) ? EXIT_SUCCESS
                                                                                                        : EXIT_FAILURE;
    }
    return uci_top_run(options);
}
