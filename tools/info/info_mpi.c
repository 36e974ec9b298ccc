/* SPDX-License-Identifier: BSD-3-Clause */
#include "info_mpi.h"
#include "util/file.h"
#include "info_attached.h"

#include <dlfcn.h>
#include <glob.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define UCI_INFO_MPI_SECONDS 20

/* What of an MPI uses UCX, below a folder of libraries. Open MPI has components, or, built otherwise, all in one library; MPICH's
 * library has had both names */
static const struct {
    const char *mpi, *pattern;
} uci_info_mpi_files[] = {{"Open MPI", "openmpi/mca_pml_ucx.so"},
                          {"Open MPI", "openmpi/lib/openmpi*/mca_pml_ucx.so"},
                          {"Open MPI", "libmpi.so.40"},
                          {"MPICH", "libmpich.so.12"},
                          {"MPICH", "libmpi.so.12"}};

/* Of a folder PREFIX/bin in PATH */
static const char *const uci_info_lib_folders[] = {"../lib", "../lib64", "../lib/*-linux-gnu"};

typedef struct uci_info_search {
    uci_info_mpi_t *mpis;
    unsigned count, max;
} uci_info_search_t;

/* Components of an Open MPI whose library has been found by another name, or the same file by another path, are not new */
static bool uci_info_is_known(const uci_info_search_t *search, const char *mpi, const char *path, bool is_component)
{
    char folder[PATH_MAX];
    size_t length;
    unsigned i;

    snprintf(folder, sizeof(folder), "%s", path);
    dirname(folder);
    length = strlen(folder);
    for (i = 0; i < search->count; ++i) {
        if (strcmp(search->mpis[i].library, path) == 0) {
            return true;
        }
        if (!is_component && (strcmp(search->mpis[i].name, mpi) == 0) &&
            (strncmp(search->mpis[i].library, folder, length) == 0) && (search->mpis[i].library[length] == '/')) {
            return true;
        }
    }
    return false;
}

static void uci_info_add_files(uci_info_search_t *search, const char *folder)
{
    char pattern[PATH_MAX], path[PATH_MAX];
    glob_t files;
    size_t i, j;

    for (i = 0; i < sizeof(uci_info_mpi_files) / sizeof(uci_info_mpi_files[0]); ++i) {
        snprintf(pattern, sizeof(pattern), "%s/%s", folder, uci_info_mpi_files[i].pattern);
        if (glob(pattern, 0, NULL, &files) != 0) {
            continue;
        }
        for (j = 0; (j < files.gl_pathc) && (search->count < search->max); ++j) {
            if ((realpath(files.gl_pathv[j], path) != NULL) &&
                !uci_info_is_known(search, uci_info_mpi_files[i].mpi, path,
                                   strstr(uci_info_mpi_files[i].pattern, "mca_") != NULL)) {
                memset(&search->mpis[search->count], 0, sizeof(*search->mpis));
                search->mpis[search->count].name = uci_info_mpi_files[i].mpi;
                snprintf(search->mpis[search->count++].library, PATH_MAX, "%s", path);
            }
        }
        globfree(&files);
    }
}

static void uci_info_for_each_folder(const char *list, uci_info_search_t *search, bool is_path)
{
    char *copy = strdup((list != NULL) ? list : ""), *rest, *folder, name[PATH_MAX];
    size_t i;

    if (copy == NULL) {
        return;
    }
    for (folder = strtok_r(copy, ":", &rest); folder != NULL; folder = strtok_r(NULL, ":", &rest)) {
        if (!is_path) {
            uci_info_add_files(search, folder);
            continue;
        }
        for (i = 0; i < sizeof(uci_info_lib_folders) / sizeof(uci_info_lib_folders[0]); ++i) {
            snprintf(name, sizeof(name), "%s/%s", folder, uci_info_lib_folders[i]);
            uci_info_add_files(search, name);
        }
    }
    free(copy);
}

/* In a process of its own: an MPI's library is loaded, which would not go away again */
static void uci_info_load(uci_info_mpi_t *mpi)
{
    void *object = dlopen(mpi->library, RTLD_LAZY | RTLD_LOCAL);
    const char *(*get_version_string)(void);
    Dl_info info;

    if (object == NULL) {
        snprintf(mpi->error, sizeof(mpi->error), "%s", dlerror());
        return;
    }
    get_version_string = (const char *(*)(void))dlsym(object, "ucp_get_version_string");
    if ((get_version_string != NULL) && (dladdr((void *)get_version_string, &info) != 0)) {
        mpi->has_ucx = true;
        snprintf(mpi->ucx_version, sizeof(mpi->ucx_version), "%s", get_version_string());
        snprintf(mpi->ucx_library, sizeof(mpi->ucx_library), "%s", info.dli_fname);
    }
    uci_info_find_attached(mpi->uci_library, sizeof(mpi->uci_library));
}

/* The child shares the entry, and fills it in when it has got through */
static void uci_info_load_aside(uci_info_mpi_t *mpi)
{
    uci_info_mpi_t loaded = *mpi;
    pid_t pid;

    snprintf(mpi->error, sizeof(mpi->error), "loading it ended the process");
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        alarm(UCI_INFO_MPI_SECONDS);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        uci_info_load(&loaded);
        *mpi = loaded;
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

/* "pml = ^ucx", as Debian's Open MPI has it */
static bool uci_info_is_pml_off(const char *path)
{
    char line[1024];
    bool off     = false;
    FILE *stream = uci_file_open(path);

    while ((stream != NULL) && (fgets(line, sizeof(line), stream) != NULL)) {
        char *name = line + strspn(line, " \t"), *value = strchr(name, '=');

        if ((strncmp(name, "pml", 3) == 0) && (value != NULL) && (strspn(name + 3, " \t=") > 0)) {
            off = ((strchr(value, '^') != NULL) == (strstr(value, "ucx") != NULL));
        }
    }
    if (stream != NULL) {
        fclose(stream);
    }
    return off;
}

static void uci_info_note_openmpi(uci_info_mpi_t *mpi)
{
    static const char *const files[] = {"/etc/openmpi/openmpi-mca-params.conf", "%s/../../etc/openmpi-mca-params.conf"};
    const char *pml                  = getenv("OMPI_MCA_pml");
    char folder[PATH_MAX], path[2 * PATH_MAX];
    size_t i;

    if (pml != NULL) {
        if ((strchr(pml, '^') != NULL) == (strstr(pml, "ucx") != NULL)) {
            snprintf(mpi->note, sizeof(mpi->note), "OMPI_MCA_pml=%s keeps its messages from UCX: set it to ucx", pml);
        }
        return;
    }
    snprintf(folder, sizeof(folder), "%s", mpi->library);
    dirname(folder);
    for (i = 0; i < sizeof(files) / sizeof(files[0]); ++i) {
        snprintf(path, sizeof(path), files[i], folder);
        if (uci_info_is_pml_off(path)) {
            snprintf(
                    mpi->note, sizeof(mpi->note),
                    "%s switches pml/ucx off: start jobs with uci_run, or with --mca pml ucx --mca opal_common_ucx_tls any",
                    path);
            return;
        }
    }
}

static void uci_info_note_mpich(uci_info_mpi_t *mpi)
{
    const char *nolocal = getenv("MPIR_CVAR_NOLOCAL");

    if ((nolocal == NULL) || (strcmp(nolocal, "0") == 0)) {
        snprintf(
                mpi->note, sizeof(mpi->note),
                "if it was built with shared memory modules of its own (Debian's is not), it sends messages within a node past "
                "UCX: start jobs with uci_run, or set MPIR_CVAR_NOLOCAL=1");
    }
}

unsigned uci_info_find_mpis(uci_info_mpi_t *mpis, unsigned max)
{
    uci_info_search_t search = {.mpis = mpis, .max = max};
    unsigned i;

    uci_info_for_each_folder(getenv("LD_LIBRARY_PATH"), &search, false);
    uci_info_for_each_folder(getenv("PATH"), &search, true);
    uci_info_for_each_folder("/usr/local/lib:/usr/lib64:/usr/lib", &search, false);
    for (i = 0; i < search.count; ++i) {
        uci_info_load_aside(&mpis[i]);
        if (!mpis[i].has_ucx && (mpis[i].error[0] == '\0')) {
            snprintf(mpis[i].note, sizeof(mpis[i].note), "it does not use UCX: none of its messages can be protected");
        } else if (strcmp(mpis[i].name, "MPICH") == 0) {
            uci_info_note_mpich(&mpis[i]);
        } else {
            uci_info_note_openmpi(&mpis[i]);
        }
    }
    return search.count;
}
