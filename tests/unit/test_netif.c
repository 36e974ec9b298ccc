/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "tune/netif.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned speed_of(const char *text)
{
    char root[] = "/tmp/uci-test-netif-XXXXXX", folder[PATH_MAX], path[PATH_MAX];
    unsigned speed;
    FILE *stream;

    cr_assert_not_null(mkdtemp(root));
    snprintf(folder, sizeof(folder), "%s/eth0", root);
    snprintf(path, sizeof(path), "%s/eth0/speed", root);
    cr_assert_eq(mkdir(folder, 0700), 0);
    if (text != NULL) {
        stream = fopen(path, "w");
        cr_assert_not_null(stream);
        fputs(text, stream);
        fclose(stream);
    }
    speed = uci_netif_speed(root, "eth0");
    cr_expect_eq(uci_netif_speed(root, "eth1"), 0, "no such interface");
    cr_expect_eq(uci_netif_speed(root, "../eth0"), 0, "not a name");
    unlink(path);
    rmdir(folder);
    rmdir(root);
    return speed;
}

Test(netif, speed)
{
    cr_expect_eq(speed_of("25000\n"), 25000);
    cr_expect_eq(speed_of("-1\n"), 0, "unknown");
    cr_expect_eq(speed_of(""), 0);
    cr_expect_eq(speed_of("fast\n"), 0);
    cr_expect_eq(speed_of(NULL), 0);
}

Test(netif, this_host)
{
    cr_expect_eq(uci_netif_speed(UCI_NETIF_SYSFS, "lo"), 0, "the loopback has none");
}
