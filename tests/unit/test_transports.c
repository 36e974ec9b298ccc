/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What endpoints use, asked of a UCX that can tell (1.14 and later), of one that can only print it, and of one that knows of none.
 */
#include "base/transports.h"

#include <criterion/criterion.h>
#include <sys/socket.h>

/* As in UCX since 1.14 */
typedef struct entry {
    const char *transport_name, *device_name;
} entry_t;

typedef struct attr {
    uint64_t field_mask;
    char name[32];
    struct sockaddr_storage local, remote;
    entry_t *entries;
    unsigned num_entries;
    size_t entry_size;
    void *user_data;
} attr_t;

#define LANES_MAX 100

static entry_t lanes[LANES_MAX];
static unsigned lanes_count;
static const char *printed;
static uci_transports_t found;

static ucs_status_t query(ucp_ep_h ep, ucp_ep_attr_t *ucp_attr)
{
    attr_t *attr = (attr_t *)(void *)ucp_attr;
    unsigned i;

    cr_expect_eq(attr->field_mask, 8, "nothing else is asked for");
    cr_expect_eq(attr->entry_size, sizeof(entry_t));
    attr->num_entries = uci_min(attr->num_entries, lanes_count);
    for (i = 0; i < attr->num_entries; ++i) {
        attr->entries[i] = lanes[i];
    }
    return UCS_OK;
}

static ucs_status_t query_of_13(ucp_ep_h ep, ucp_ep_attr_t *attr)
{
    return UCS_OK;
}

static ucs_status_t query_refuses(ucp_ep_h ep, ucp_ep_attr_t *attr)
{
    return UCS_ERR_NOT_CONNECTED;
}

static void print(ucp_ep_h ep, FILE *stream)
{
    fputs(printed, stream);
}

static void print_never(ucp_ep_h ep, FILE *stream)
{
    cr_expect_fail("UCX has told already");
}

static void ask(ucs_status_t (*how)(ucp_ep_h, ucp_ep_attr_t *), void (*else_how)(ucp_ep_h, FILE *))
{
    uci_ucp.ep_query      = how;
    uci_ucp.ep_print_info = else_how;
    memset(&found, 'x', sizeof(found));
    uci_transports_query(NULL, &found);
}

Test(transports, told)
{
    lanes[lanes_count++] = (entry_t){"rdmacm", ""};
    lanes[lanes_count++] = (entry_t){"posix", "memory"};
    lanes[lanes_count++] = (entry_t){"cma", "memory"};
    ask(query, print_never);
    cr_expect_str_eq(found.list, "posix cma");
    cr_expect_str_empty(found.interface);

    lanes_count          = 0;
    lanes[lanes_count++] = (entry_t){"tcp", "eth0.100"};
    lanes[lanes_count++] = (entry_t){"tcp", "eth1"};
    ask(query, print_never);
    cr_expect_str_eq(found.list, "tcp tcp");
    cr_expect_str_eq(found.interface, "eth0.100");
}

Test(transports, printed)
{
    printed = "#\n# UCP endpoint \n#\n#               peer: host:1\n"
              "#                 lane[0]:  1:posix/memory.0 md[0]           -> md[0]/posix/sysdev[255] am\n"
              "#                 lane[1]: 12:tcp/eth0.100.0 md[1]           -> md[1]/tcp/sysdev[255]\n"
              "#                tag_send: 0..<egr/short>..92..<egr/bcopy>\n";
    ask(query_of_13, print);
    cr_expect_str_eq(found.list, "posix tcp");
    cr_expect_str_eq(found.interface, "eth0.100");
    ask(query_refuses, print);
    cr_expect_str_eq(found.list, "posix tcp");
    lanes_count = 0;
    ask(query, print);
    cr_expect_str_eq(found.list, "posix tcp", "told nothing, and printed something");
}

/* As UCX 1.13 prints it */
Test(transports, sizes_that_are_sent_before_they_are_received)
{
    printed = "#                 lane[0]:  1:posix/memory.0 md[0]           -> md[0]/posix/sysdev[255] am\n"
              "#                tag_send: 0..<egr/short>..8185..<egr/bcopy>..8192..<rndv>..(inf)\n"
              "#            tag_send_nbr: 0..<egr/short>..8185..<egr/bcopy>..262144..<rndv>..(inf)\n"
              "#           tag_send_sync: 0..<egr/short>..8185..<egr/bcopy>..4096..<rndv>..(inf)\n";
    ask(query_of_13, print);
    cr_expect((found.eager == 8192) && (found.eager_fast == 262144), "%zu, %zu", found.eager, found.eager_fast);
    printed = "#                 lane[0]:  1:posix/memory.0 md[0]           -> md[0]/posix/sysdev[255] am\n"
              "#                tag_send: 0..<egr/short>..8185..<egr/bcopy>..(inf)\n"
              "#            tag_send_nbr: ..<rndv>..(inf)\n";
    ask(query_of_13, print);
    cr_expect((found.eager == 0) && (found.eager_fast == 0), "%zu, %zu", found.eager, found.eager_fast);
}

Test(transports, none)
{
    printed = "# nothing\n";
    ask(query, print);
    cr_expect_str_empty(found.list);
    cr_expect_str_empty(found.interface);
}

Test(transports, more_than_there_is_room_for)
{
    for (lanes_count = 0; lanes_count < LANES_MAX; ++lanes_count) {
        lanes[lanes_count] = (entry_t){"transport", "a_device_with_quite_a_name"};
    }
    ask(query, print_never);
    cr_expect_lt(strlen(found.list), sizeof(found.list));
    cr_expect_gt(strlen(found.list), sizeof(found.list) - 20);
    lanes[0] = (entry_t){"tcp", "a_device_with_quite_a_name"};
    ask(query, print_never);
    cr_expect_str_eq(found.interface, "a_device_with_q");
}
