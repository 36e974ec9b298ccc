/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The bytes of messages, which follow from the world's seed and the message's number, and users' buffers of every form: contiguous, in
 * pieces, or of generic datatypes, which check that they are packed and unpacked as UCX promises.
 */
#ifndef UCI_TESTS_RANDOM_DATA_H_
#define UCI_TESTS_RANDOM_DATA_H_

#include "data/buffer.h"
#include "scenario.h"

#define DATA_PIECES 4

typedef struct data_buffer {
    form_t form;
    size_t length; /**< packed */
    size_t size;   /**< with what lies between and around the pieces */
    char *memory;
    unsigned pieces_count;
    ucp_dt_iov_t pieces[DATA_PIECES];
    unsigned states; /**< of a generic datatype, that have not been finished */
    bool misused;    /**< unpacked out of order, or beyond its end */
} data_buffer_t;

/** Forget what was learned of generic datatypes. */
void data_init(void);

/** The bytes of message @a number. */
void data_write(char *bytes, size_t length, const scenario_t *scenario, unsigned number);

void data_buffer_create(data_buffer_t *buffer, form_t form, size_t length, uint64_t seed);
void data_buffer_destroy(data_buffer_t *buffer);

/** What the user passes for it. */
void *data_buffer_arg(data_buffer_t *buffer, size_t *count_p, ucp_datatype_t *datatype_p);

void data_buffer_fill(data_buffer_t *buffer, const char *bytes, size_t length);
void data_buffer_read(const data_buffer_t *buffer, char *bytes, size_t length);

/** The user makes something else of it. */
void data_buffer_spoil(data_buffer_t *buffer);

/** @return true if what does not belong to the first @a length bytes is as it was made. */
bool data_buffer_is_clean(const data_buffer_t *buffer, size_t length);

#endif
