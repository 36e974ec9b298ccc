/* SPDX-License-Identifier: BSD-3-Clause */
#include "info.h"
#include "tune/rdma.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#define UCI_INFO_VERBS_LIBRARY "libibverbs.so.1"
#define UCI_INFO_GIDS_MAX      1024 /* more than any port has */

/* libibverbs is opened at run time, so that uci_info runs where it is not installed */
typedef struct uci_info_verbs {
    struct ibv_device **(*get_device_list)(int *count_p);
    void (*free_device_list)(struct ibv_device **list);
    const char *(*get_device_name)(struct ibv_device *device);
    struct ibv_context *(*open_device)(struct ibv_device *device);
    int (*close_device)(struct ibv_context *context);
    int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attr);
    int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
    struct ibv_device **list; /* NULL: no libibverbs */
    int count;
} uci_info_verbs_t;

static void uci_info_verbs_open(uci_info_verbs_t *verbs)
{
    void *library = dlopen(UCI_INFO_VERBS_LIBRARY, RTLD_NOW | RTLD_LOCAL);

    memset(verbs, 0, sizeof(*verbs));
    if (library == NULL) {
        printf("libibverbs: none (%s)\n", dlerror());
        return;
    }
    *(void **)&verbs->get_device_list  = dlsym(library, "ibv_get_device_list");
    *(void **)&verbs->free_device_list = dlsym(library, "ibv_free_device_list");
    *(void **)&verbs->get_device_name  = dlsym(library, "ibv_get_device_name");
    *(void **)&verbs->open_device      = dlsym(library, "ibv_open_device");
    *(void **)&verbs->close_device     = dlsym(library, "ibv_close_device");
    *(void **)&verbs->query_device     = dlsym(library, "ibv_query_device");
    *(void **)&verbs->query_port       = dlsym(library, "ibv_query_port");
    if ((verbs->get_device_list == NULL) || (verbs->free_device_list == NULL) || (verbs->get_device_name == NULL) ||
        (verbs->open_device == NULL) || (verbs->close_device == NULL) || (verbs->query_device == NULL) ||
        (verbs->query_port == NULL)) {
        printf("libibverbs: unusable (%s)\n", dlerror());
        return;
    }
    verbs->list = verbs->get_device_list(&verbs->count);
    if (verbs->list == NULL) {
        printf("libibverbs: no device list (%s)\n", strerror(errno));
    }
    /* It stays loaded: what it returned points into it. */
}

static struct ibv_device *uci_info_verbs_find(const uci_info_verbs_t *verbs, const char *name)
{
    int i;

    for (i = 0; (verbs->list != NULL) && (i < verbs->count); ++i) {
        if (strcmp(verbs->get_device_name(verbs->list[i]), name) == 0) {
            return verbs->list[i];
        }
    }
    return NULL;
}

/* Can a program use the device here and now? @return the opened device, to be closed, or NULL. */
static struct ibv_context *uci_info_open_device(const uci_info_verbs_t *verbs, const char *name)
{
    struct ibv_device *device = uci_info_verbs_find(verbs, name);
    struct ibv_context *context;
    struct ibv_device_attr attr;

    printf("device: %s\n", name);
    if (device == NULL) {
        printf("%s usable: no (%s)\n", name,
               (verbs->list == NULL) ? "no libibverbs" : "libibverbs has no driver for it: see ibverbs-providers");
        return NULL;
    }
    context = verbs->open_device(device);
    if (context == NULL) {
        printf("%s usable: no (%s)\n", name, strerror(errno));
        return NULL;
    }
    printf("%s usable: yes\n", name);
    if (verbs->query_device(context, &attr) == 0) {
        printf("%s firmware: %s\n", name, attr.fw_ver);
        printf("%s registers at most: %lu regions, %lu bytes each\n", name, (unsigned long)attr.max_mr,
               (unsigned long)attr.max_mr_size);
    }
    return context;
}

/* Sysfs says "4: ACTIVE" */
static const char *uci_info_after_number(const char *text)
{
    const char *end = strstr(text, ": ");

    return (end != NULL) ? end + 2 : text;
}

static void uci_info_print_link(const char *root, const uci_rdma_port_t *port, const uci_info_verbs_t *verbs,
                                struct ibv_context *context)
{
    char state[64], phys_state[64], layer[64], rate[64];
    struct ibv_port_attr attr = {0};

    uci_rdma_port_attribute(root, port, "state", state, sizeof(state));
    uci_rdma_port_attribute(root, port, "phys_state", phys_state, sizeof(phys_state));
    uci_rdma_port_attribute(root, port, "link_layer", layer, sizeof(layer));
    uci_rdma_port_attribute(root, port, "rate", rate, sizeof(rate));
    printf("%s:%u state: %s\n", port->device, port->number, uci_info_after_number(state));
    printf("%s:%u link: %s, %s, %s\n", port->device, port->number, uci_info_after_number(phys_state), layer, rate);
    if ((context != NULL) && (verbs->query_port(context, (uint8_t)port->number, &attr) == 0)) {
        printf("%s:%u mtu: %u of %u\n", port->device, port->number, 128u << attr.active_mtu, 128u << attr.max_mtu);
    }
}

/* Empty entries of a port's table are all zeros, or cannot be read */
static void uci_info_print_gids(const char *root, const uci_rdma_port_t *port)
{
    char name[64], gid[64], type[64], netdev[64];
    unsigned i;

    for (i = 0; i < UCI_INFO_GIDS_MAX; ++i) {
        snprintf(name, sizeof(name), "gids/%u", i);
        if ((uci_rdma_port_attribute(root, port, name, gid, sizeof(gid)) != UCI_OK) ||
            (strspn(gid, "0:") == strlen(gid))) {
            continue;
        }
        snprintf(name, sizeof(name), "gid_attrs/types/%u", i);
        uci_rdma_port_attribute(root, port, name, type, sizeof(type));
        snprintf(name, sizeof(name), "gid_attrs/ndevs/%u", i);
        uci_rdma_port_attribute(root, port, name, netdev, sizeof(netdev));
        printf("%s:%u gid %u: %s%s%s%s%s\n", port->device, port->number, i, gid, (type[0] != '\0') ? ", " : "", type,
               (netdev[0] != '\0') ? ", " : "", netdev);
    }
}

static void uci_info_print_errors(const uci_rdma_port_t *port)
{
    unsigned i;

    for (i = 0; i < UCI_RDMA_COUNTERS; ++i) {
        if (port->values[i] != UINT64_MAX) {
            printf("%s:%u %s: %lu    # %s: %s\n", port->device, port->number, uci_rdma_counters[i].name,
                   (unsigned long)port->values[i], uci_rdma_counter_kind_names[uci_rdma_counters[i].kind],
                   uci_rdma_counters[i].text);
        }
    }
}

void uci_info_print_devices(const char *root)
{
    static uci_rdma_sample_t sample;
    struct ibv_context *context = NULL;
    const uci_rdma_port_t *port;
    uci_info_verbs_t verbs;
    unsigned i;

    uci_rdma_sample(root, &sample);
    if (sample.count == 0) {
        printf("rdma devices: none (no ports in %s)\n", root);
        return;
    }
    uci_info_verbs_open(&verbs);
    for (i = 0; i < sample.count; ++i) {
        port = &sample.ports[i];
        if ((i == 0) || (strcmp(port->device, sample.ports[i - 1].device) != 0)) {
            if (context != NULL) {
                verbs.close_device(context);
            }
            context = uci_info_open_device(&verbs, port->device);
        }
        uci_info_print_link(root, port, &verbs, context);
        uci_info_print_gids(root, port);
        uci_info_print_errors(port);
    }
    if (context != NULL) {
        verbs.close_device(context);
    }
    if (verbs.list != NULL) {
        verbs.free_device_list(verbs.list);
    }
}
