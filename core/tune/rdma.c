/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const uci_rdma_counter_kind_names[] = {"wire", "retry", "access"};

const uci_rdma_counter_t uci_rdma_counters[UCI_RDMA_COUNTERS] = {
        {"symbol_error", UCI_RDMA_WIRE, "signals on the link that are no valid code"},
        {"link_error_recovery", UCI_RDMA_WIRE, "times the link was trained anew after errors"},
        {"link_downed", UCI_RDMA_WIRE, "times the link went down"},
        {"port_rcv_errors", UCI_RDMA_WIRE, "packets received damaged"},
        {"port_rcv_remote_physical_errors", UCI_RDMA_WIRE, "packets that a switch has marked as damaged"},
        {"local_link_integrity_errors", UCI_RDMA_WIRE, "times damaged packets exceeded the limit"},
        {"rx_icrc_encapsulated", UCI_RDMA_WIRE, "RoCE packets with a wrong ICRC"},
        {"rx_roce_error_pkts", UCI_RDMA_WIRE, "RoCE packets received damaged"},
        {"port_xmit_discards", UCI_RDMA_RETRY, "packets dropped by the port when sending"},
        {"excessive_buffer_overrun_errors", UCI_RDMA_RETRY, "times the port's buffers overran"},
        {"rx_roce_discard_pkts", UCI_RDMA_RETRY, "RoCE packets dropped when receiving"},
        {"out_of_buffer", UCI_RDMA_RETRY, "packets dropped for want of a receive buffer"},
        {"rx_drops", UCI_RDMA_RETRY, "packets dropped when receiving"},
        {"out_of_sequence", UCI_RDMA_RETRY, "packets received out of sequence"},
        {"out_of_seq_request", UCI_RDMA_RETRY, "requests received out of sequence"},
        {"rcvd_seq_err", UCI_RDMA_RETRY, "complaints of the other side about the sequence"},
        {"packet_seq_err", UCI_RDMA_RETRY, "complaints of the other side about the sequence"},
        {"seq_err_naks_rcvd", UCI_RDMA_RETRY, "complaints of the other side about the sequence"},
        {"implied_nak_seq_err", UCI_RDMA_RETRY, "answers to reads that came out of sequence"},
        {"missing_resp", UCI_RDMA_RETRY, "answers that did not come"},
        {"duplicate_request", UCI_RDMA_RETRY, "requests received again"},
        {"dup_req", UCI_RDMA_RETRY, "requests received again"},
        {"local_ack_timeout_err", UCI_RDMA_RETRY, "times no acknowledgement came in time"},
        {"to_retransmits", UCI_RDMA_RETRY, "requests sent again since no acknowledgement came"},
        {"roce_adp_retrans", UCI_RDMA_RETRY, "adaptive retransmissions"},
        {"retrans_pkts", UCI_RDMA_RETRY, "packets sent again"},
        {"completer_retry_err", UCI_RDMA_RETRY, "times sending started again from a lost packet"},
        {"retry_exceeded_err", UCI_RDMA_RETRY, "connections given up after all retries"},
        {"max_retry_exceeded", UCI_RDMA_RETRY, "connections given up after all retries"},
        {"send_err", UCI_RDMA_RETRY, "packets that could not be sent"},
        {"req_remote_access_errors", UCI_RDMA_ACCESS, "accesses of ours that the other side refused"},
        {"resp_remote_access_errors", UCI_RDMA_ACCESS, "accesses of the other side that were refused here"},
        {"remote_access_err", UCI_RDMA_ACCESS, "accesses of ours that the other side refused"},
        {"local_protection_err", UCI_RDMA_ACCESS, "accesses to memory of ours that is not registered so"},
        {"resp_local_length_error", UCI_RDMA_ACCESS, "messages received that were longer than the buffer"},
        {"req_cqe_error", UCI_RDMA_ACCESS, "requests that ended in an error"},
        {"resp_cqe_error", UCI_RDMA_ACCESS, "receives that ended in an error"},
};

/* The first line of a file, without its end; empty if there is none */
static uci_status_t uci_rdma_read_line(const char *path, char *text, size_t size)
{
    FILE *stream = fopen(path, "re");
    bool is_read;

    text[0] = '\0';
    if (stream == NULL) {
        return UCI_ERR_IO;
    }
    is_read = (fgets(text, (int)size, stream) != NULL);
    fclose(stream);
    text[is_read ? strcspn(text, "\n") : 0] = '\0';
    return is_read ? UCI_OK : UCI_ERR_IO;
}

uci_status_t uci_rdma_port_attribute(const char *root, const uci_rdma_port_t *port, const char *name, char *text,
                                     size_t size)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s/ports/%u/%s", root, port->device, port->number, name);
    return uci_rdma_read_line(path, text, size);
}

static uint64_t uci_rdma_read_counter(const char *root, const uci_rdma_port_t *port, const char *counter)
{
    static const char *const folders[] = {"counters", "hw_counters"};
    char name[128], text[32], *end;
    uint64_t value;
    unsigned i;

    for (i = 0; i < uci_array_size(folders); ++i) {
        snprintf(name, sizeof(name), "%s/%s", folders[i], counter);
        if (uci_rdma_port_attribute(root, port, name, text, sizeof(text)) == UCI_OK) {
            value = strtoull(text, &end, 10);
            if ((end != text) && (*end == '\0')) {
                return value; /* not "N/A (no PMA)" */
            }
        }
    }
    return UINT64_MAX;
}

static int uci_rdma_compare_ports(const void *left, const void *right)
{
    const uci_rdma_port_t *a = left, *b = right;
    int order = strcmp(a->device, b->device);

    return (order != 0) ? order : (a->number > b->number) - (a->number < b->number);
}

static void uci_rdma_add_ports(const char *root, const char *device, uci_rdma_sample_t *sample)
{
    char path[PATH_MAX], *end;
    uci_rdma_port_t *port;
    struct dirent *entry;
    unsigned long number;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/%s/ports", root, device);
    dir = opendir(path);
    while ((dir != NULL) && (sample->count < UCI_RDMA_PORTS_MAX) && ((entry = readdir(dir)) != NULL)) {
        number = strtoul(entry->d_name, &end, 10);
        port   = &sample->ports[sample->count];
        if ((number == 0) || (*end != '\0') || (strlen(device) >= sizeof(port->device))) {
            continue;
        }
        memcpy(port->device, device, strlen(device) + 1);
        port->number = (unsigned)number;
        ++sample->count;
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

static void uci_rdma_find_ports(const char *root, uci_rdma_sample_t *sample)
{
    DIR *dir = opendir(root);
    struct dirent *entry;

    sample->count = 0;
    if (dir == NULL) {
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            uci_rdma_add_ports(root, entry->d_name, sample);
        }
    }
    closedir(dir);
    qsort(sample->ports, sample->count, sizeof(*sample->ports), uci_rdma_compare_ports);
}

void uci_rdma_sample(const char *root, uci_rdma_sample_t *sample)
{
    unsigned i, k;

    uci_rdma_find_ports(root, sample);
    for (i = 0; i < sample->count; ++i) {
        for (k = 0; k < UCI_RDMA_COUNTERS; ++k) {
            sample->ports[i].values[k] = uci_rdma_read_counter(root, &sample->ports[i], uci_rdma_counters[k].name);
        }
    }
}

uint64_t uci_rdma_rise(const uci_rdma_port_t *port, unsigned index, const uci_rdma_sample_t *before)
{
    uint64_t now = port->values[index], then;
    unsigned i;

    if (now == UINT64_MAX) {
        return 0;
    }
    for (i = 0; i < before->count; ++i) {
        if (uci_rdma_compare_ports(&before->ports[i], port) == 0) {
            then = before->ports[i].values[index];
            return (then <= now) ? now - then : now;
        }
    }
    return now;
}
