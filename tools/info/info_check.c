/* SPDX-License-Identifier: BSD-3-Clause */
#include "info.h"
#include "beside.h"
#include "info_mpi.h"
#include "util/json_writer.h"
#include "settings/settings.h"
#include "attach/ucx_conf.h"

#include <err.h>
#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define UCI_INFO_MPIS        16
#define UCI_INFO_ADVICE      16
#define UCI_INFO_MODULE_FILE "libucs_uci.so"

/* UCX loads modules of others from this version on */
#define UCI_INFO_MODULES_MAJOR 1
#define UCI_INFO_MODULES_MINOR 22

/* A variable of UCX, and who says so: "environment", or a ucx.conf */
typedef struct uci_info_variable {
    const char *name;
    char value[PATH_MAX];
    char source[PATH_MAX]; /* "": nobody */
} uci_info_variable_t;

typedef struct uci_info_state {
    char ucx_version[64], ucx_library[PATH_MAX], uci_version[128], uci_library[PATH_MAX], way[16], marked[8],
            status[128];
    char said[2048]; /* by the probe, on its standard error */
    int code;
    uci_info_variable_t plugin_path, modules;
    uci_info_mpi_t *mpis;
    unsigned mpis_count, advice_count;
    char *advice[UCI_INFO_ADVICE];
} uci_info_state_t;

static void uci_info_advise(uci_info_state_t *state, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void uci_info_advise(uci_info_state_t *state, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if ((state->advice_count < UCI_INFO_ADVICE) && (vasprintf(&state->advice[state->advice_count], fmt, args) >= 0)) {
        ++state->advice_count;
    }
    va_end(args);
}

static void uci_info_keep_answer(uci_info_state_t *state, const char *line)
{
    const struct {
        const char *name;
        char *text;
        size_t size;
    } answers[] = {{"ucx_version: ", state->ucx_version, sizeof(state->ucx_version)},
                   {"ucx_library: ", state->ucx_library, sizeof(state->ucx_library)},
                   {"uci_version: ", state->uci_version, sizeof(state->uci_version)},
                   {"uci_library: ", state->uci_library, sizeof(state->uci_library)},
                   {"way: ", state->way, sizeof(state->way)},
                   {"marked: ", state->marked, sizeof(state->marked)},
                   {"status: ", state->status, sizeof(state->status)}};
    size_t i;

    for (i = 0; i < uci_array_size(answers); ++i) {
        if (strncmp(line, answers[i].name, strlen(answers[i].name)) == 0) {
            snprintf(answers[i].text, answers[i].size, "%.*s", (int)strcspn(line + strlen(answers[i].name), "\n"),
                     line + strlen(answers[i].name));
            return;
        }
    }
    snprintf(state->said + strlen(state->said), sizeof(state->said) - strlen(state->said), "%s", line);
}

/* It is to leave no files behind, nor to end because it is not protected */
static void uci_info_become_probe(const char *path, int output)
{
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    setenv("UCI_STATS", "", 1);
    setenv("UCI_EVENTS", "", 1);
    setenv("UCI_LIVE", "off", 1);
    setenv("UCI_FAULT", "", 1);
    setenv("UCI_BANNER", "off", 1);
    setenv("UCI_REQUIRE", "off", 1);
    execl(path, path, NULL);
    _exit(127);
}

static void uci_info_ask_probe(uci_info_state_t *state)
{
    static const char *const folders[] = {".", "../" UCI_INFO_LIBEXECDIR "/uci", NULL};
    char path[PATH_MAX], line[PATH_MAX + 64];
    int ends[2];
    FILE *stream;
    pid_t pid;

    if (!uci_find_beside(folders, "uci_probe", path, sizeof(path)) || (pipe(ends) != 0)) {
        snprintf(state->said, sizeof(state->said), "uci_probe is not where it is built or installed with uci_info");
        return;
    }
    pid = fork();
    if (pid == 0) {
        uci_info_become_probe(path, ends[1]);
    }
    close(ends[1]);
    stream = fdopen(ends[0], "r");
    while ((stream != NULL) && (fgets(line, sizeof(line), stream) != NULL)) {
        uci_info_keep_answer(state, line);
    }
    if (stream != NULL) {
        fclose(stream);
    }
    waitpid(pid, NULL, 0);
}

static bool uci_info_keep_line(const char *path, const char *line, void *arg)
{
    uci_info_variable_t *variable = arg;
    size_t length                 = strlen(variable->name);
    const char *value             = line + length;

    if (strncmp(line, variable->name, length) == 0) {
        value += strspn(value, " \t");
        if (*value == '=') {
            ++value;
            snprintf(variable->value, sizeof(variable->value), "%s", value + strspn(value, " \t"));
            snprintf(variable->source, sizeof(variable->source), "%s", path);
        }
    }
    return false; /* the last one wins */
}

static void uci_info_find_variable(const uci_info_state_t *state, uci_info_variable_t *variable)
{
    const char *value = getenv(variable->name);

    if (value != NULL) {
        snprintf(variable->value, sizeof(variable->value), "%s", value);
        snprintf(variable->source, sizeof(variable->source), "environment");
        return;
    }
    uci_ucx_conf_for_each_line(state->ucx_library, uci_info_keep_line, variable);
}

/*
 * Judging: what is wrong, and how to change it
 */

static bool uci_info_loads_modules(const char *version)
{
    unsigned major = 0, minor = 0;

    sscanf(version, "%u.%u", &major, &minor);
    return (major > UCI_INFO_MODULES_MAJOR) || ((major == UCI_INFO_MODULES_MAJOR) && (minor >= UCI_INFO_MODULES_MINOR));
}

/* UCX does not say that it has found nothing there */
static void uci_info_judge_plugin_path(uci_info_state_t *state)
{
    const uci_info_variable_t *path = &state->plugin_path;
    char pattern[PATH_MAX + 32];
    glob_t files;

    if (path->source[0] == '\0') {
        return;
    }
    if (!uci_info_loads_modules(state->ucx_version)) {
        uci_info_advise(
                state,
                "UCX_PLUGIN_PATH=%s (%s) does nothing: UCX %s loads no modules from there, UCX 1.22 or later does; "
                "preload the library instead",
                path->value, path->source, state->ucx_version);
        return;
    }
    snprintf(pattern, sizeof(pattern), "%s/" UCI_INFO_MODULE_FILE "*", path->value);
    if (access(path->value, X_OK) != 0) {
        uci_info_advise(state, "UCX_PLUGIN_PATH=%s (%s) is wrong: %s; UCX does not say so", path->value, path->source,
                        strerror(errno));
    } else if (glob(pattern, 0, NULL, &files) != 0) {
        uci_info_advise(state,
                        "UCX_PLUGIN_PATH=%s (%s) is wrong: there is no " UCI_INFO_MODULE_FILE ".0; UCX does not say so",
                        path->value, path->source);
    } else {
        globfree(&files);
    }
}

static void uci_info_judge_modules(uci_info_state_t *state)
{
    const uci_info_variable_t *modules = &state->modules;
    bool negated                       = modules->value[0] == '^';

    if ((modules->source[0] != '\0') && (strcmp(modules->value, "all") != 0) &&
        ((strstr(modules->value, "uci") != NULL) == negated)) {
        uci_info_advise(state, "UCX_MODULES=%s (%s) keeps the module uci out", modules->value, modules->source);
    }
}

static void uci_info_judge_preload(uci_info_state_t *state)
{
    const char *preload = getenv("LD_PRELOAD");
    char *list          = strdup((preload != NULL) ? preload : ""), *rest, *path;

    for (path = (list != NULL) ? strtok_r(list, ": ", &rest) : NULL; path != NULL; path = strtok_r(NULL, ": ", &rest)) {
        if ((strchr(path, '/') != NULL) && (access(path, R_OK) != 0)) {
            uci_info_advise(state, "LD_PRELOAD names %s, which can't be loaded: %s", path, strerror(errno));
        }
    }
    free(list);
}

static void uci_info_judge_off(uci_info_state_t *state)
{
    static const char *const folders[] = {"..", "../lib", "../" UCI_INFO_LIBDIR, NULL};
    char path[PATH_MAX]                = "/path/to/libucx_integrity.so", real[PATH_MAX];

    if (uci_find_beside(folders, "libucx_integrity.so", path, sizeof(path)) && (realpath(path, real) != NULL)) {
        memcpy(path, real, sizeof(path));
    }
    uci_info_judge_preload(state);
    uci_info_judge_plugin_path(state);
    uci_info_judge_modules(state);
    uci_info_advise(state, "switch it on: uci_run does it for a job; LD_PRELOAD=%s in all ranks%s", path,
                    uci_info_loads_modules(state->ucx_version)
                            ? "; or UCX_PLUGIN_PATH, in the environment or, for all jobs, in /etc/ucx/ucx.conf"
                            : "");
}

static void uci_info_judge(uci_info_state_t *state)
{
    if ((state->ucx_version[0] == '\0') || (strcmp(state->status, "ok") != 0)) {
        state->code = UCI_INFO_CHECK_UNKNOWN;
        uci_info_advise(state, "a process that uses UCX can't be started here: %s",
                        (state->status[0] != '\0')     ? state->status
                        : (state->ucx_version[0] == 0) ? "is UCX (libucp.so.0) installed?"
                                                       : "it ended at once; its words are above");
    } else if (state->uci_library[0] == '\0') {
        state->code = UCI_INFO_CHECK_OFF;
        uci_info_judge_off(state);
    } else if (strcmp(state->marked, "yes") != 0) {
        state->code = UCI_INFO_CHECK_UNPROTECTED;
        uci_info_advise(state, (uci_settings.mode == UCI_MODE_OFF)
                                       ? "UCI_MODE=off: messages go through UCX as if UCI were not there"
                                       : "UCI is loaded, and does not get to see UCX's calls");
    } else if (uci_settings.digest->id == UCI_DIGEST_NONE) {
        state->code = UCI_INFO_CHECK_UNPROTECTED;
        uci_info_advise(state, "UCI_DIGEST=none checks nothing: unset it");
    } else {
        state->code = UCI_INFO_CHECK_ON;
        uci_info_judge_preload(state);
    }
}

static void uci_info_judge_mpis(uci_info_state_t *state)
{
    const uci_info_mpi_t *mpi;
    unsigned i;

    for (i = 0; i < state->mpis_count; ++i) {
        mpi = &state->mpis[i];
        if ((state->code == UCI_INFO_CHECK_ON) && mpi->has_ucx && (mpi->uci_library[0] == '\0')) {
            uci_info_advise(state, "%s (%s) brings a UCX of its own, %s (%s), which does not load UCI: preload it",
                            mpi->name, mpi->library, mpi->ucx_version, mpi->ucx_library);
        }
        if (mpi->note[0] != '\0') {
            uci_info_advise(state, "%s (%s): %s", mpi->name, mpi->library, mpi->note);
        }
    }
}

static const char *uci_info_state_name(const uci_info_state_t *state)
{
    static const char *const names[] = {[UCI_INFO_CHECK_ON]          = "on",
                                        [UCI_INFO_CHECK_OFF]         = "off",
                                        [UCI_INFO_CHECK_UNPROTECTED] = "loaded, not protecting",
                                        [UCI_INFO_CHECK_UNKNOWN]     = "unknown"};

    return names[state->code];
}

static void uci_info_how(const uci_info_state_t *state, char *text, size_t size)
{
    if (state->uci_library[0] == '\0') {
        snprintf(text, size, "not loaded");
    } else if (strcmp(state->way, "preloaded") == 0) {
        snprintf(text, size, "preloaded%s", (getenv("LD_PRELOAD") != NULL) ? " (LD_PRELOAD)" : " (/etc/ld.so.preload)");
    } else {
        snprintf(text, size, "as a UCX module (UCX_PLUGIN_PATH=%.1024s, %.1024s)", state->plugin_path.value,
                 (state->plugin_path.source[0] != '\0') ? state->plugin_path.source : "built into UCX");
    }
}

static void uci_info_print_setting(const char *name, const char *value, const char *source, void *arg)
{
    printf("setting: %s=%s # %s\n", name, value, source);
}

static void uci_info_print_said(const char *text)
{
    size_t length;

    if (*text != '\0') {
        printf("# said by a process with UCX:\n");
    }
    while (*text != '\0') {
        length = strcspn(text, "\n");
        fputs("#   ", stdout);
        fwrite(text, 1, length, stdout);
        putchar('\n');
        text += length + (text[length] == '\n');
    }
}

static void uci_info_print_text(const uci_info_state_t *state)
{
    const uci_info_mpi_t *mpi;
    char how[3 * PATH_MAX];
    unsigned i;

    uci_info_how(state, how, sizeof(how));
    printf("uci: %s\nhow: %s\n", uci_info_state_name(state), how);
    if (state->uci_library[0] != '\0') {
        printf("library: %s\nversion: %s\n", state->uci_library, state->uci_version);
    }
    printf("ucx: %s\n", (state->ucx_version[0] != '\0') ? state->ucx_version : "none");
    if (state->ucx_library[0] != '\0') {
        printf("ucx library: %s\n", state->ucx_library);
    }
    printf("mode: %s\ndigest: %s\n", uci_mode_names[uci_settings.mode], uci_settings.digest->name);
    uci_settings_for_each_set(uci_info_print_setting, NULL);
    for (i = 0; i < state->mpis_count; ++i) {
        mpi = &state->mpis[i];
        printf("mpi: %s, %s: ", mpi->name, mpi->library);
        if (mpi->has_ucx) {
            printf("%s UCI, UCX %s, %s\n", (mpi->uci_library[0] != '\0') ? "with" : "WITHOUT", mpi->ucx_version,
                   mpi->ucx_library);
        } else {
            printf("%s\n", (mpi->error[0] != '\0') ? mpi->error : "does not use UCX");
        }
    }
    uci_info_print_said(state->said);
    for (i = 0; i < state->advice_count; ++i) {
        printf("# %s\n", state->advice[i]);
    }
    printf("# never verified: one-sided communication that an RDMA adapter does, or in shared memory, which is counted;\n"
           "# files, and what does not go through UCX\n");
}

static void uci_info_json_member(const char *name, const char *value, const char *end)
{
    printf("\"%s\": ", name);
    if (value[0] == '\0') {
        printf("null%s", end);
    } else {
        uci_json_write_string(stdout, value);
        printf("%s", end);
    }
}

static void uci_info_json_setting(const char *name, const char *value, const char *source, void *arg)
{
    bool *is_first = arg;

    printf("%s\n  ", *is_first ? "" : ",");
    uci_json_write_string(stdout, name);
    printf(": {");
    uci_info_json_member("value", value, ", ");
    uci_info_json_member("source", source, "}");
    *is_first = false;
}

static void uci_info_json_mpi(const uci_info_mpi_t *mpi)
{
    printf("\n  {");
    uci_info_json_member("name", mpi->name, ", ");
    uci_info_json_member("library", mpi->library, ", ");
    uci_info_json_member("ucx_version", mpi->ucx_version, ", ");
    uci_info_json_member("ucx_library", mpi->ucx_library, ", ");
    uci_info_json_member("uci_library", mpi->uci_library, ", ");
    uci_info_json_member("error", mpi->error, ", ");
    uci_info_json_member("note", mpi->note, "}");
}

static void uci_info_print_json(const uci_info_state_t *state)
{
    char how[3 * PATH_MAX];
    bool is_first = true;
    unsigned i;

    uci_info_how(state, how, sizeof(how));
    printf("{\n \"uci_info_check\": 1, \"on\": %s, ", (state->code == UCI_INFO_CHECK_ON) ? "true" : "false");
    uci_info_json_member("state", uci_info_state_name(state), ", ");
    uci_info_json_member("how", how, ",\n ");
    uci_info_json_member("way", state->way, ", ");
    uci_info_json_member("uci_library", state->uci_library, ", ");
    uci_info_json_member("uci_version", state->uci_version, ",\n ");
    uci_info_json_member("ucx_version", state->ucx_version, ", ");
    uci_info_json_member("ucx_library", state->ucx_library, ",\n ");
    uci_info_json_member("plugin_path", state->plugin_path.value, ", ");
    uci_info_json_member("plugin_path_source", state->plugin_path.source, ",\n ");
    uci_info_json_member("mode", uci_mode_names[uci_settings.mode], ", ");
    uci_info_json_member("digest", uci_settings.digest->name, ",\n \"settings\": {");
    uci_settings_for_each_set(uci_info_json_setting, &is_first);
    printf("},\n \"mpis\": [");
    for (i = 0; i < state->mpis_count; ++i) {
        printf("%s", (i > 0) ? "," : "");
        uci_info_json_mpi(&state->mpis[i]);
    }
    printf("],\n \"advice\": [");
    for (i = 0; i < state->advice_count; ++i) {
        printf("%s\n  ", (i > 0) ? "," : "");
        uci_json_write_string(stdout, state->advice[i]);
    }
    printf("],\n ");
    uci_info_json_member("said", state->said, "\n}\n");
}

int uci_info_check(bool as_json)
{
    uci_info_state_t *state = calloc(1, sizeof(*state));
    uci_info_mpi_t *mpis = mmap(NULL, UCI_INFO_MPIS * sizeof(*mpis), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                                -1, 0);
    unsigned i;
    int code;

    if ((state == NULL) || (mpis == MAP_FAILED)) {
        errx(UCI_INFO_CHECK_UNKNOWN, "out of memory");
    }
    uci_settings_read(); /* an error is logged, and the process we ask stops at it */
    state->plugin_path.name = "UCX_PLUGIN_PATH";
    state->modules.name     = "UCX_MODULES";
    uci_info_ask_probe(state);
    uci_info_find_variable(state, &state->plugin_path);
    uci_info_find_variable(state, &state->modules);
    state->mpis       = mpis;
    state->mpis_count = uci_info_find_mpis(mpis, UCI_INFO_MPIS);
    uci_info_judge(state);
    uci_info_judge_mpis(state);
    (as_json ? uci_info_print_json : uci_info_print_text)(state);
    code = state->code;
    for (i = 0; i < state->advice_count; ++i) {
        free(state->advice[i]);
    }
    munmap(mpis, UCI_INFO_MPIS * sizeof(*mpis));
    free(state);
    return code;
}
