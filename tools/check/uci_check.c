/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_check: digests of files and folders, kept in a manifest or compared, here and with another host. docs/man/uci_check.1
 */
#include "options.h"
#include "check_manifest.h"
#include "check_peer.h"
#include "check_pipe.h"
#include "check_report.h"
#include "util/parse_size.h"
#include "util/process.h"

#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UCI_CHECK_NAME_MAX 96 /* of who complains */

enum { UCI_CHECK_EXIT_SAME = 0, UCI_CHECK_EXIT_DIFFERS = 1, UCI_CHECK_EXIT_TROUBLE = 2 };

static const char uci_check_help[] =
        "Usage: uci_check sum [options] PATH...          write a manifest of files and folders\n"
        "       uci_check verify [options] MANIFEST      what is missing, changed or new since then?\n"
        "       uci_check compare [options] A B          files or folders; one may be HOST:PATH\n"
        "\n"
        "Options:\n"
        "  -o FILE                sum: write the manifest to FILE, and FILE.leaves, which lets verify tell which bytes\n"
        "                         changed (default: to stdout, without)\n"
        "  --no-leaves            sum: do not write FILE.leaves\n"
        "  -C FOLDER              sum, verify: go there first; paths, and -o FILE, are relative to it\n"
        "  -d, --digest NAME      sum, compare: xxh3 (default), xxh128, crc64, crc32c, fletcher, fnv1a\n"
        "  -c, --chunk-size SIZE  sum, compare: bytes that have one digest, 4k to 16m (default 64k)\n"
        "  -t, --threads N        read with N threads (default: as many as usable cores; more may help on disks)\n"
        "  -x, --one-file-system  do not go into what is mounted in a folder\n"
        "  --rsh COMMAND          compare: starts uci_check at HOST (default: $UCI_CHECK_RSH, else ssh)\n"
        "  --remote-program NAME  compare: its name there (default uci_check)\n"
        "  --all-ranges           text: all byte ranges of a file, not the first 8\n"
        "  --json                 one JSON object on stdout\n"
        "  -q, --quiet            nothing but differences; no progress\n"
        "  -h, --help             show this help\n"
        "  --version              show version, revision, protocol and the UCX built with\n"
        "\n"
        "Exit status: 0 the same, 1 not the same, 2 not all could be read or compared, or wrong usage.\n"
        "\n"
        "Examples:\n"
        "  uci_check sum -o run7.uci results && ... && uci_check verify run7.uci\n"
        "  uci_check compare node7:/scratch/checkpoint /scratch/checkpoint\n";

typedef struct uci_check_options {
    uci_check_scan_options_t scan;
    uci_check_form_t form;
    const char *output;
    const char *folder;
    const char *rsh;
    const char *program;
    bool has_form; /* it was given */
    bool no_leaves, all_ranges, json, quiet;
} uci_check_options_t;

static void __attribute__((noreturn)) uci_check_exit_usage(const char *complaint, const char *argument)
{
    errx(UCI_CHECK_EXIT_TROUBLE, "%s%s\nTry 'uci_check --help'.", complaint, argument);
}

/* A manifest, and its leaves, are not part of what they tell of */
static void uci_check_skip(uci_check_scan_options_t *scan, const char *manifest)
{
    char *leaves        = uci_check_leaves_name(manifest);
    const char *files[] = {manifest, leaves};
    struct stat st;
    size_t i;

    for (i = 0; i < uci_array_size(files); ++i) {
        if (stat(files[i], &st) == 0) {
            scan->skip[i].dev = st.st_dev;
            scan->skip[i].ino = st.st_ino;
        }
    }
    free(leaves);
}

static void uci_check_go(const char *folder)
{
    if ((folder != NULL) && (chdir(folder) != 0)) {
        err(UCI_CHECK_EXIT_TROUBLE, "%s", folder);
    }
}

/* What is no file has nothing beside it */
static bool uci_check_has_leaves(const uci_check_options_t *options)
{
    struct stat info;

    return (options->output != NULL) && !options->no_leaves && (strncmp(options->output, "/dev/", 5) != 0) &&
           ((stat(options->output, &info) != 0) || S_ISREG(info.st_mode));
}

static int uci_check_sum(uci_check_options_t *options, char **paths)
{
    uci_check_work_t work = {0};
    uci_check_list_t list;
    uint64_t digest;
    int ret = UCI_CHECK_EXIT_TROUBLE;

    if (paths[0] == NULL) {
        uci_check_exit_usage("sum of what? Give files or folders", "");
    }
    if (options->json && (options->output == NULL)) {
        uci_check_exit_usage("--json leaves no room for the manifest on stdout: give -o FILE", "");
    }
    uci_check_go(options->folder);
    if (options->output != NULL) {
        uci_check_skip(&options->scan, options->output);
    }
    uci_check_list_init(&list, &options->form);
    if (uci_check_scan(paths, &options->scan, &list, &work) &&
        uci_check_manifest_write(&list, paths, options->output, uci_check_has_leaves(options), &digest)) {
        if (options->json || !options->quiet) {
            uci_check_report_sum(&list, &work, options->output, digest, options->json);
        }
        ret = (uci_check_list_count(&list, UCI_CHECK_UNREADABLE) > 0) ? UCI_CHECK_EXIT_TROUBLE : UCI_CHECK_EXIT_SAME;
    }
    uci_check_list_cleanup(&list);
    return ret;
}

static int uci_check_report(const uci_check_options_t *options, uci_check_report_t *report)
{
    report->all_ranges = options->all_ranges;
    report->quiet      = options->quiet;
    if (options->json) {
        uci_check_report_json(report);
    } else {
        uci_check_report_text(report);
    }
    if (uci_check_report_is_partial(report)) {
        return UCI_CHECK_EXIT_TROUBLE;
    }
    return (report->diffs->count > 0) ? UCI_CHECK_EXIT_DIFFERS : UCI_CHECK_EXIT_SAME;
}

static int uci_check_report_lists(const uci_check_options_t *options, const uci_check_report_t *about,
                                  const uci_check_list_t *a, const uci_check_list_t *b)
{
    uci_check_diffs_t diffs   = {0};
    uci_check_report_t report = *about;
    int ret;

    report.form  = &a->form;
    report.diffs = &diffs;
    uci_check_join(a, b, &diffs);
    uci_check_find_ranges(&a->form, &diffs);
    ret = uci_check_report(options, &report);
    uci_check_diffs_cleanup(&diffs);
    return ret;
}

/* Paths of the manifest that are gone are missing, and no error */
static void uci_check_keep_existing(uci_check_manifest_t *manifest)
{
    size_t i, kept = 0;
    struct stat st;

    for (i = 0; i < manifest->paths_count; ++i) {
        if ((lstat(manifest->paths[i], &st) == 0) || ((errno != ENOENT) && (errno != ENOTDIR))) {
            manifest->paths[kept++] = manifest->paths[i];
        }
    }
    manifest->paths[kept] = NULL;
    manifest->paths_count = kept;
}

static int uci_check_verify(uci_check_options_t *options, char **arguments)
{
    uci_check_work_t work     = {0};
    uci_check_report_t report = {.command = "verify", .a = arguments[0], .b = "now", .work = &work};
    uci_check_manifest_t manifest;
    uci_check_list_t now;
    int ret = UCI_CHECK_EXIT_TROUBLE;

    if ((arguments[0] == NULL) || (arguments[1] != NULL)) {
        uci_check_exit_usage("verify takes one manifest", "");
    }
    uci_check_go(options->folder);
    if (!uci_check_manifest_read(arguments[0], &manifest)) {
        return ret;
    }
    uci_check_skip(&options->scan, arguments[0]);
    uci_check_keep_existing(&manifest);
    uci_check_list_init(&now, &manifest.list.form);
    if (uci_check_scan(manifest.paths, &options->scan, &now, &work)) {
        ret = uci_check_report_lists(options, &report, &manifest.list, &now);
    }
    uci_check_list_cleanup(&now);
    uci_check_manifest_cleanup(&manifest);
    return ret;
}

static bool uci_check_scan_one(const uci_check_options_t *options, char *path, uci_check_list_t *list,
                               uci_check_work_t *work)
{
    uci_check_scan_options_t scan = options->scan;
    char *paths[]                 = {path, NULL};

    scan.relative = true;
    return uci_check_scan(paths, &scan, list, work);
}

static int uci_check_compare_here(const uci_check_options_t *options, char *a, char *b)
{
    uci_check_work_t work     = {0};
    uci_check_report_t report = {.command = "compare", .a = a, .b = b, .work = &work};
    uci_check_list_t lists[2];
    int ret = UCI_CHECK_EXIT_TROUBLE;

    uci_check_list_init(&lists[0], &options->form);
    uci_check_list_init(&lists[1], &options->form);
    if (uci_check_scan_one(options, a, &lists[0], &work) && uci_check_scan_one(options, b, &lists[1], &work)) {
        ret = uci_check_report_lists(options, &report, &lists[0], &lists[1]);
    }
    uci_check_list_cleanup(&lists[0]);
    uci_check_list_cleanup(&lists[1]);
    return ret;
}

/* @return the path of HOST:PATH, whose colon comes before any slash; NULL: it is a path of this host. */
static char *uci_check_path_there(char *argument)
{
    char *colon = (argument[0] == '[') ? strstr(argument, "]:") : strpbrk(argument, ":/");

    colon = ((colon != NULL) && (*colon == ']')) ? colon + 1 : colon;
    return ((colon == NULL) || (*colon != ':') || (colon == argument)) ? NULL : colon + 1;
}

/* [fe80::1]:path is of host fe80::1 */
static char *uci_check_host_of(const char *argument, const char *path)
{
    size_t length = (size_t)(path - argument) - 1;
    bool brackets = (argument[0] == '[');

    return strndup(argument + brackets, length - (2 * (size_t)brackets));
}

/* What both sides do when it is known what is to be compared */
static uci_status_t uci_check_talk(const uci_check_wire_t *wire, const uci_check_options_t *options, char *path,
                                   bool is_asker, const uci_check_report_t *about, bool own_is_a, int *ret_p)
{
    uci_check_work_t work = {0};
    uci_check_report_t report;
    uci_check_list_t own, subset, theirs;
    uci_check_diffs_t diffs = {0};
    uci_status_t status;
    bool is_good;

    uci_check_list_init(&own, &options->form);
    uci_check_list_init(&subset, &options->form);
    uci_check_list_init(&theirs, &options->form);
    is_good = uci_check_scan_one(options, path, &own, &work);
    status  = uci_check_peer_compare(wire, is_good ? &own : NULL, is_asker, own_is_a, &subset, &theirs, &diffs);
    if ((status == UCI_OK) && (about != NULL)) {
        report       = *about;
        report.form  = &own.form;
        report.diffs = &diffs;
        report.work  = &work;
        *ret_p       = uci_check_report(options, &report);
    }
    uci_check_diffs_cleanup(&diffs);
    uci_check_list_cleanup(&subset);
    uci_check_list_cleanup(&theirs);
    uci_check_list_cleanup(&own);
    return status;
}

static int uci_check_compare_there(const uci_check_options_t *options, char *a, char *b)
{
    bool own_is_a               = (uci_check_path_there(a) == NULL);
    char *there                 = uci_check_path_there(own_is_a ? b : a);
    char *host                  = uci_check_host_of(own_is_a ? b : a, there);
    uci_check_request_t request = {.form = options->form, .one_file_system = options->scan.one_file_system};
    uci_check_report_t report   = {.command = "compare", .a = a, .b = b};
    int ret                     = UCI_CHECK_EXIT_TROUBLE;
    uci_check_pipe_t pipe;
    uci_check_wire_t wire = {uci_check_pipe_swap, &pipe};

    if (strlen(there) >= sizeof(request.path)) {
        uci_check_exit_usage("this path is too long: ", there);
    }
    strcpy(request.path, (*there == '\0') ? "." : there);
    if ((host != NULL) && uci_check_pipe_start(&pipe, options->rsh, host, options->program)) {
        report.moved = &pipe.moved;
        if (uci_check_ask(&wire, &request) == UCI_OK) {
            uci_check_talk(&wire, options, own_is_a ? a : b, true, &report, own_is_a, &ret);
        }
        uci_check_pipe_close(&pipe);
    }
    free(host);
    return ret;
}

static int uci_check_compare(const uci_check_options_t *options, char **arguments)
{
    unsigned there;

    if ((arguments[0] == NULL) || (arguments[1] == NULL) || (arguments[2] != NULL)) {
        uci_check_exit_usage("compare takes two paths", "");
    }
    there = (uci_check_path_there(arguments[0]) != NULL) + (uci_check_path_there(arguments[1]) != NULL);
    if (there == 2) {
        uci_check_exit_usage("one of the two must be on this host: start uci_check on one of the hosts", "");
    }
    return ((there == 0) ? uci_check_compare_here : uci_check_compare_there)(options, arguments[0], arguments[1]);
}

/* What compare starts at the other host */
static int uci_check_serve(uci_check_options_t *options, char **arguments)
{
    static char name[UCI_CHECK_NAME_MAX];
    uci_check_request_t request;
    uci_check_pipe_t pipe;
    uci_status_t status;
    uci_check_wire_t wire = {uci_check_pipe_swap, &pipe};

    if ((arguments[0] != NULL) || isatty(STDIN_FILENO)) {
        uci_check_exit_usage("serve is what compare starts at the other host", "");
    }
    snprintf(name, sizeof(name), "uci_check at %s", uci_process_host());
    /* what it complains of shows on the other side's terminal, beside that one's own complaints */
    program_invocation_short_name = name;
    uci_check_pipe_serve(&pipe);
    status = uci_check_be_asked(&wire, &request);
    if (status == UCI_OK) {
        options->form                 = request.form;
        options->scan.one_file_system = request.one_file_system;
        options->scan.progress        = false; /* the terminal, if there is one, is the other side's */
        status                        = uci_check_talk(&wire, options, request.path, false, NULL, false, NULL);
    }
    return (status == UCI_OK) ? UCI_CHECK_EXIT_SAME : UCI_CHECK_EXIT_TROUBLE;
}

static uci_check_options_t uci_check_options = {
        .form = {NULL, UCI_CHECK_CHUNK_SIZE_DEFAULT, UCI_CHECK_ARITY}, .rsh = "ssh", .program = "uci_check"};

static void uci_check_take_digest(const char *name)
{
    const uci_digest_ops_t *digest = uci_digest_find(name);

    if ((digest == NULL) || (digest->id == UCI_DIGEST_NONE)) {
        uci_check_exit_usage("there is no digest ", name);
    }
    uci_check_options.form.digest = digest;
    uci_check_options.has_form    = true;
}

static void uci_check_take_chunk_size(const char *text)
{
    size_t size;

    if ((uci_parse_size(text, false, &size) != UCI_OK) || (size < UCI_CHECK_CHUNK_SIZE_MIN) ||
        (size > UCI_CHECK_CHUNK_SIZE_MAX)) {
        uci_check_exit_usage("a chunk size is 4k to 16m, not ", text);
    }
    uci_check_options.form.chunk_size = size;
    uci_check_options.has_form        = true;
}

static void uci_check_take_threads(const char *text)
{
    char *rest;
    unsigned long threads = strtoul(text, &rest, 10);

    if ((*text < '0') || (*text > '9') || (*rest != '\0') || (threads == 0) || (threads > 1024)) {
        uci_check_exit_usage("threads are 1 to 1024, not ", text);
    }
    uci_check_options.scan.threads = (unsigned)threads;
}

static const uci_option_t uci_check_option_table[] = {
        {.letter = 'o', .text = &uci_check_options.output},
        {.letter = 'C', .text = &uci_check_options.folder},
        {"digest", 'd', .take = uci_check_take_digest},
        {"chunk-size", 'c', .take = uci_check_take_chunk_size},
        {"threads", 't', .take = uci_check_take_threads},
        {"one-file-system", 'x', .flag = &uci_check_options.scan.one_file_system},
        {"quiet", 'q', .flag = &uci_check_options.quiet},
        {"no-leaves", .flag = &uci_check_options.no_leaves},
        {"rsh", .text = &uci_check_options.rsh},
        {"remote-program", .text = &uci_check_options.program},
        {"all-ranges", .flag = &uci_check_options.all_ranges},
        {"json", .flag = &uci_check_options.json},
        {0}};

/* What a command has no use for was meant to do something */
static void uci_check_refuse(const uci_check_options_t *options, const char *command)
{
    bool is_sum = (strcmp(command, "sum") == 0), is_compare = (strcmp(command, "compare") == 0);

    if (!is_sum && ((options->output != NULL) || options->no_leaves)) {
        uci_check_exit_usage("only sum writes a manifest: no -o and no --no-leaves for ", command);
    }
    if (!is_sum && !is_compare && options->has_form) {
        uci_check_exit_usage("digest and chunk size are those of the manifest: no -d and no -c for ", command);
    }
    if (is_compare && (options->folder != NULL)) {
        uci_check_exit_usage("-C is for sum and verify, not for ", command);
    }
}

static int uci_check_run(uci_check_options_t *options, const char *command, char **arguments)
{
    uci_check_refuse(options, command);
    if (strcmp(command, "sum") == 0) {
        return uci_check_sum(options, arguments);
    }
    if (strcmp(command, "verify") == 0) {
        return uci_check_verify(options, arguments);
    }
    if (strcmp(command, "compare") == 0) {
        return uci_check_compare(options, arguments);
    }
    if (strcmp(command, "serve") == 0) {
        return uci_check_serve(options, arguments);
    }
    uci_check_exit_usage(((strcmp(command, "diff") == 0) || (strcmp(command, "cmp") == 0))
                                 ? "'compare A B' does what you look for; there is no command "
                                 : "there is no command ",
                         command);
}

int main(int argc, char **argv)
{
    const char *rsh              = getenv("UCI_CHECK_RSH");
    uci_check_options_t *options = &uci_check_options;

    options->form.digest = uci_digest_by_id(UCI_DIGEST_XXH3);
    options->rsh         = (rsh != NULL) ? rsh : options->rsh;
    uci_options_read(argc, argv, uci_check_option_table, uci_check_help);
    if (optind == argc) {
        uci_check_exit_usage("sum, verify or compare?", "");
    }
    options->scan.progress = !options->quiet && isatty(STDERR_FILENO);
    uci_options_end(uci_check_run(options, argv[optind], argv + optind + 1));
}
