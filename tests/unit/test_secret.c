/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory for keys: what the kernel says of it, and what is left of it.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seal/secret.h"

/* Has the mapping of @a ptr the flag @a flag, such as "dd", in /proc/self/smaps? */
static bool has_flag(const void *ptr, const char *flag)
{
    FILE *smaps = fopen("/proc/self/smaps", "r");
    unsigned long start, end;
    char line[512];
    bool inside = false, found = false;

    cr_assert_not_null(smaps);
    while (fgets(line, sizeof(line), smaps) != NULL) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            inside = ((unsigned long)ptr >= start) && ((unsigned long)ptr < end);
        } else if (inside && (strncmp(line, "VmFlags:", 8) == 0)) {
            found = strstr(line, flag) != NULL;
        }
    }
    fclose(smaps);
    return found;
}

Test(secret, is_no_ordinary_memory)
{
    char *secret = uci_secret_alloc(100), local;

    cr_assert_not_null(secret);
    cr_expect(has_flag(secret, " dd"), "in core dumps");
    cr_expect(has_flag(secret, " wf"), "seen by children");
    cr_expect_not(has_flag(&local, " dd"));
    cr_expect(uci_secret_owns(secret) && !uci_secret_owns(&local) && !uci_secret_owns(NULL));
    cr_expect_eq((uintptr_t)secret % UCI_SECRET_ALIGN, 0);
    uci_secret_free(secret);
    uci_secret_free(NULL);
}

Test(secret, is_wiped)
{
    size_t sizes[] = {1, 64, 65, 1000, 5000, 100000, 600000}, i, j;
    char *secret;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        secret = uci_secret_alloc(sizes[i]);
        cr_assert_not_null(secret);
        cr_assert_geq(uci_secret_size(secret), sizes[i]);
        for (j = 0; j < sizes[i]; ++j) {
            cr_assert_eq(secret[j], 0, "new memory is not zero");
        }
        memset(secret, 'x', sizes[i]);
        uci_secret_free(secret);
        for (j = 0; j < sizes[i]; ++j) {
            cr_assert_eq(secret[j], 0, "byte %zu of %zu is left", j, sizes[i]); /* it stays mapped */
        }
        cr_expect_eq(uci_secret_alloc(sizes[i]), (void *)secret, "freed memory is used again");
    }
}

Test(secret, is_not_inherited)
{
    char *secret = uci_secret_alloc(100);
    int status;
    pid_t pid;

    memset(secret, 'x', 100);
    pid = fork();
    if (pid == 0) {
        if ((secret[0] != 0) || (secret[99] != 0)) {
            _exit(2);
        }
        uci_secret_free(secret); /* nor is it a trap for who clears up */
        secret = uci_secret_alloc(100);
        _exit((secret != NULL) && (secret[0] == 0) && (secret[99] == 0) ? 0 : 1);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect_eq(status, 0);
    cr_expect_eq(secret[0], 'x');
}

static void *churn(void *arg)
{
    char *secrets[16];
    unsigned i, j;

    for (i = 0; i < 2000; ++i) {
        for (j = 0; j < 16; ++j) {
            secrets[j] = uci_secret_alloc(50u << (j % 5));
            cr_assert_eq(*secrets[j], 0);
            memset(secrets[j], (int)(1 + j), 50);
        }
        for (j = 0; j < 16; ++j) {
            cr_assert_eq(secrets[j][49], (char)(1 + j), "somebody else has the same");
            uci_secret_free(secrets[j]);
        }
    }
    return arg;
}

Test(secret, threads)
{
    pthread_t threads[4];
    unsigned i;

    for (i = 0; i < 4; ++i) {
        cr_assert_eq(pthread_create(&threads[i], NULL, churn, NULL), 0);
    }
    for (i = 0; i < 4; ++i) {
        pthread_join(threads[i], NULL);
    }
}
