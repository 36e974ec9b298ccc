/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_probe: a process that uses UCX as any program does, linked with it and knowing nothing of UCI. uci_info --check starts it in the
 * present environment, and so learns what happens to others: "name: value" lines.
 */
#include "info_attached.h"
#include "base/wire.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#define UCI_PROBE_SECONDS 30 /* broken hardware must not keep it for ever */

/* Does the address that peers get of this worker say that it has UCI? */
static int uci_probe_is_marked(ucp_worker_h worker)
{
    ucp_address_t *address;
    size_t length;
    uci_mark_t mark = {0};

    if (ucp_worker_get_address(worker, &address, &length) != UCS_OK) {
        return 0;
    }
    memcpy(&mark, address, (length < sizeof(mark)) ? length : sizeof(mark));
    ucp_worker_release_address(worker, address);
    return mark.magic == UCI_MARK_MAGIC;
}

static ucs_status_t uci_probe_use_ucx(int *marked_p)
{
    ucp_params_t params               = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_worker_params_t worker_params = {.field_mask = 0};
    ucp_context_h context;
    ucp_worker_h worker;
    ucs_status_t status;

    status = ucp_init(&params, NULL, &context);
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_worker_create(context, &worker_params, &worker);
    if (status == UCS_OK) {
        *marked_p = uci_probe_is_marked(worker);
        ucp_worker_destroy(worker);
    }
    ucp_cleanup(context);
    return status;
}

/* Preloaded, its functions are found before UCX's */
static const char *uci_probe_way(const char *path)
{
    void *symbol = dlsym(RTLD_DEFAULT, "ucp_worker_create");
    Dl_info info;

    return ((symbol != NULL) && (dladdr(symbol, &info) != 0) && (strcmp(info.dli_fname, path) == 0)) ? "preloaded"
                                                                                                     : "module";
}

int main(void)
{
    char path[PATH_MAX];
    const char *version;
    ucs_status_t status;
    int marked = 0;
    Dl_info info;

    alarm(UCI_PROBE_SECONDS);
    printf("ucx_version: %s\n", ucp_get_version_string());
    if (dladdr(dlsym(RTLD_DEFAULT, "ucp_get_version_string"), &info) != 0) {
        printf("ucx_library: %s\n", info.dli_fname);
    }
    fflush(stdout); /* UCI may end this process */
    status  = uci_probe_use_ucx(&marked);
    version = uci_info_find_attached(path, sizeof(path));
    if (version != NULL) {
        printf("uci_version: %s\nuci_library: %s\nway: %s\n", version, path, uci_probe_way(path));
    }
    printf("marked: %s\nstatus: %s\n", marked ? "yes" : "no", (status == UCS_OK) ? "ok" : ucs_status_string(status));
    return (status == UCS_OK) ? EXIT_SUCCESS : EXIT_FAILURE;
}
