/* SPDX-License-Identifier: BSD-3-Clause */
#include "transports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define UCI_TRANSPORTS_LANES_MAX 64 /* UCX has up to 16, and 64 where it was built so */

/*
 * What ucp_ep_query() fills in since UCX 1.14. Declared here, for the headers may be older than the library: fields are added
 * at the end only, and UCX touches none but those whose bits are in field_mask. An older library ignores the bit.
 */
#define UCI_EP_ATTR_FIELD_TRANSPORTS (UINT64_C(1) << 3)

typedef struct uci_transport_entry {
    const char *transport_name;
    const char *device_name;
} uci_transport_entry_t;

typedef struct uci_ep_attr {
    uint64_t field_mask;
    char name[UCP_ENTITY_NAME_MAX];
    struct sockaddr_storage local_sockaddr;
    struct sockaddr_storage remote_sockaddr;
    struct {
        uci_transport_entry_t *entries;
        unsigned num_entries;
        size_t entry_size;
    } transports;
} uci_ep_attr_t;

#if UCP_API_VERSION >= UCP_VERSION(1, 14)
_Static_assert((UCI_EP_ATTR_FIELD_TRANSPORTS == UCP_EP_ATTR_FIELD_TRANSPORTS) &&
                       (offsetof(uci_ep_attr_t, transports) == offsetof(ucp_ep_attr_t, transports)) &&
                       (offsetof(uci_ep_attr_t, transports.entry_size) ==
                        offsetof(ucp_ep_attr_t, transports.entry_size)) &&
                       (offsetof(uci_transport_entry_t, device_name) == offsetof(ucp_transport_entry_t, device_name)),
               "as UCX declares it");
#else
_Static_assert(offsetof(uci_ep_attr_t, transports) == sizeof(ucp_ep_attr_t),
               "what was added comes behind what there was");
#endif

/* A word of the list, and where to look for the network's interface */
typedef struct uci_transport {
    const char *name, *device;
    int name_length, device_length;
} uci_transport_t;

static void uci_transports_add(uci_transports_t *transports, const uci_transport_t *one)
{
    size_t length = strlen(transports->list), size = sizeof(transports->list);

    if (length == 0) {
        snprintf(transports->device, sizeof(transports->device), "%.*s", one->device_length, one->device);
    } else if ((strlen(transports->device) != (size_t)one->device_length) ||
               (memcmp(transports->device, one->device, (size_t)one->device_length) != 0)) {
        transports->device[0] = '\0';
    }
    if (length + (size_t)one->name_length + 2 < size) {
        snprintf(transports->list + length, size - length, "%s%.*s", (length > 0) ? " " : "", one->name_length,
                 one->name);
    }
    if ((transports->interface[0] == '\0') && (one->name_length == 3) && (strncmp(one->name, "tcp", 3) == 0)) {
        snprintf(transports->interface, sizeof(transports->interface), "%.*s", one->device_length, one->device);
    }
}

/* A lane without a device leads a connection, and carries nothing (rdmacm) */
static void uci_transports_ask(ucp_ep_h ep, uci_transports_t *transports)
{
    uci_transport_entry_t entries[UCI_TRANSPORTS_LANES_MAX] = {{NULL, NULL}};
    uci_ep_attr_t attr                                      = {.field_mask             = UCI_EP_ATTR_FIELD_TRANSPORTS,
                                                               .transports.entries     = entries,
                                                               .transports.num_entries = uci_array_size(entries),
                                                               .transports.entry_size  = sizeof(entries[0])};
    uci_transport_t one;
    unsigned i;

    if (uci_ucp.ep_query(ep, (ucp_ep_attr_t *)(void *)&attr) != UCS_OK) {
        return;
    }
    for (i = 0; (i < uci_min(attr.transports.num_entries, uci_array_size(entries))) && (entries[i].device_name != NULL);
         ++i) {
        one = (uci_transport_t){.name          = entries[i].transport_name,
                                .device        = entries[i].device_name,
                                .name_length   = (int)strlen(entries[i].transport_name),
                                .device_length = (int)strlen(entries[i].device_name)};
        if (one.device_length > 0) {
            uci_transports_add(transports, &one);
        }
    }
}

/* Lines that name a lane look like "# lane[0]:  2:tcp/eth0.0 md[0] -> ...": transport, device, and which of its paths */
static void uci_transports_parse_line(const char *line, uci_transports_t *transports)
{
    const char *name = strstr(line, "lane["), *end;
    uci_transport_t one;

    if ((name == NULL) || ((name = strchr(name, ':')) == NULL) || ((name = strchr(name + 1, ':')) == NULL) ||
        ((end = strchr(name, '/')) == NULL)) {
        return;
    }
    one.name          = name + 1;
    one.name_length   = (int)(end - one.name);
    one.device        = end + 1;
    one.device_length = (int)strcspn(one.device, " \n");
    while ((one.device_length > 0) && (one.device[one.device_length] != '.')) {
        --one.device_length;
    }
    uci_transports_add(transports, &one);
}

/* "#                tag_send: 0..<egr/short>..8185..<egr/bcopy>..8192..<rndv>..(inf)": what stands before <rndv>, for @a name; else 0 */
static size_t uci_transports_parse_eager(const char *line, const char *name)
{
    const char *place = strstr(line, name), *end;

    if ((place == NULL) || ((end = strstr(place, "..<rndv>")) == NULL)) {
        return 0;
    }
    while ((end > place) && (end[-1] >= '0') && (end[-1] <= '9')) {
        --end;
    }
    return strtoul(end, NULL, 10);
}

static void uci_transports_parse(ucp_ep_h ep, uci_transports_t *transports)
{
    char *text    = NULL, *line, *rest;
    size_t length = 0;
    FILE *stream  = open_memstream(&text, &length);

    if (stream == NULL) {
        return;
    }
    uci_ucp.ep_print_info(ep, stream);
    fclose(stream);
    for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        uci_transports_parse_line(line, transports);
        transports->eager      = uci_max(transports->eager, uci_transports_parse_eager(line, " tag_send:"));
        transports->eager_fast = uci_max(transports->eager_fast, uci_transports_parse_eager(line, " tag_send_nbr:"));
    }
    free(text);
}

void uci_transports_query(ucp_ep_h ep, uci_transports_t *transports_p)
{
    memset(transports_p, 0, sizeof(*transports_p));
    uci_transports_ask(ep, transports_p);
    if (transports_p->list[0] == '\0') {
        uci_transports_parse(ep, transports_p);
    }
}
