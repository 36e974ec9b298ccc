/* SPDX-License-Identifier: BSD-3-Clause */
#include "packer.h"

#include <stdlib.h>
#include <string.h>

#include "util/log.h"
#include "forensics/mpi_tag.h"
#include "util/process.h"

#define UCI_PACKER_ROUNDS 3

/* The whole message, from or to its packed form */
typedef ucs_status_t (*uci_packer_run_t)(uci_buffer_t *buf, char *packed);

static ucs_status_t uci_packer_pack_part(uci_buffer_t *buf, size_t offset, char *dst, size_t length)
{
    size_t done;
    ucs_status_t status = uci_ordered_pack_some(buf, offset, dst, length, &done);

    if (uci_unlikely((status == UCS_OK) && (done < length))) {
        uci_error("a generic datatype packs only %zu of %zu bytes at offset %zu", done, length, offset);
        return UCS_ERR_INVALID_PARAM;
    }
    return status;
}

static ucs_status_t uci_packer_pack_whole(uci_buffer_t *buf, char *packed)
{
    return uci_packer_pack_part(buf, 0, packed, buf->length);
}

ucs_status_t uci_packer_pack_pieces(uci_ordered_t *ordered, uci_buffer_t *buf, char *dst, size_t length,
                                    uci_border_t *border_p)
{
    ucs_status_t status = UCS_OK;
    uci_cut_t cut       = 0;
    size_t done, part;

    for (done = 0; (done < length) && (status == UCS_OK); done += part) {
        part   = uci_min(length - done, (size_t)UCI_PACKER_PIECE);
        status = uci_ordered_pack(ordered, buf, dst + done, part, &cut);
    }
    *border_p = uci_ordered_border(ordered, cut);
    return status;
}

static ucs_status_t uci_packer_pack_in_pieces(uci_buffer_t *buf, char *packed)
{
    uci_ordered_t ordered = {0};
    uci_border_t border;
    ucs_status_t status = uci_packer_pack_pieces(&ordered, buf, packed, buf->length, &border);

    uci_ordered_cleanup(&ordered);
    return status;
}

static ucs_status_t uci_packer_unpack_whole(uci_buffer_t *buf, char *packed)
{
    return buf->generic->ops.unpack(buf->state, 0, packed, buf->length);
}

/* Where elements end is not known: an unpacker that insists on whole ones refuses */
static ucs_status_t uci_packer_unpack_in_pieces(uci_buffer_t *buf, char *packed)
{
    uci_ordered_t ordered = {0};
    size_t done, part;

    for (done = 0; done < buf->length; done += part) {
        part = uci_min(buf->length - done, (size_t)UCI_PACKER_PIECE);
        if (!uci_ordered_unpack(&ordered, buf, packed + done, part, 0)) {
            return UCS_ERR_UNSUPPORTED;
        }
    }
    return UCS_OK;
}

static uint64_t uci_packer_time(uci_packer_run_t run, uci_buffer_t *buf, char *packed)
{
    uint64_t begin      = uci_process_time_ns();
    ucs_status_t status = run(buf, packed);

    return (status == UCS_OK) ? uci_process_time_ns() - begin : UINT64_MAX / 4;
}

static uci_packer_way_t uci_packer_get(const uint8_t *way)
{
    return (uci_packer_way_t)__atomic_load_n(way, __ATOMIC_RELAXED);
}

static void uci_packer_learn(uint8_t *way_p, uci_packer_run_t whole, uci_packer_run_t pieces, uci_buffer_t *buf,
                             char *packed)
{
    uint64_t best_whole = UINT64_MAX / 4, best_pieces = UINT64_MAX / 4;
    uci_packer_way_t way;
    unsigned round;

    for (round = 0; round < UCI_PACKER_ROUNDS; ++round) {
        best_whole  = uci_min(best_whole, uci_packer_time(whole, buf, packed));
        best_pieces = uci_min(best_pieces, uci_packer_time(pieces, buf, packed));
    }
    if (4 * best_whole > 5 * best_pieces) {
        way = UCI_PACKER_PIECES;
    } else if (2 * best_whole <= best_pieces) {
        way = UCI_PACKER_WHOLE;
    } else {
        way = UCI_PACKER_EITHER;
    }
    uci_debug("a datatype of %zu bytes: whole %lu ns, in pieces %lu ns", buf->length, (unsigned long)best_whole,
              (unsigned long)best_pieces);
    __atomic_store_n(way_p, (uint8_t)way, __ATOMIC_RELAXED);
}

/* It takes a packer that goes back to the start: the MPIs' do, a program's own need not */
static bool uci_packer_may_learn(const uci_buffer_t *buf, const uint8_t *way)
{
    return (uci_packer_get(way) == UCI_PACKER_UNKNOWN) && (buf->length > UCI_PACKER_PIECE) &&
           (buf->length <= UCI_PACKER_LEARN_MAX) && (uci_mpi_here() != UCI_MPI_UNKNOWN);
}

uci_packer_way_t uci_packer_way(uci_buffer_t *buf)
{
    uint8_t *way = &buf->generic->pack_way;
    char *packed = uci_unlikely(uci_packer_may_learn(buf, way)) ? malloc(buf->length) : NULL;

    if (uci_unlikely(packed != NULL)) {
        uci_packer_learn(way, uci_packer_pack_whole, uci_packer_pack_in_pieces, buf, packed);
        free(packed);
    }
    return uci_packer_get(way);
}

static bool uci_packer_is_whole(const uci_buffer_t *buf, size_t offset, size_t length)
{
    return (offset == 0) && (length == buf->length) && (length > UCI_PACKER_PIECE);
}

ucs_status_t uci_packer_pack(uci_buffer_t *buf, size_t offset, void *dst, size_t length)
{
    if (uci_packer_is_whole(buf, offset, length) && (uci_packer_way(buf) == UCI_PACKER_PIECES)) {
        return uci_packer_pack_in_pieces(buf, dst);
    }
    return uci_packer_pack_part(buf, offset, dst, length);
}

ucs_status_t uci_packer_unpack(uci_buffer_t *buf, size_t offset, const void *src, size_t length)
{
    uint8_t *way = &buf->generic->unpack_way;
    char *packed = (char *)src; /* read only */

    if (uci_packer_is_whole(buf, offset, length)) {
        if (uci_unlikely(uci_packer_may_learn(buf, way))) {
            uci_packer_learn(way, uci_packer_unpack_whole, uci_packer_unpack_in_pieces, buf, packed);
        }
        if ((uci_packer_get(way) == UCI_PACKER_PIECES) && (uci_packer_unpack_in_pieces(buf, packed) == UCS_OK)) {
            return UCS_OK;
        }
    }
    return buf->generic->ops.unpack(buf->state, offset, src, length);
}
