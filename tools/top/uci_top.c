/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_top: what the processes with UCI on this host are doing, and what became of those that are gone.
 */
#include "util/file.h"
#include "top_views.h"
#include "version.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { UCI_TOP_EXIT_OK = 0, UCI_TOP_EXIT_FAILED = 1, UCI_TOP_EXIT_USAGE = 2 };

typedef struct uci_top_options {
    bool once;
    bool json;
    const char *metrics; /* NULL: none; "-": standard output */
    double seconds;      /* between two looks; 0: not given */
    char **folders;
    unsigned count;
} uci_top_options_t;

static const char uci_top_usage[] =
        "usage: uci_top [options] [FOLDER...]\n"
        "\n"
        "Show the processes with UCI on this host: rates, paths, damage, memory in use, and who waits for whom. Those\n"
        "that are gone, killed ones too, are shown as long as their files are there (UCI_LIVE).\n"
        "FOLDER: where these files are; none: the user's own in /dev/shm, of root those of all users.\n"
        "\n"
        "  -1, --once           print once, as text, and end\n"
        "  -j, --json           print JSON objects, one a line\n"
        "  -m, --openmetrics FILE\n"
        "                       write OpenMetrics text to FILE, which is replaced as a whole; '-': standard output\n"
        "  -i, --interval SEC   seconds between two looks (default 2, of --openmetrics 15); with --once: rates of so many\n"
        "                       seconds, and not since the processes began\n"
        "  -h, --help           this text\n"
        "      --version        the version\n"
        "\n"
        "examples:\n"
        "  uci_top                                     on a terminal: live, until 'q' is pressed\n"
        "  uci_top --once --json | python3 -m json.tool\n"
        "  uci_top --once --openmetrics /var/lib/prometheus/node-exporter/uci.prom\n"
        "  uci_top --once /scratch/me/live             of a job with UCI_LIVE=/scratch/me/live\n";

/* @return -1: go on; else the exit status */
static int uci_top_read_options(int argc, char **argv, uci_top_options_t *options)
{
    static const struct option names[] = {{"once", no_argument, NULL, '1'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"openmetrics", required_argument, NULL, 'm'},
                                          {"interval", required_argument, NULL, 'i'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'V'},
                                          {NULL, 0, NULL, 0}};
    char *end;
    int c;

    while ((c = getopt_long(argc, argv, "1jm:i:h", names, NULL)) != -1) {
        switch (c) {
        case '1':
            options->once = true;
            break;
        case 'j':
            options->json = true;
            break;
        case 'm':
            options->metrics = optarg;
            break;
        case 'i':
            options->seconds = strtod(optarg, &end);
            if ((end == optarg) || (*end != '\0') || !(options->seconds >= 0.1) || !(options->seconds <= 86400)) {
                fprintf(stderr, "uci_top: --interval %s: expected 0.1 to 86400 seconds\n", optarg);
                return UCI_TOP_EXIT_USAGE;
            }
            break;
        case 'h':
            fputs(uci_top_usage, stdout);
            return UCI_TOP_EXIT_OK;
        case 'V':
            printf("uci_top %s (%s)\n", UCI_VERSION, UCI_REVISION);
            return UCI_TOP_EXIT_OK;
        default:
            fprintf(stderr, "(see uci_top --help)\n");
            return UCI_TOP_EXIT_USAGE;
        }
    }
    if (options->json && (options->metrics != NULL)) {
        fprintf(stderr, "uci_top: --json and --openmetrics exclude each other\n");
        return UCI_TOP_EXIT_USAGE;
    }
    options->folders = argv + optind;
    options->count   = (unsigned)(argc - optind);
    return -1;
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

static void uci_top_sleep(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)floor(seconds)};

    time.tv_nsec = (long)((seconds - floor(seconds)) * 1e9);
    while ((nanosleep(&time, &time) != 0) && (errno == EINTR)) {
    }
}

/* Without a screen */
static int uci_top_run(const uci_top_options_t *options)
{
    double seconds = (options->seconds > 0) ? options->seconds : (options->metrics != NULL) ? 15 : 2;
    bool skip = options->once && (options->seconds > 0), failed = false; /* the first look serves the second one */
    uci_top_look_t before = {0}, look;

    for (;;) {
        if (uci_top_look(options->folders, options->count, (before.time != 0) ? &before : NULL, &look) != UCI_OK) {
            uci_top_look_cleanup(&before);
            return UCI_TOP_EXIT_FAILED;
        }
        failed = !skip && !uci_top_write(options, &look);
        uci_top_look_cleanup(&before);
        before = look;
        if (failed || (options->once && !skip)) {
            break;
        }
        skip = false;
        uci_top_sleep(seconds);
    }
    uci_top_look_cleanup(&before);
    return failed ? UCI_TOP_EXIT_FAILED : UCI_TOP_EXIT_OK;
}

int main(int argc, char **argv)
{
    uci_top_options_t options = {0};
    int status                = uci_top_read_options(argc, argv, &options);

    if (status >= 0) {
        return status;
    }
    if (!options.once && !options.json && (options.metrics == NULL) && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO)) {
        return (uci_top_show(options.folders, options.count, (options.seconds > 0) ? options.seconds : 2) == UCI_OK)
                       ? UCI_TOP_EXIT_OK
                       : UCI_TOP_EXIT_FAILED;
    }
    return uci_top_run(&options);
}
