/* SPDX-License-Identifier: BSD-3-Clause */
#include "places.h"

#include <pthread.h>
#include <string.h>

#include "util/stack.h"

#define UCI_MPI_PLACES_DEPTH \
    12 /* frames that tell places apart, and are written: those of this library and of MPI's bindings among them */

typedef struct uci_mpi_place {
    const char *name;
    uint64_t hash;
    int place;
} uci_mpi_place_t;

static pthread_mutex_t uci_mpi_places_lock = PTHREAD_MUTEX_INITIALIZER;
static uci_mpi_place_t uci_mpi_places[2 * UCI_CALLS_PLACES]; /* open addressing: never full */

static uint64_t uci_mpi_places_hash(const char *name, const uci_stack_t *stack)
{
    uint64_t hash = (uint64_t)(uintptr_t)name;
    int i;

    for (i = 0; i < stack->depth; ++i) {
        hash = (hash ^ (uint64_t)(uintptr_t)stack->frames[i]) * 0x9e3779b97f4a7c15ul;
        hash ^= hash >> 32;
    }
    return hash;
}

static void uci_mpi_places_write(int place, const char *name, const uci_stack_t *stack)
{
    uci_json_t json;

    if (uci_calls_line_begin(&json)) {
        uci_json_int(&json, "place", place);
        uci_json_string(&json, "call", name);
        uci_stack_write(stack, &json, "stack");
        uci_calls_line_end(&json);
    }
}

/* Its lock is held */
static uci_mpi_place_t *uci_mpi_places_entry(const char *name, uint64_t hash)
{
    size_t i = hash % uci_array_size(uci_mpi_places);

    while ((uci_mpi_places[i].name != NULL) && ((uci_mpi_places[i].name != name) || (uci_mpi_places[i].hash != hash))) {
        i = (i + 1) % uci_array_size(uci_mpi_places);
    }
    return &uci_mpi_places[i];
}

int uci_mpi_places_find(const char *name)
{
    uci_mpi_place_t *entry;
    uci_stack_t stack;
    uint64_t hash;
    int place;

    uci_stack_take(&stack);
    stack.depth = uci_min(stack.depth, UCI_MPI_PLACES_DEPTH);
    hash        = uci_mpi_places_hash(name, &stack);
    pthread_mutex_lock(&uci_mpi_places_lock);
    entry = uci_mpi_places_entry(name, hash);
    if (entry->name == NULL) {
        place = uci_calls_take(&uci_calls->head.places, UCI_CALLS_PLACES);
        if (place == UCI_CALLS_NONE) {
            pthread_mutex_unlock(&uci_mpi_places_lock);
            return place;
        }
        *entry = (uci_mpi_place_t){.name = name, .hash = hash, .place = place};
        uci_mpi_places_write(place, name, &stack);
    }
    place = entry->place;
    pthread_mutex_unlock(&uci_mpi_places_lock);
    return place;
}
