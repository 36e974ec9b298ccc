/* SPDX-License-Identifier: BSD-3-Clause */
#include "twin_answers.h"

#include <stdlib.h>
#include <string.h>

#include "util/log.h"

#define UCI_TWIN_ANSWERS_MIN 64 /* of a queue */

/* A ring that doubles when it is full */
typedef struct uci_twin_queue {
    uint64_t (*words)[2];
    size_t size, first, count;
    uint32_t next; /* number of the next answer to come, or to be told */
} uci_twin_queue_t;

static uci_twin_queue_t uci_twin_queues[UCI_TWIN_ANSWER_KINDS];

static bool uci_twin_queue_grow(uci_twin_queue_t *queue)
{
    size_t i, size = uci_max(2 * queue->size, (size_t)UCI_TWIN_ANSWERS_MIN);
    uint64_t(*words)[2] = malloc(size * sizeof(*words));

    if (words == NULL) {
        uci_error("failed to allocate %zu answers of twin 0", size);
        return false;
    }
    for (i = 0; i < queue->count; ++i) {
        memcpy(words[i], queue->words[(queue->first + i) % queue->size], sizeof(words[i]));
    }
    free(queue->words);
    queue->words = words;
    queue->size  = size;
    queue->first = 0;
    return true;
}

uci_status_t uci_twin_answers_add(const uci_twin_answer_t *answer)
{
    uci_twin_queue_t *queue;

    if (answer->kind >= UCI_TWIN_ANSWER_KINDS) {
        return UCI_ERR_INVALID_PARAM;
    }
    queue = &uci_twin_queues[answer->kind];
    if (answer->number != queue->next) {
        return UCI_ERR_INVALID_PARAM;
    }
    if ((queue->count == queue->size) && !uci_twin_queue_grow(queue)) {
        return UCI_ERR_NO_MEMORY;
    }
    memcpy(queue->words[(queue->first + queue->count) % queue->size], answer->words, sizeof(answer->words));
    ++queue->count;
    ++queue->next;
    return UCI_OK;
}

bool uci_twin_answers_take(unsigned kind, uint64_t words[2])
{
    uci_twin_queue_t *queue = &uci_twin_queues[kind];

    if (queue->count == 0) {
        return false;
    }
    memcpy(words, queue->words[queue->first], 2 * sizeof(words[0]));
    queue->first = (queue->first + 1) % queue->size;
    --queue->count;
    return true;
}

uint32_t uci_twin_answers_next(unsigned kind)
{
    return uci_twin_queues[kind].next++;
}
