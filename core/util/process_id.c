/* SPDX-License-Identifier: BSD-3-Clause */
#include "process_id.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "process.h"

#define UCI_PROCESS_STAT_START 22 /* its field of /proc/PID/stat, from 1; the name is the second one */

static char uci_process_boot_id[40];

/* @return bytes read, with a 0 behind them */
static size_t uci_process_read(const char *path, char *text, size_t size)
{
    int fd      = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t ret = (fd >= 0) ? read(fd, text, size - 1) : -1;

    if (fd >= 0) {
        close(fd);
    }
    text[(ret > 0) ? ret : 0] = '\0';
    return (ret > 0) ? (size_t)ret : 0;
}

static void uci_process_read_boot(void)
{
    (void)uci_process_read("/proc/sys/kernel/random/boot_id", uci_process_boot_id, sizeof(uci_process_boot_id));
    uci_process_boot_id[strcspn(uci_process_boot_id, "\n")] = '\0';
}

const char *uci_process_boot(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, uci_process_read_boot);
    return uci_process_boot_id;
}

static uint64_t uci_process_inode(const char *path)
{
    struct stat info;

    return (stat(path, &info) == 0) ? (uint64_t)info.st_ino : 0;
}

uint64_t uci_process_pid_space(void)
{
    return uci_process_inode("/proc/self/ns/pid");
}

uint64_t uci_process_machine(void)
{
    struct {
        char boot[sizeof(uci_process_boot_id)];
        char host[64];
        uint64_t network;
    } words = {.network = uci_process_inode("/proc/self/ns/net")};

    snprintf(words.boot, sizeof(words.boot), "%s", uci_process_boot());
    snprintf(words.host, sizeof(words.host), "%s", uci_process_host());
    return ((words.boot[0] != '\0') && (words.network != 0)) ? XXH3_64bits(&words, sizeof(words)) : 0;
}

uint64_t uci_process_start(pid_t pid, bool *dead_p)
{
    unsigned long start = 0;
    char path[32], text[1024], *field;
    unsigned i;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    *dead_p = false;
    if (uci_process_read(path, text, sizeof(text)) == 0) {
        return 0;
    }
    field = strrchr(text, ')'); /* a name may hold brackets and blanks, what follows does not */
    for (i = 2; (field != NULL) && (i < UCI_PROCESS_STAT_START); ++i) {
        field = strchr(field + 1, ' ');
        if ((i == 2) && (field != NULL)) {
            *dead_p = (field[1] == 'Z') || (field[1] == 'X');
        }
    }
    return ((field != NULL) && (sscanf(field, " %lu", &start) == 1)) ? start : 0;
}

/* Others may be hidden from us; then only its number tells */
bool uci_process_lives(pid_t pid, uint64_t start)
{
    uint64_t found;
    bool dead;

    if ((kill(pid, 0) != 0) && (errno == ESRCH)) {
        return false;
    }
    found = uci_process_start(pid, &dead);
    return (found == 0) || (((start == 0) || (found == start)) && !dead);
}
