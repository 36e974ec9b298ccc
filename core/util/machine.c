/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char uci_machine_cpu_name[128] = "unknown";

static void uci_machine_read_cpu(void)
{
    static const char key[] = "model name";
    FILE *stream            = fopen("/proc/cpuinfo", "re");
    char line[512];
    char *value = NULL;

    while ((stream != NULL) && (value == NULL) && (fgets(line, sizeof(line), stream) != NULL)) {
        if (strncmp(line, key, sizeof(key) - 1) == 0) {
            value = strchr(line, ':');
        }
    }
    if (stream != NULL) {
        fclose(stream);
    }
    if (value != NULL) {
        value += strspn(value, ": ");
        value[strcspn(value, "\n")] = '\0';
        snprintf(uci_machine_cpu_name, sizeof(uci_machine_cpu_name), "%s", value);
    }
}

const char *uci_machine_cpu(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, uci_machine_read_cpu);
    return uci_machine_cpu_name;
}

unsigned uci_machine_cores(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    return (cores > 0) ? (unsigned)cores : 1;
}

unsigned uci_machine_cores_usable(void)
{
    cpu_set_t usable;

    return (sched_getaffinity(0, sizeof(usable), &usable) == 0) ? (unsigned)CPU_COUNT(&usable) : uci_machine_cores();
}
