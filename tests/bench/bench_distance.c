/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * How far are the two cores of this process from each other, now? On a virtual machine that changes in minutes, and every path
 * that moves data between cores moves with it, so tables of such paths are printed with this in front and behind.
 *
 *     bench_distance [MILLISECONDS]
 *
 * prints one line: nanoseconds that a line which the other core has just written takes (a chain of such lines, half of a
 * ping-pong), and GB/s of a message through a ring of slots in memory, memcpy in and memcpy out.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "two_cores.h"

enum { LINE = 64, SLOTS = 8, SLOT = 32 << 10, BATCH = 512 };

static struct {
    _Alignas(LINE) atomic_ulong ball;
    _Alignas(LINE) atomic_ulong filled;
    _Alignas(LINE) atomic_ulong emptied;
    _Alignas(LINE) atomic_bool stop;
    _Alignas(LINE) char slot[SLOTS][SLOT];
} shared;

static void *return_balls(void *arg)
{
    unsigned long next = 1;

    bind_to(cores[1]);
    while (!atomic_load_explicit(&shared.stop, memory_order_relaxed)) {
        if (atomic_load_explicit(&shared.ball, memory_order_acquire) == next) {
            atomic_store_explicit(&shared.ball, next + 1, memory_order_release);
            next += 2;
        }
    }
    return NULL;
}

/* The compiler is not to leave out a copy that nobody reads */
static void use(const void *memory)
{
    __asm__ volatile("" ::"r"(memory) : "memory");
}

static void *empty_slots(void *arg)
{
    static char sink[SLOT];
    unsigned long taken = 0;

    bind_to(cores[1]);
    while (!atomic_load_explicit(&shared.stop, memory_order_relaxed)) {
        if (atomic_load_explicit(&shared.filled, memory_order_acquire) > taken) {
            memcpy(sink, shared.slot[taken % SLOTS], SLOT);
            use(sink);
            atomic_store_explicit(&shared.emptied, ++taken, memory_order_release);
        }
    }
    return NULL;
}

static pthread_t start(void *(*other)(void *))
{
    pthread_t thread;

    atomic_store(&shared.stop, 0);
    if (pthread_create(&thread, NULL, other, NULL) != 0) {
        perror("bench_distance: thread");
        exit(1);
    }
    return thread;
}

static void finish(pthread_t thread)
{
    atomic_store(&shared.stop, 1);
    pthread_join(thread, NULL);
}

/* @return nanoseconds from one core to the other: the line is written here, seen there, and back */
static double measure_line(double seconds)
{
    pthread_t other     = start(return_balls);
    unsigned long count = 0, i;
    double begin        = 0, passed;

    do {
        if (count == BATCH) {
            begin = now(); /* the first ones warm up */
        }
        for (i = 0; i < BATCH; ++i, ++count) {
            atomic_store_explicit(&shared.ball, 2 * count + 1, memory_order_release);
            while (atomic_load_explicit(&shared.ball, memory_order_acquire) != 2 * count + 2) {
            }
        }
        passed = now() - begin;
    } while ((count <= BATCH) || (passed < seconds));
    finish(other);
    return 1e9 * passed / (double)(count - BATCH) / 2;
}

/* @return GB/s through the ring */
static double measure_ring(double seconds)
{
    pthread_t other = start(empty_slots);
    static char source[SLOT];
    unsigned long count = 0;
    double begin        = 0, passed;

    memset(source, 1, sizeof(source));
    do {
        if (count == BATCH) {
            begin = now();
        }
        while (count - atomic_load_explicit(&shared.emptied, memory_order_acquire) >= SLOTS) {
        }
        memcpy(shared.slot[count % SLOTS], source, SLOT);
        atomic_store_explicit(&shared.filled, ++count, memory_order_release);
        passed = now() - begin;
    } while ((count <= BATCH) || (passed < seconds));
    finish(other);
    return 1e-9 * SLOT * (double)(count - BATCH) / passed;
}

int main(int argc, char **argv)
{
    double seconds = ((argc > 1) ? atof(argv[1]) : 100) / 1e3;
    double line, ring;

    if (seconds <= 0) {
        fprintf(stderr, "usage: bench_distance [MILLISECONDS]\n");
        return 2;
    }
    find_cores("bench_distance");
    bind_to(cores[0]);
    line = measure_line(seconds / 2);
    ring = measure_ring(seconds / 2);
    printf("cores %d and %d: %.0f ns for a line that the other has written, %.1f GB/s through a ring of %d slots\n",
           cores[0], cores[1], line, ring, SLOTS);
    return 0;
}
