/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Preloaded into the ranks of a job: a thread of rank 0 damages the memory in which all-reduces by node are done, as a stray store would.
 *
 * FLIP=data    bits all over the slots and their digests, one every FLIP_US microseconds (default 20)
 * FLIP=seats   the same in the page of the counters
 * FLIP=stuck   one bit of each 4 KiB of rank 0's first slot is set again and again: what is written there does not stay
 * Says "flip: N flipped" at its end.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SEATS ((size_t)4096)
#define STUCK ((size_t)256 << 10) /* few, so that each is set often */

static unsigned long flipped;

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* The last window that this process has mapped: it may be gone at any time, so it is mapped once more */
static bool window_find(volatile uint8_t **memory_p, size_t *length_p)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long begin, end;
    bool found = false;
    char line[512];

    while ((maps != NULL) && (fgets(line, sizeof(line), maps) != NULL)) {
        if ((strstr(line, "/uci_allreduce.") != NULL) && (sscanf(line, "%lx-%lx", &begin, &end) == 2)) {
            *length_p = end - begin;
            *memory_p = mremap((void *)(uintptr_t)begin, 0, *length_p, MREMAP_MAYMOVE);
            found     = (*memory_p != MAP_FAILED);
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

static void attack(const char *how, volatile uint8_t *memory, size_t length, unsigned pause_us, unsigned *seed)
{
    uint64_t next = now_us();
    size_t at;

    for (;;) {
        if (strcmp(how, "stuck") == 0) {
            for (at = SEATS + 8192 + 100; at < STUCK; at += 4096) {
                flipped += !(memory[at] & 0x10);
                memory[at] |= 0x10;
            }
            continue;
        }
        at = (((size_t)rand_r(seed) << 31) ^ (size_t)rand_r(seed));
        at = (strcmp(how, "seats") == 0) ? at % SEATS : SEATS + at % (length - SEATS);
        memory[at] ^= (uint8_t)(1u << (rand_r(seed) % 8));
        ++flipped;
        for (next += pause_us; now_us() < next;) {
            usleep(1);
        }
    }
}

static void *attacker(void *argument)
{
    const char *pause_us = getenv("FLIP_US");
    volatile uint8_t *memory;
    unsigned seed = 7;
    size_t length;

    while (!window_find(&memory, &length)) {
        usleep(1000);
    }
    attack(argument, memory, length, (pause_us != NULL) ? (unsigned)atoi(pause_us) : 20, &seed);
    return NULL;
}

static void say(void)
{
    fprintf(stderr, "flip: %lu flipped\n", flipped);
}

__attribute__((constructor)) static void begin(void)
{
    const char *how = getenv("FLIP"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    pthread_t thread;

    rank = (rank != NULL) ? rank : getenv("PMI_RANK");
    if ((how != NULL) && (rank != NULL) && (strcmp(rank, "0") == 0) &&
        (pthread_create(&thread, NULL, attacker, (void *)how) == 0)) {
        pthread_detach(thread);
        atexit(say);
    }
}
