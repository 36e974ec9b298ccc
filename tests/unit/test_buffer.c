/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/buffer.h"
#include "data/iov.h"
#include "capture.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE = 5000 };

static uint8_t packed[SIZE], memory[2 * SIZE], out[SIZE];
static const uci_digest_ops_t *digest;

/* A generic datatype: every second byte; packs at most `pack_max` bytes a call */
static unsigned starts, finishes, unpacks;
static size_t pack_max = SIZE_MAX;
static ucs_status_t unpack_status;

static void *start_pack(void *context, const void *buffer, size_t count)
{
    cr_assert(context == &starts);
    ++starts;
    return (void *)(uintptr_t)buffer;
}

static void *start_unpack(void *context, void *buffer, size_t count)
{
    return start_pack(context, buffer, count);
}

static size_t packed_size(void *state)
{
    return SIZE;
}

static size_t pack(void *state, size_t offset, void *dest, size_t max_length)
{
    size_t i, length = uci_min(uci_min(max_length, SIZE - offset), pack_max);

    for (i = 0; i < length; ++i) {
        ((uint8_t *)dest)[i] = ((uint8_t *)state)[2 * (offset + i)];
    }
    return length;
}

static ucs_status_t unpack(void *state, size_t offset, const void *src, size_t length)
{
    size_t i;

    ++unpacks;
    for (i = 0; i < length; ++i) {
        ((uint8_t *)state)[2 * (offset + i)] = ((const uint8_t *)src)[i];
    }
    return unpack_status;
}

static void finish(void *state)
{
    ++finishes;
}

static uci_generic_dt_t generic = {.ops     = {.start_pack   = start_pack,
                                               .start_unpack = start_unpack,
                                               .packed_size  = packed_size,
                                               .pack         = pack,
                                               .unpack       = unpack,
                                               .finish       = finish},
                                   .context = &starts};

#define GENERIC (0x1000ul | UCP_DATATYPE_GENERIC)

static uci_generic_dt_t *lookup(ucp_datatype_t datatype)
{
    return (datatype == GENERIC) ? &generic : NULL;
}

static void set_up(void)
{
    size_t i;

    uci_digest_init();
    digest                    = uci_digest_by_id(UCI_DIGEST_XXH3);
    uci_buffer_generic_lookup = lookup;
    for (i = 0; i < SIZE; ++i) {
        packed[i] = (uint8_t)((i * 31) + (i >> 8));
    }
}

TestSuite(buffer, .init = set_up);

/* Entries of 1, 0, 99, 1000, ... bytes that lie in `memory` in reverse order */
static size_t make_iov(ucp_dt_iov_t *iov, size_t count, size_t total)
{
    static const size_t lengths[] = {1, 0, 99, 1000, 0, 17};
    size_t i, length, place = sizeof(memory);

    for (i = 0; i < count; ++i) {
        length = (i + 1 == count) ? total : uci_min(lengths[i % uci_array_size(lengths)], total);
        total -= length;
        place -= length + 3;
        iov[i].buffer = memory + place;
        iov[i].length = length;
    }
    return count;
}

static void scatter(const ucp_dt_iov_t *iov, size_t count)
{
    size_t i, done = 0;

    for (i = 0; i < count; ++i) {
        memcpy(iov[i].buffer, packed + done, iov[i].length);
        done += iov[i].length;
    }
}

static void check_gathered(const ucp_dt_iov_t *iov, size_t count, size_t begin, size_t end)
{
    size_t i, k, done = 0;

    for (i = 0; i < count; ++i) {
        for (k = 0; k < iov[i].length; ++k, ++done) {
            uint8_t expected = ((done >= begin) && (done < end)) ? packed[done] : 0xee;

            cr_assert(((uint8_t *)iov[i].buffer)[k] == expected, "byte %zu in entry %zu", done, i);
        }
    }
}

Test(buffer, contig_lengths)
{
    uci_buffer_t buf;

    cr_assert(uci_buffer_init_send(&buf, packed, 10, ucp_dt_make_contig(1)) == UCS_OK);
    cr_expect(buf.length == 10);
    cr_assert(uci_buffer_init_send(&buf, packed, 10, ucp_dt_make_contig(24)) == UCS_OK);
    cr_expect(buf.length == 240);
    cr_assert(uci_buffer_init_recv(&buf, packed, 1, ucp_dt_make_contig(1ul << 40)) == UCS_OK);
    cr_expect(buf.length == 1ul << 40);
    cr_assert(uci_buffer_init_recv(&buf, NULL, 0, ucp_dt_make_contig(8)) == UCS_OK);
    cr_expect(buf.length == 0);
    cr_expect(uci_buffer_direct(&buf, 0, 0) == NULL || buf.length == 0);
    uci_buffer_finish(&buf);
}

/* What is not verified is only counted: nothing is packed, or looked up */
Test(buffer, known_length)
{
    const ucp_dt_iov_t iov[]  = {{memory, 100}, {NULL, 0}, {memory + 200, 17}};
    ucp_request_param_t param = {.op_attr_mask = 0, .datatype = ucp_dt_make_iov()};
    unsigned before           = starts;

    cr_expect_eq(uci_buffer_known_length(memory, 10, &param), 10, "bytes, if no datatype is named");
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    cr_expect_eq(uci_buffer_known_length(iov, 3, &param), 117);
    param.datatype = ucp_dt_make_contig(24);
    cr_expect_eq(uci_buffer_known_length(memory, 10, &param), 240);
    param.datatype = 0x2000ul | UCP_DATATYPE_GENERIC;
    cr_expect_eq(uci_buffer_known_length(memory, 10, &param), 0);
    cr_expect_eq(starts, before);
}

Test(buffer, contig)
{
    uci_buffer_t buf;

    cr_assert(uci_buffer_init_recv(&buf, memory, SIZE, ucp_dt_make_contig(1)) == UCS_OK);
    cr_expect(uci_buffer_direct(&buf, 17, 100) == memory + 17);
    cr_expect(uci_buffer_write(&buf, 17, packed, 1000, digest, 0) == digest->digest(packed, 1000));
    cr_expect(memcmp(memory + 17, packed, 1000) == 0);
    cr_expect((memory[16] == 0) && (memory[1017] == 0));
    cr_expect(uci_buffer_read_plain(&buf, 17, out, 1000, digest) == digest->digest(packed, 1000));
    cr_expect(memcmp(out, packed, 1000) == 0);
}

/* Requests come from a pool, with what the last operation left in them */
Test(buffer, nothing_is_left_of_the_last_use)
{
    uci_buffer_t buffer;

    memset(&buffer, 0xff, sizeof(buffer));
    cr_assert_eq(uci_buffer_init_recv(&buffer, memory, SIZE, ucp_dt_make_contig(1)), UCS_OK);
    cr_expect_eq(buffer.form, UCI_FORM_FUSED);
    cr_expect_eq(buffer.status, UCS_OK);
}

Test(buffer, target)
{
    ucp_dt_iov_t iov[] = {{memory, 100}, {memory + 200, 100}};
    uci_buffer_t buffer;
    void *staging;

    cr_assert_eq(uci_buffer_init_recv(&buffer, iov, 2, ucp_dt_make_iov()), UCS_OK);
    cr_expect_eq(uci_buffer_target(&buffer, 100, 100, &staging), memory + 200);
    cr_expect_null(staging);
    cr_expect_eq(uci_buffer_target(&buffer, 50, 100, &staging), staging, "over the gap");
    cr_assert_not_null(staging);
    free(staging);
}

Test(buffer, iov_of_every_count)
{
    ucp_dt_iov_t iov[8];
    uci_buffer_t buf;
    size_t count, offset;

    for (count = 0; count <= 8; ++count) {
        size_t total = (count == 0) ? 0 : 3000;

        make_iov(iov, count, total);
        scatter(iov, count);
        cr_assert(uci_buffer_init_send(&buf, iov, count, ucp_dt_make_iov()) == UCS_OK);
        cr_assert(buf.length == total, "%zu entries: %zu bytes", count, buf.length);
        for (offset = 0; offset <= total; offset += 37) {
            size_t length = uci_min((size_t)500, total - offset);

            cr_assert(uci_buffer_read_plain(&buf, offset, out, length, digest) ==
                      digest->digest(packed + offset, length));
            cr_assert(memcmp(out, packed + offset, length) == 0, "%zu entries, offset %zu", count, offset);
        }
        uci_buffer_finish(&buf);
    }
}

/* Of a long one no more entries are looked at than are remembered together: the others hold nonsense by now */
Test(buffer, iov_is_not_walked)
{
    enum { ENTRIES = 20000, ENTRY = 8 };
    static ucp_dt_iov_t iov[ENTRIES], entries[ENTRIES];
    static char bytes[ENTRIES][ENTRY];
    size_t i, first, offset, place;
    uci_buffer_t buf;

    for (i = 0; i < ENTRIES; ++i) {
        entries[i] = (ucp_dt_iov_t){.buffer = bytes[i], .length = (i % 7 == 3) ? 0 : ENTRY}; /* some are empty */
    }
    memcpy(iov, entries, sizeof(iov));
    cr_assert(uci_buffer_init_send(&buf, iov, ENTRIES, ucp_dt_make_iov()) == UCS_OK);
    for (i = 0, offset = 0; i < ENTRIES; offset += entries[i].length, ++i) {
        if ((entries[i].length == 0) || (i % 101 > 1)) {
            continue;
        }
        first = i - (i % UCI_IOV_STEP);
        memset(iov, 0xff, sizeof(iov));
        memcpy(iov + first, entries + first, (i - first + 1) * sizeof(*iov));
        place = offset + ENTRY - 1;
        cr_assert(uci_buffer_direct(&buf, place, 1) == &bytes[i][ENTRY - 1], "entry %zu", i);
        cr_assert((uci_iov_find(iov, ENTRIES, buf.index, &place) == i) && (place == ENTRY - 1));
    }
    memcpy(iov, entries, sizeof(iov));
    cr_expect(uci_buffer_direct(&buf, buf.length, 1) == NULL, "behind the last one");
    uci_buffer_finish(&buf);
    cr_expect(buf.index == NULL);
    uci_buffer_finish(&buf);
}

Test(buffer, iov_of_many)
{
    enum { ENTRIES = 700 };
    static ucp_dt_iov_t iov[ENTRIES];
    size_t offset, length = 333;
    uci_buffer_t buf;
    uint64_t value;

    make_iov(iov, ENTRIES, 3000);
    scatter(iov, ENTRIES);
    cr_assert(uci_buffer_init_send(&buf, iov, ENTRIES, ucp_dt_make_iov()) == UCS_OK);
    for (offset = 0; offset + length <= 3000; offset += 61) {
        cr_assert(uci_buffer_read(&buf, offset, out, length, digest, &value) == UCS_OK);
        cr_assert((value == digest->digest(packed + offset, length)) && (memcmp(out, packed + offset, length) == 0));
    }
    uci_buffer_finish(&buf);
}

Test(buffer, iov_write)
{
    ucp_dt_iov_t iov[6];
    uci_buffer_t buf;
    size_t begin, end;

    for (begin = 0; begin < 3000; begin += 97) {
        end = uci_min(begin + 1100, (size_t)3000);
        make_iov(iov, 6, 3000);
        memset(memory, 0xee, sizeof(memory));
        cr_assert(uci_buffer_init_recv(&buf, iov, 6, ucp_dt_make_iov()) == UCS_OK);
        cr_assert(uci_buffer_write(&buf, begin, packed + begin, end - begin, digest,
                                   digest->digest(packed + begin, end - begin)) ==
                  digest->digest(packed + begin, end - begin));
        check_gathered(iov, 6, begin, end);
    }
}

/* What is not as expected is not stored, where storing can't be undone */
Test(buffer, wrong_bytes_are_not_stored)
{
    ucp_dt_iov_t iov[3];
    uci_buffer_t buf;

    make_iov(iov, 3, 2000);
    memset(memory, 0xee, sizeof(memory));
    cr_assert(uci_buffer_init_recv(&buf, iov, 3, ucp_dt_make_iov()) == UCS_OK);
    cr_expect(uci_buffer_write(&buf, 0, packed, 2000, digest, 12345) == digest->digest(packed, 2000));
    check_gathered(iov, 3, 0, 0);

    cr_assert(uci_buffer_init_recv(&buf, memory, 1, GENERIC) == UCS_OK);
    cr_expect(uci_buffer_write(&buf, 0, packed, SIZE, digest, 12345) == digest->digest(packed, SIZE));
    cr_expect(unpacks == 0);
    uci_buffer_finish(&buf);
}

Test(buffer, iov_direct)
{
    ucp_dt_iov_t iov[4] = {{memory, 100}, {memory + 200, 0}, {memory + 300, 50}, {memory + 400, 10}};
    uci_buffer_t buf;

    cr_assert(uci_buffer_init_send(&buf, iov, 4, ucp_dt_make_iov()) == UCS_OK);
    cr_expect(buf.length == 160);
    cr_expect(uci_buffer_direct(&buf, 0, 100) == memory);
    cr_expect(uci_buffer_direct(&buf, 1, 100) == NULL);
    cr_expect(uci_buffer_direct(&buf, 100, 50) == memory + 300);
    cr_expect(uci_buffer_direct(&buf, 110, 40) == memory + 310);
    cr_expect(uci_buffer_direct(&buf, 110, 41) == NULL);
    cr_expect(uci_buffer_direct(&buf, 150, 10) == memory + 400);
    cr_expect(uci_buffer_direct(&buf, 159, 2) == NULL);
}

Test(buffer, generic_round_trip)
{
    uci_buffer_t from, to;
    size_t done, part;
    uint64_t value;
    size_t i;

    for (i = 0; i < SIZE; ++i) {
        memory[2 * i] = packed[i];
    }
    pack_max = 7; /* a packer may give less than it is asked for */
    cr_assert(uci_buffer_init_send(&from, memory, 1, GENERIC) == UCS_OK);
    cr_expect(from.length == SIZE);
    cr_expect(uci_buffer_direct(&from, 0, 1) == NULL);
    for (done = 0; done < SIZE; done += part) {
        part = uci_min((size_t)777, SIZE - done);
        cr_assert(uci_buffer_read(&from, done, out + done, part, digest, &value) == UCS_OK);
        cr_assert(value == digest->digest(packed + done, part));
    }
    cr_expect(memcmp(out, packed, SIZE) == 0);
    uci_buffer_finish(&from);
    uci_buffer_finish(&from);
    cr_expect((starts == 1) && (finishes == 1), "finished once");

    memset(memory, 0, sizeof(memory));
    cr_assert(uci_buffer_init_recv(&to, memory, 1, GENERIC) == UCS_OK);
    cr_expect(uci_buffer_write(&to, 0, packed, SIZE, digest, digest->digest(packed, SIZE)) ==
              digest->digest(packed, SIZE));
    for (i = 0; i < SIZE; ++i) {
        cr_assert((memory[2 * i] == packed[i]) && (memory[(2 * i) + 1] == 0));
    }
    uci_buffer_finish(&to);
    cr_expect((starts == 2) && (finishes == 2));
}

Test(buffer, generic_that_stalls)
{
    test_capture_t capture = test_capture_start();
    uci_buffer_t buf;
    uint64_t value;
    char *text;

    pack_max = 0;
    cr_assert(uci_buffer_init_send(&buf, memory, 1, GENERIC) == UCS_OK);
    cr_expect(uci_buffer_read(&buf, 0, out, 100, digest, &value) == UCS_ERR_INVALID_PARAM);
    cr_expect(uci_buffer_read_back(&buf, out, 100) == UCS_ERR_INVALID_PARAM);
    uci_buffer_finish(&buf);
    text = test_capture_stop(&capture);
    cr_expect(strstr(text, "packs only 0 of 100") != NULL, "%s", text);
    free(text);
}

Test(buffer, first_unpack_error_stays)
{
    uci_buffer_t buf;

    cr_assert(uci_buffer_init_recv(&buf, memory, 1, GENERIC) == UCS_OK);
    unpack_status = UCS_ERR_IO_ERROR;
    uci_buffer_write(&buf, 0, packed, 10, digest, digest->digest(packed, 10));
    unpack_status = UCS_ERR_NO_MEMORY;
    uci_buffer_write(&buf, 10, packed, 10, digest, digest->digest(packed, 10));
    cr_expect(buf.status == UCS_ERR_IO_ERROR);
    uci_buffer_finish(&buf);
}

/* As UCX does: an unpacker hears of a message of nothing, and may refuse it */
Test(buffer, an_error_of_nothing)
{
    uci_buffer_t buf;

    cr_assert(uci_buffer_init_recv(&buf, memory, 0, GENERIC) == UCS_OK);
    unpack_status = UCS_ERR_NO_MEMORY;
    uci_buffer_write(&buf, 0, packed, 0, digest, digest->digest(packed, 0));
    cr_expect(buf.status == UCS_ERR_NO_MEMORY);
    uci_buffer_finish(&buf);
}

Test(buffer, unknown_datatype)
{
    test_capture_t capture = test_capture_start();
    ucs_status_t status;
    uci_buffer_t buf;
    char *text;

    status = uci_buffer_init_send(&buf, memory, 1, 0x2000ul | UCP_DATATYPE_GENERIC);
    uci_buffer_finish(&buf); /* does no harm */
    text = test_capture_stop(&capture);
    cr_expect(status == UCS_ERR_INVALID_PARAM);
    cr_expect(strstr(text, "datatype") != NULL, "%s", text);
    free(text);
}
