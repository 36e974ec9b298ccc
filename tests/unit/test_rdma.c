/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Folders like sysfs's, with what drivers write there.
 */
#include <criterion/criterion.h>
#include "tune/rdma.h"

#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/uci-test-rdma-XXXXXX";
static uci_rdma_sample_t sample, before;

/* Write a file, and the folders above it that are missing */
static void put(const char *name, const char *text)
{
    char path[PATH_MAX], *slash;
    FILE *stream;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (slash = strchr(path + strlen(root) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    stream = fopen(path, "w");
    cr_assert(stream != NULL, "%s", path);
    fputs(text, stream);
    fclose(stream);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    return remove(path);
}

static void set_up(void)
{
    cr_assert(mkdtemp(root) != NULL);
}

static void tear_down(void)
{
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(rdma, .init = set_up, .fini = tear_down);

static unsigned index_of(const char *name)
{
    unsigned i = 0;

    while (strcmp(uci_rdma_counters[i].name, name) != 0) {
        cr_assert(++i < UCI_RDMA_COUNTERS, "%s", name);
    }
    return i;
}

Test(rdma, every_counter_is_described_once)
{
    unsigned i, k;

    for (i = 0; i < UCI_RDMA_COUNTERS; ++i) {
        cr_assert(uci_rdma_counters[i].name != NULL, "%u", i);
        cr_expect(strlen(uci_rdma_counters[i].text) > 0);
        cr_expect(uci_rdma_counter_kind_names[uci_rdma_counters[i].kind] != NULL);
        for (k = 0; k < i; ++k) {
            cr_expect(strcmp(uci_rdma_counters[i].name, uci_rdma_counters[k].name) != 0, "%s",
                      uci_rdma_counters[i].name);
        }
    }
}

Test(rdma, no_devices)
{
    sample.count = 7;
    uci_rdma_sample(root, &sample);
    cr_expect(sample.count == 0);
    uci_rdma_sample("/nowhere/at/all", &sample);
    cr_expect(sample.count == 0);
}

Test(rdma, ports_by_name_and_number)
{
    put("mlx5_1/ports/1/state", "4: ACTIVE\n");
    put("mlx5_0/ports/10/state", "4: ACTIVE\n");
    put("mlx5_0/ports/2/state", "1: DOWN\n");
    put("mlx5_0/ports/not_a_port", "");
    put("mlx5_0/ports/0/state", "");
    put("hfi1_0/node_type", "no ports at all");
    put("a_file", "");
    uci_rdma_sample(root, &sample);
    cr_assert(sample.count == 3, "%u", sample.count);
    cr_expect((strcmp(sample.ports[0].device, "mlx5_0") == 0) && (sample.ports[0].number == 2));
    cr_expect((strcmp(sample.ports[1].device, "mlx5_0") == 0) && (sample.ports[1].number == 10));
    cr_expect((strcmp(sample.ports[2].device, "mlx5_1") == 0) && (sample.ports[2].number == 1));
}

Test(rdma, no_more_ports_than_there_is_room_for)
{
    char name[64];
    int i;

    for (i = 0; i < UCI_RDMA_PORTS_MAX + 3; ++i) {
        snprintf(name, sizeof(name), "mlx5_%d/ports/1/state", i);
        put(name, "");
    }
    uci_rdma_sample(root, &sample);
    cr_expect(sample.count == UCI_RDMA_PORTS_MAX);
}

Test(rdma, attributes)
{
    char text[8];

    put("rxe0/ports/1/state", "4: ACTIVE\nmore\n");
    put("rxe0/ports/1/empty", "");
    uci_rdma_sample(root, &sample);
    cr_expect(uci_rdma_port_attribute(root, sample.ports, "state", text, sizeof(text)) == UCI_OK);
    cr_expect(strcmp(text, "4: ACTI") == 0, "cut to what there is room for: '%s'", text);
    cr_expect(uci_rdma_port_attribute(root, sample.ports, "empty", text, sizeof(text)) == UCI_ERR_IO);
    cr_expect(strcmp(text, "") == 0);
    cr_expect(uci_rdma_port_attribute(root, sample.ports, "nothing", text, sizeof(text)) == UCI_ERR_IO);
    cr_expect(strcmp(text, "") == 0);
}

Test(rdma, counters_of_both_folders)
{
    put("rxe0/ports/1/counters/symbol_error", "12\n");
    put("rxe0/ports/1/hw_counters/duplicate_request", "18446744073709551614\n");
    put("rxe0/ports/1/counters/link_downed", "N/A (no PMA)\n"); /* as the kernel says where there is none */
    put("rxe0/ports/1/hw_counters/link_downed", "3\n");
    put("rxe0/ports/1/counters/port_rcv_errors", "many");
    put("rxe0/ports/1/hw_counters/sent_pkts", "1000\n"); /* says nothing of integrity */
    uci_rdma_sample(root, &sample);
    cr_assert(sample.count == 1);
    cr_expect(sample.ports[0].values[index_of("symbol_error")] == 12);
    cr_expect(sample.ports[0].values[index_of("duplicate_request")] == UINT64_MAX - 1);
    cr_expect(sample.ports[0].values[index_of("link_downed")] == 3);
    cr_expect(sample.ports[0].values[index_of("port_rcv_errors")] == UINT64_MAX);
    cr_expect(sample.ports[0].values[index_of("out_of_buffer")] == UINT64_MAX);
}

Test(rdma, rise)
{
    put("rxe0/ports/1/hw_counters/duplicate_request", "10\n");
    put("rxe0/ports/1/hw_counters/rcvd_seq_err", "10\n");
    uci_rdma_sample(root, &before);
    put("rxe0/ports/1/hw_counters/duplicate_request", "17\n");
    put("rxe0/ports/1/hw_counters/rcvd_seq_err", "4\n"); /* somebody has reset it */
    put("rxe0/ports/2/hw_counters/rcvd_seq_err", "5\n"); /* and plugged this in */
    uci_rdma_sample(root, &sample);
    cr_assert(sample.count == 2);
    cr_expect(uci_rdma_rise(&sample.ports[0], index_of("duplicate_request"), &before) == 7);
    cr_expect(uci_rdma_rise(&sample.ports[0], index_of("rcvd_seq_err"), &before) == 4);
    cr_expect(uci_rdma_rise(&sample.ports[1], index_of("rcvd_seq_err"), &before) == 5);
    cr_expect(uci_rdma_rise(&sample.ports[0], index_of("symbol_error"), &before) == 0);
}
