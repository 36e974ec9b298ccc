/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_errors.h"

#include <stdlib.h>
#include <string.h>

static uci_rdma_sample_t uci_port_errors_before; /* nothing, until it is sampled */
static bool uci_port_errors_sampled;

void uci_port_errors_init(void)
{
    if (!uci_port_errors_sampled) {
        uci_port_errors_sampled = true;
        uci_rdma_sample(UCI_RDMA_SYSFS, &uci_port_errors_before);
    }
}

const char *uci_port_errors_since(void)
{
    return uci_port_errors_sampled ? "this process began" : "boot";
}

uci_rdma_sample_t *uci_port_errors_now(void)
{
    uci_rdma_sample_t *now = malloc(sizeof(*now));

    if (now != NULL) {
        uci_rdma_sample(UCI_RDMA_SYSFS, now);
        if (now->count == 0) {
            free(now);
            now = NULL;
        }
    }
    return now;
}

void uci_port_errors_print(const uci_rdma_sample_t *now, char *text, size_t size)
{
    size_t used = 0;
    unsigned i, k;
    uint64_t rise;

    snprintf(text, size, "%s", (now != NULL) ? "none" : "");
    for (i = 0; (now != NULL) && (i < now->count); ++i) {
        for (k = 0; (k < UCI_RDMA_COUNTERS) && (used < size); ++k) {
            rise = uci_rdma_rise(&now->ports[i], k, &uci_port_errors_before);
            if (rise > 0) {
                used += (size_t)snprintf(text + used, size - used, "%s%s:%u %s %lu", (used > 0) ? ", " : "",
                                         now->ports[i].device, now->ports[i].number, uci_rdma_counters[k].name,
                                         (unsigned long)rise);
            }
        }
    }
}

static void uci_port_errors_write_port(const uci_rdma_port_t *port, uci_json_t *json)
{
    unsigned i, count = 0;
    char name[sizeof(port->device) + 16];
    uint64_t rise;

    for (i = 0; i < UCI_RDMA_COUNTERS; ++i) {
        rise = uci_rdma_rise(port, i, &uci_port_errors_before);
        if (rise == 0) {
            continue;
        }
        if (count++ == 0) {
            snprintf(name, sizeof(name), "%s:%u", port->device, port->number);
            uci_json_open(json, name, '{');
        }
        uci_json_uint(json, uci_rdma_counters[i].name, rise);
    }
    if (count > 0) {
        uci_json_close(json, '}');
    }
}

void uci_port_errors_write(const uci_rdma_sample_t *now, uci_json_t *json, const char *name)
{
    unsigned i;

    if (now == NULL) {
        uci_json_null(json, name);
        return;
    }
    uci_json_open(json, name, '{');
    for (i = 0; i < now->count; ++i) {
        uci_port_errors_write_port(&now->ports[i], json);
    }
    uci_json_close(json, '}');
}
