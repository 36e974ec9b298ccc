/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI that sends its messages past UCX, such as Open MPI's pml/ob1: nobody calls us then, and nothing is verified. So it is asked at the end of a
 * process, and told by name.
 */
#include "plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/stats.h"
#include "settings/settings.h"
#include "util/log.h"
#include "util/process.h"

#define UCI_BYPASS_MODE "MPI's messages do not go through UCX: " /* tools/jobreport/counters.py knows it */

/* Where mca_base_component_t of Open MPI 4 and 5 has the type and the name of a component */
enum { UCI_BYPASS_TYPE = 40, UCI_BYPASS_NAME = 84 };

/* Of the MPI in this process, which may have been loaded out of our scope */
static void *uci_bypass_find(const char *name)
{
    static const char *const files[] = {"libmpi.so.40", "libmpi.so.80", "libmpi.so.12", "libmpich.so.12"};
    void *symbol                     = dlsym(RTLD_DEFAULT, name), *library;
    unsigned i;

    for (i = 0; (symbol == NULL) && (i < uci_array_size(files)); ++i) {
        library = dlopen(files[i], RTLD_NOLOAD | RTLD_LAZY);
        if (library != NULL) {
            symbol = dlsym(library, name);
            dlclose(library);
        }
    }
    return symbol;
}

static bool uci_bypass_has_mpi(void)
{
    int (*is_initialized)(int *);
    void *symbol = uci_bypass_find("PMPI_Initialized");
    int flag     = 0;

    memcpy(&is_initialized, &symbol, sizeof(symbol));
    return (symbol != NULL) && (is_initialized(&flag) == 0) && (flag != 0);
}

/* "MPICH Device:          ch4:ofi" */
static const char *uci_bypass_mpich(const char *version, char *text, size_t size)
{
    const char *device = strstr(version, "MPICH Device:");

    if (device == NULL) {
        return "this MPI does not use it";
    }
    device += strlen("MPICH Device:");
    device += strspn(device, " \t");
    snprintf(text, size, "MPICH's device is %.*s; one that is built for ch4:ucx is needed",
             (int)strcspn(device, " \t\n"), device);
    return text;
}

/* @return which component of MPI takes its messages, and what to do; NULL: they go through UCX, as far as can be seen */
static const char *uci_bypass_component(char *text, size_t size)
{
    const char *pml    = uci_bypass_find("mca_pml_base_selected_component");
    char version[8192] = ""; /* MPI_MAX_LIBRARY_VERSION_STRING */
    int (*get_version)(char *, int *);
    int length;
    void *symbol;

    if ((pml != NULL) && (strcmp(pml + UCI_BYPASS_TYPE, "pml") == 0)) {
        if (strcmp(pml + UCI_BYPASS_NAME, "ucx") == 0) {
            return NULL;
        }
        snprintf(
                text, size,
                "Open MPI's pml is %.16s; 'mpirun --mca pml ucx' sends them there, as uci_run does unless told otherwise",
                pml + UCI_BYPASS_NAME);
        return text;
    }
    symbol = uci_bypass_find("PMPI_Get_library_version");
    memcpy(&get_version, &symbol, sizeof(symbol));
    if (uci_plugin_is_ready || (symbol == NULL) || (get_version(version, &length) != 0)) {
        return NULL;
    }
    return uci_bypass_mpich(version, text, size);
}

/* With UCI_REQUIRE=on the process fails, after what it has printed */
static void uci_bypass_tell(const char *component)
{
    static char mode[256];

    snprintf(mode, sizeof(mode), UCI_BYPASS_MODE "%s", component);
    uci_stats_set_info("none", mode, "none");
    uci_stats_report(uci_settings.stats);
    if ((uci_process_rank() <= 0) || uci_settings.require) { /* the first one that fails ends the others */
        uci_warn("%s is not protected by UCI. %s%s", uci_process_name(), mode,
                 uci_settings.require ? "; it fails for that (UCI_REQUIRE=on)" : "");
    }
    if (uci_settings.require) {
        fflush(NULL);
        _exit(EXIT_FAILURE);
    }
}

static pid_t uci_bypass_pid; /* a child that it forks has its MPI, and uses none */

/* One-sided operations may take UCX where messages do not: OpenSHMEM's */
static bool uci_bypass_has_carried(void)
{
    const uci_stats_t *sums = uci_stats_outside;

    return (sums->messages_sent | sums->messages_received | sums->stream_sent | sums->put_sent | sums->get_sent |
            sums->atomic_sent | sums->rma_memory | sums->passthrough_am | sums->passthrough_put |
            sums->passthrough_get | sums->passthrough_atomic) != 0;
}

static void uci_bypass_look(void)
{
    const char *component;
    char text[192];

    if ((getpid() != uci_bypass_pid) || uci_bypass_has_carried() || !uci_bypass_has_mpi()) {
        return;
    }
    component = uci_bypass_component(text, sizeof(text));
    if ((component != NULL) && (uci_settings_read() == UCI_OK) && (uci_settings.mode != UCI_MODE_OFF)) {
        uci_bypass_tell(component);
    }
}

static __attribute__((constructor)) void uci_bypass_watch(void)
{
    uci_bypass_pid = getpid();
    atexit(uci_bypass_look);
}
