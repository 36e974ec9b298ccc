/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_tune: measure this machine for UCI, and write the profile that its processes load. docs/man/uci_tune.1
 *
 * Compiled once without MPI, and once for each MPI (with UCI_TUNE_MPI its name). The user starts the first: alone it
 * measures the CPU; as a rank of a job it becomes the program of that MPI, with UCI preloaded.
 */
#include "beside.h"
#include "options.h"
#include "settings/settings.h"
#include "tune.h"
#include "util/file.h"

#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef UCI_TUNE_MPI
#include <mpi.h>
#define UCI_TUNE_IS_RANK true
#else
#define UCI_TUNE_IS_RANK false
#endif

#define UCI_TUNE_TRY "\nTry 'uci_tune --help'."

static const char uci_tune_help[] =
        "Usage: uci_tune [options]\n"
        "       mpirun -np N uci_tune [options]\n"
        "Measure this machine for UCI and write a profile that all processes with UCI load when they start.\n"
        "\n"
        "Alone: digests and copies on this CPU. As a job of 2 or more ranks (Open MPI, MPICH): also the ways\n"
        "messages can take from rank 0 to a rank on the same host and to one on another host, over the\n"
        "transports in use (UCX_TLS), and what registering a buffer costs; what a profile says of other\n"
        "transports is kept.\n"
        "\n"
        "  -o, --output FILE   Profile to write; by default where processes of this machine and user look for it\n"
        "  -n, --no-write      Measure and show only\n"
        "  -s, --show[=FILE]   Show a profile, and what is chosen by it, instead of measuring\n"
        "  -j, --json FILE     Write profile and choices as JSON ('-': on stdout, instead of tables)\n"
        "  -p, --plot FILE     Draw bandwidth by size, and the choices, as SVG\n"
        "  -P, --paths-only    Keep what the profile says of digests and copies, if it does, and measure paths\n"
        "  -m, --max-size SIZE Measure paths with messages of up to SIZE bytes (k, m: KiB, MiB), where the network is slow\n"
        "  -q, --quick         Fewer sizes and shorter measurements: a few seconds\n"
        "  -L, --max-loss P    Write no profile whose choices lose more than P percent to the best measured (100):\n"
        "                      the machine was busy\n"
        "  -r, --remove        Remove the profile, or the FILE of --output, instead of measuring\n"
        "  -f, --force         Overwrite a profile of another machine or UCX; write one that is noise\n"
        "  -h, --help          Show this help\n"
        "      --version       Show version, revision, protocol and the UCX built with\n"
        "\n"
        "Examples:\n"
        "  uci_tune --plot tune.svg                     this CPU, about a minute\n"
        "  mpirun.mpich -np 2 uci_tune                  and the paths between two ranks of this host\n"
        "  mpirun.openmpi -np 2 --map-by node --mca pml ucx uci_tune\n"
        "                                               between two hosts\n"
        "  sudo install -m 644 -t /etc/uci ~/.cache/uci/profile-*.json\n"
        "                                               for all users of this machine\n";

static tune_options_t uci_tune_options = {.max_size = SIZE_MAX, .max_loss = TUNE_MAX_LOSS};

static void uci_tune_take_max_size(const char *text)
{
    if (uci_parse_size(text, false, &uci_tune_options.max_size) != UCI_OK) {
        errx(UCI_OPTIONS_FAILED, "'%s' is no size: expected bytes, as 64k or 1m" UCI_TUNE_TRY, text);
    }
}

static void uci_tune_take_max_loss(const char *text)
{
    char *end;
    double percent = strtod(text, &end);

    if ((end == text) || (*end != '\0') || !(percent >= 0)) {
        errx(UCI_OPTIONS_FAILED, "'%s' is no percentage: expected a number, as 50" UCI_TUNE_TRY, text);
    }
    uci_tune_options.max_loss = percent / 100;
}

static const uci_option_t uci_tune_option_table[] = {{"output", 'o', .text = &uci_tune_options.output},
                                                     {"no-write", 'n', .flag = &uci_tune_options.no_write},
                                                     {"show", 's', .text = &uci_tune_options.show, .missing = ""},
                                                     {"json", 'j', .text = &uci_tune_options.json},
                                                     {"plot", 'p', .text = &uci_tune_options.plot},
                                                     {"quick", 'q', .flag = &uci_tune_options.quick},
                                                     {"paths-only", 'P', .flag = &uci_tune_options.paths_only},
                                                     {"max-size", 'm', .take = uci_tune_take_max_size},
                                                     {"max-loss", 'L', .take = uci_tune_take_max_loss},
                                                     {"remove", 'r', .flag = &uci_tune_options.remove},
                                                     {"force", 'f', .flag = &uci_tune_options.force},
                                                     {0}};

/* Of the UCX that programs find here; "" if there is none */
static const char *uci_tune_ucx_version(void)
{
    void *library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_LOCAL);
    const char *(*get_version_string)(void);

    if (library == NULL) {
        return "";
    }
    get_version_string = (const char *(*)(void))dlsym(library, "ucp_get_version_string");
    return (get_version_string != NULL) ? get_version_string() : "";
}

/* Of srun --mpi=pmix, which says no more to Open MPI's ranks; one task is a shell of its, and may be for anything */
static bool uci_tune_is_slurm_task(void)
{
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS");

    return (getenv("PMIX_RANK") != NULL) && (tasks != NULL) && (strtoul(tasks, NULL, 10) > 1);
}

/* Which MPI has started this process as a rank of a job; NULL: none has */
static const char *uci_tune_launcher(void)
{
    if (getenv("OMPI_COMM_WORLD_SIZE") != NULL) {
        return "openmpi";
    }
    if (getenv("PMI_SIZE") != NULL) {
        return "mpich";
    }
    return uci_tune_is_slurm_task() ? "openmpi" : NULL;
}

static void uci_tune_preload(const char *library)
{
    const char *before = getenv("LD_PRELOAD");
    char text[2 * PATH_MAX];

    snprintf(text, sizeof(text), "%s%s%s", library, (before != NULL) ? ":" : "", (before != NULL) ? before : "");
    setenv("LD_PRELOAD", text, 1);
    setenv("UCI_EAGER_MAX", "32k", 1); /* the most: less is forced later */
    setenv("UCI_PROFILE", "none", 1);
    setenv("MPIR_CVAR_NOLOCAL", "1", 1); /* MPICH: everything through UCX */
}

/* Start the program of that MPI in this process's place, with UCI. */
static void __attribute__((noreturn)) uci_tune_become_rank(const char *mpi, char **argv)
{
    static const char *const programs[]  = {".", NULL};
    static const char *const libraries[] = {"..", "../lib", "../" UCI_TUNE_LIBDIR, NULL};
    char program[PATH_MAX], library[PATH_MAX], name[32];

    snprintf(name, sizeof(name), "uci_tune.%s", mpi);
    if (!uci_find_beside(programs, name, program, sizeof(program))) {
        errx(EXIT_FAILURE, "UCI was built without %s: there is no %s beside this program", mpi, name);
    }
    if (!uci_find_beside(libraries, "libucx_integrity.so", library, sizeof(library))) {
        errx(EXIT_FAILURE, "libucx_integrity.so is not where it is built or installed with this program");
    }
    uci_tune_preload(library);
    execv(program, argv);
    err(EXIT_FAILURE, "cannot start %s", program);
}

/*
 * Measuring, and what comes of it
 */

/* The profile to write, or to remove */
static char uci_tune_path[PATH_MAX];

/* @return false after saying why there is none */
static bool uci_tune_find_path(const tune_options_t *options, const tune_result_t *result)
{
    size_t size = sizeof(uci_tune_path);

    if (options->output != NULL) {
        if ((size_t)snprintf(uci_tune_path, size, "%s", options->output) >= size) {
            fprintf(stderr, "uci_tune: the name that --output gives is too long\n");
            return false;
        }
        return true;
    }
    if (uci_tuner_profile_path(&result->profile.machine, uci_tune_path, size) != UCI_OK) {
        fprintf(stderr, "uci_tune: neither XDG_CACHE_HOME nor HOME is set: say where to write with --output\n");
        return false;
    }
    return true;
}

/* Only the folder that processes look in is made: one that was named may be a mistake */
static bool uci_tune_has_folder(void)
{
    char folder[PATH_MAX];

    strcpy(folder, uci_tune_path);
    if (access(dirname(folder), W_OK) != 0) {
        fprintf(stderr, "uci_tune: cannot write %s: %s: %s\n", uci_tune_path, folder, strerror(errno));
        return false;
    }
    return true;
}

/* @param path  NULL: nothing is to be written */
static bool uci_tune_can_write(const char *path)
{
    if ((path != NULL) && (strcmp(path, "-") != 0) && (uci_file_check_writable(path) != UCI_OK)) {
        fprintf(stderr, "uci_tune: cannot write %s: %s\n", path, uci_file_error(errno));
        return false;
    }
    return true;
}

/* @return false after saying why the profile there is not to be lost: asked before measuring, not after */
static bool uci_tune_may_write(const tune_options_t *options, const tune_result_t *result)
{
    uci_profile_t old;
    char reason[512];
    bool fits;

    if (!uci_tune_can_write(options->json) || !uci_tune_can_write(options->plot)) {
        return false;
    }
    if (options->no_write) {
        return true;
    }
    if (!uci_tune_find_path(options, result) || ((options->output != NULL) && !uci_tune_has_folder())) {
        return false;
    }
    if (options->force || (uci_profile_load(uci_tune_path, &old) != UCI_OK)) {
        return true; /* none, or one that nobody can use: that has been said */
    }
    fits = uci_profile_fits(&old, &result->profile.machine, reason, sizeof(reason));
    uci_profile_cleanup(&old);
    if (!fits) {
        fprintf(stderr, "uci_tune: %s would be overwritten, but %s; give another name or --force\n", uci_tune_path,
                reason);
    }
    return fits;
}

/* @return true if the profile to be replaced knows digests and copies, or none is written */
static bool uci_tune_keeps_kernels(const tune_options_t *options, const tune_result_t *result)
{
    uci_profile_t old;
    char reason[512];
    bool keeps;

    if (options->no_write || !options->paths_only) {
        return options->paths_only;
    }
    if (uci_profile_load(uci_tune_path, &old) != UCI_OK) {
        return false;
    }
    keeps = uci_profile_fits(&old, &result->profile.machine, reason, sizeof(reason)) && (old.kernels_count > 0);
    uci_profile_cleanup(&old);
    return keeps;
}

/* What processes of this machine go by until now */
static void uci_tune_find_before(tune_result_t *result)
{
    const uci_profile_machine_t *machine = &result->profile.machine;
    char path[PATH_MAX], reason[512];

    if ((uci_tuner_profile_path(machine, path, sizeof(path)) == UCI_OK) &&
        (uci_profile_load(path, &result->before) == UCI_OK)) {
        if (uci_profile_fits(&result->before, machine, reason, sizeof(reason))) {
            return;
        }
        uci_profile_cleanup(&result->before);
    }
    uci_profile_init(&result->before, "", uci_tune_ucx_version());
    result->before.created[0] = '\0';
}

static uci_status_t uci_tune_measure_cpu(const tune_options_t *options, tune_result_t *result)
{
    return uci_tune_keeps_kernels(options, result) ? UCI_OK : tune_kernels(options, result);
}

/* Take over what the profile to be replaced knows and this run does not measure */
static uci_status_t uci_tune_keep_old(tune_result_t *result)
{
    uci_profile_t old;
    uci_status_t status;
    char reason[512];

    if (uci_profile_load(uci_tune_path, &old) != UCI_OK) {
        return UCI_OK;
    }
    status = uci_profile_fits(&old, &result->profile.machine, reason, sizeof(reason))
                     ? uci_profile_merge(&result->profile, &old)
                     : UCI_OK;
    uci_profile_cleanup(&old);
    return status;
}

static int uci_tune_tell(const tune_options_t *options, const tune_result_t *result)
{
    uci_status_t status = UCI_OK;

    if ((options->json == NULL) || (strcmp(options->json, "-") != 0)) {
        tune_print(result);
    }
    if (options->json != NULL) {
        status = tune_write_json(result, options->json);
    }
    if ((options->plot != NULL) && (status == UCI_OK)) {
        status = tune_write_plot(result, options->plot);
    }
    if ((fflush(stdout) != 0) || ferror(stdout)) { /* a full disk must not look like success */
        fprintf(stderr, "uci_tune: cannot write: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    return (status == UCI_OK) ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Processes would follow it, and be slower than without a profile */
static bool uci_tune_is_noise(const tune_options_t *options, const tune_result_t *result)
{
    double worst = tune_worst_loss(result);

    if (options->force || options->no_write || (worst <= options->max_loss)) {
        return false;
    }
    fprintf(stderr,
            "uci_tune: no profile is written: its choices lose up to %.0f %% to the best measured, which is noise (limit: %.0f %%, "
            "--max-loss); measure again on an idle machine, or give --force\n",
            100 * worst, 100 * options->max_loss);
    return true;
}

static int uci_tune_finish(const tune_options_t *options, tune_result_t *result)
{
    if (uci_tune_is_noise(options, result)) {
        uci_tune_tell(options, result);
        return EXIT_FAILURE;
    }
    if (!options->no_write) {
        if ((uci_tune_keep_old(result) != UCI_OK) || (uci_profile_save(&result->profile, uci_tune_path) != UCI_OK)) {
            return EXIT_FAILURE;
        }
        fprintf(stderr, "uci_tune: profile written: %s\n", uci_tune_path);
    }
    return uci_tune_tell(options, result);
}

static int uci_tune_show(const tune_options_t *options, tune_result_t *result)
{
    uci_profile_machine_t machine = result->profile.machine;
    char path[PATH_MAX], reason[512];

    if (options->show[0] != '\0') {
        snprintf(path, sizeof(path), "%s", options->show);
    } else if (uci_tuner_profile_path(&machine, path, sizeof(path)) != UCI_OK) {
        fprintf(stderr, "uci_tune: neither XDG_CACHE_HOME nor HOME is set: name the profile\n");
        return EXIT_FAILURE;
    }
    switch (uci_profile_load(path, &result->profile)) {
    case UCI_OK:
        break;
    case UCI_ERR_NO_ELEM:
        fprintf(stderr, "uci_tune: there is no profile %s; 'uci_tune' makes one\n", path);
        return EXIT_FAILURE;
    default: /* has been said */
        return EXIT_FAILURE;
    }
    if (!uci_profile_fits(&result->profile, &machine, reason, sizeof(reason))) {
        fprintf(stderr, "uci_tune: processes here would refuse %s: %s\n", path, reason);
        return EXIT_FAILURE;
    }
    return uci_tune_tell(options, result);
}

/* Of other content than a profile somebody may have need */
static int uci_tune_remove(const tune_options_t *options, const tune_result_t *result)
{
    uci_profile_t old;
    uci_status_t status;

    if (!uci_tune_find_path(options, result)) {
        return EXIT_FAILURE;
    }
    status = uci_profile_load(uci_tune_path, &old); /* what is wrong with it is said */
    if (status == UCI_OK) {
        uci_profile_cleanup(&old);
    }
    if (status == UCI_ERR_NO_ELEM) {
        fprintf(stderr, "uci_tune: there is no profile %s\n", uci_tune_path);
        return EXIT_FAILURE;
    }
    if ((status != UCI_OK) && !options->force) {
        fprintf(stderr, "uci_tune: %s is not removed: it is no profile that can be read; --force removes it\n",
                uci_tune_path);
        return EXIT_FAILURE;
    }
    if (unlink(uci_tune_path) != 0) {
        fprintf(stderr, "uci_tune: cannot remove %s: %s\n", uci_tune_path, strerror(errno));
        return EXIT_FAILURE;
    }
    fprintf(stderr, "uci_tune: profile removed: %s\n", uci_tune_path);
    return EXIT_SUCCESS;
}

#ifdef UCI_TUNE_MPI
/* Rank 0 writes: the others may be on hosts that have neither its folder nor its processor */
static bool uci_tune_may_begin(const tune_options_t *options, const tune_result_t *result, int rank)
{
    int may = (rank != 0) || uci_tune_may_write(options, result);

    MPI_Bcast(&may, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return may != 0;
}

static int uci_tune_measure(const tune_options_t *options, tune_result_t *result, int rank)
{
    uci_status_t status = (rank == 0) ? uci_tune_measure_cpu(options, result) : UCI_OK;

    if (status == UCI_OK) {
        status = tune_paths(options, result);
    }
    if (status != UCI_OK) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    return (rank == 0) ? uci_tune_finish(options, result) : EXIT_SUCCESS;
}

static int uci_tune_run(const tune_options_t *options, int *argc, char ***argv, tune_result_t *result)
{
    int ret, rank, size;

    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ret = uci_tune_may_begin(options, result, rank) ? uci_tune_measure(options, result, rank) : EXIT_FAILURE;
    if ((rank == 0) && (size == 1)) {
        fprintf(stderr, "uci_tune: one rank alone has no paths: start 2 or more\n");
    }
    MPI_Finalize();
    return ret;
}
#else
static int uci_tune_run(const tune_options_t *options, int *argc, char ***argv, tune_result_t *result)
{
    if (options->paths_only) {
        fprintf(stderr, "uci_tune: there are no paths without a job: start 2 or more ranks with mpirun\n");
        return UCI_OPTIONS_FAILED;
    }
    if (!uci_tune_may_write(options, result)) {
        return EXIT_FAILURE;
    }
    return (uci_tune_measure_cpu(options, result) == UCI_OK) ? uci_tune_finish(options, result) : EXIT_FAILURE;
}
#endif

/* What is chosen by the profile alone, not by what the job was started with: that may force what the best is measured beside */
static void uci_tune_leave_choice(bool is_measured)
{
    uci_settings.eager_max = UCI_SETTING_AUTO;
    if (is_measured) {
        uci_settings.digest     = &uci_digest_auto;
        uci_settings.chunk_size = UCI_SETTING_AUTO;
        uci_settings.path       = UCI_PATH_AUTO;
    }
}

int main(int argc, char **argv)
{
    static tune_result_t result;
    const tune_options_t *options = &uci_tune_options;
    const char *mpi;
    int ret;

    uci_options_read(argc, argv, uci_tune_option_table, uci_tune_help);
    if (optind < argc) {
        errx(UCI_OPTIONS_FAILED, "unexpected argument: %s" UCI_TUNE_TRY, argv[optind]);
    }
    mpi = UCI_TUNE_IS_RANK ? NULL : uci_tune_launcher();
    if ((mpi != NULL) && (options->show == NULL) && !options->remove) {
        uci_tune_become_rank(mpi, argv); /* also where UCI is preloaded into all programs, and so into this one */
    }
    if (uci_settings_read() != UCI_OK) {
        return EXIT_FAILURE;
    }
    uci_tune_leave_choice(options->show == NULL);
    uci_profile_init(&result.profile, "uci_tune", uci_tune_ucx_version());
    uci_tune_find_before(&result);
    if (options->remove) {
        ret = uci_tune_remove(options, &result);
    } else if (options->show != NULL) {
        ret = uci_tune_show(options, &result);
    } else {
        ret = uci_tune_run(options, &argc, &argv, &result);
    }
    uci_profile_cleanup(&result.profile);
    uci_profile_cleanup(&result.before);
    return ret;
}
