/* SPDX-License-Identifier: BSD-3-Clause */
#include "data.h"

#include <stdlib.h>
#include <string.h>

#define UNTOUCHED ((char)0xee)
#define SPOILT    0x55

#ifdef __SANITIZE_ADDRESS__
#define GUARD 0u /* the sanitizer's are better */
#else
#define GUARD 32u
#endif

enum { DRAW_DATA = 16, DRAW_PIECES };

/* ----------------------------------------------------------------- contents */

void data_write(char *bytes, size_t length, const scenario_t *scenario, unsigned number)
{
    draw_t draw = draw_for(scenario->seed, DRAW_DATA, number);
    uint64_t word;
    size_t i;

    for (i = 0; i < length; i += sizeof(word)) {
        word = draw_next(&draw);
        memcpy(bytes + i, &word, uci_min(sizeof(word), length - i));
    }
}

/* --------------------------------------------------------- generic datatypes */

typedef struct state {
    data_buffer_t *buffer;
    size_t next; /* to be unpacked */
} state_t;

static void *start(data_buffer_t *buffer)
{
    state_t *state = calloc(1, sizeof(*state));

    state->buffer = buffer;
    ++buffer->states;
    return state;
}

static void *start_pack(void *context, const void *buffer, size_t count)
{
    return start((data_buffer_t *)(uintptr_t)buffer);
}

static void *start_unpack(void *context, void *buffer, size_t count)
{
    return start(buffer);
}

static size_t packed_size(void *arg)
{
    return ((const state_t *)arg)->buffer->length;
}

static size_t pack(void *arg, size_t offset, void *dest, size_t max_length)
{
    const state_t *state = arg;
    size_t length        = uci_min(max_length, state->buffer->length - offset);
    size_t end           = offset + length;

    if ((state->buffer->form == FORM_GENERIC_WHOLE) && (end < state->buffer->length) && (end / 12 * 12 > offset)) {
        length = end / 12 * 12 - offset; /* it does not split its elements if it needn't */
    }
    memcpy(dest, (char *)state->buffer->pieces[0].buffer + offset, length);
    return length;
}

/* From its beginning again is possible: when the message was found to be wrong after all */
static ucs_status_t unpack(void *arg, size_t offset, const void *src, size_t length)
{
    state_t *state        = arg;
    data_buffer_t *buffer = state->buffer;

    if (((offset != state->next) && (offset != 0)) || (offset + length > buffer->length)) {
        buffer->misused = true;
        return UCS_ERR_INVALID_PARAM;
    }
    memcpy((char *)buffer->pieces[0].buffer + offset, src, length);
    state->next = offset + length;
    return UCS_OK;
}

static void finish(void *arg)
{
    state_t *state = arg;

    --state->buffer->states;
    free(state);
}

static uci_generic_dt_t generics[2];

static uci_generic_dt_t *lookup(ucp_datatype_t datatype)
{
    return &generics[datatype >> UCP_DATATYPE_SHIFT];
}

void data_init(void)
{
    static const uci_generic_dt_t generic = {.ops = {.start_pack   = start_pack,
                                                     .start_unpack = start_unpack,
                                                     .packed_size  = packed_size,
                                                     .pack         = pack,
                                                     .unpack       = unpack,
                                                     .finish       = finish}};

    generics[0] = generics[1] = generic;
    uci_buffer_generic_lookup = lookup;
}

/* ------------------------------------------------------------------ buffers */

void data_buffer_create(data_buffer_t *buffer, form_t form, size_t length, uint64_t seed)
{
    draw_t draw  = draw_for(seed, DRAW_PIECES, 0);
    size_t place = GUARD, left = length;
    unsigned last = (form == FORM_IOV) ? (unsigned)draw_below(&draw, DATA_PIECES) : 0, i;

    memset(buffer, 0, sizeof(*buffer));
    buffer->form         = form;
    buffer->length       = length;
    buffer->size         = length + GUARD * (last + 2);
    buffer->pieces_count = last + 1;
    buffer->memory       = malloc(buffer->size);
    memset(buffer->memory, UNTOUCHED, buffer->size);
    for (i = 0; i <= last; ++i) {
        size_t piece = (i < last) ? draw_below(&draw, left + 1) : left;

        buffer->pieces[i] = (ucp_dt_iov_t){buffer->memory + place, piece};
        place += piece + GUARD;
        left -= piece;
    }
}

void data_buffer_destroy(data_buffer_t *buffer)
{
    free(buffer->memory);
    buffer->memory = NULL;
}

void *data_buffer_arg(data_buffer_t *buffer, size_t *count_p, ucp_datatype_t *datatype_p)
{
    *count_p    = 1;
    *datatype_p = UCP_DATATYPE_GENERIC;
    switch (buffer->form) {
    case FORM_CONTIG:
        *count_p    = buffer->length;
        *datatype_p = ucp_dt_make_contig(1);
        return buffer->pieces[0].buffer;
    case FORM_IOV:
        *count_p    = buffer->pieces_count;
        *datatype_p = ucp_dt_make_iov();
        return buffer->pieces;
    case FORM_GENERIC_WHOLE:
        *datatype_p |= 1u << UCP_DATATYPE_SHIFT;
        return buffer;
    default:
        return buffer;
    }
}

static void move(const data_buffer_t *buffer, char *bytes, size_t length, bool in)
{
    size_t piece;
    unsigned i;

    for (i = 0; (i < buffer->pieces_count) && (length > 0); ++i) {
        piece = uci_min(length, buffer->pieces[i].length);
        if (in) {
            memcpy(buffer->pieces[i].buffer, bytes, piece);
        } else {
            memcpy(bytes, buffer->pieces[i].buffer, piece);
        }
        bytes += piece;
        length -= piece;
    }
}

void data_buffer_fill(data_buffer_t *buffer, const char *bytes, size_t length)
{
    move(buffer, (char *)(uintptr_t)bytes, length, true);
}

void data_buffer_read(const data_buffer_t *buffer, char *bytes, size_t length)
{
    move(buffer, bytes, length, false);
}

void data_buffer_spoil(data_buffer_t *buffer)
{
    memset(buffer->memory, SPOILT, buffer->size);
}

static bool is_untouched(const char *from, const char *to)
{
    return (from == to) || ((*from == UNTOUCHED) && (memcmp(from, from + 1, (size_t)(to - from) - 1) == 0));
}

bool data_buffer_is_clean(const data_buffer_t *buffer, size_t length)
{
    const char *next = buffer->memory;
    unsigned i;

    for (i = 0; i < buffer->pieces_count; ++i) {
        size_t piece     = uci_min(length, buffer->pieces[i].length);
        const char *data = buffer->pieces[i].buffer;

        if (!is_untouched(next, data)) {
            return false;
        }
        next = data + piece;
        length -= piece;
    }
    return is_untouched(next, buffer->memory + buffer->size);
}
