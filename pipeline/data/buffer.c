/* SPDX-License-Identifier: BSD-3-Clause */
#include "buffer.h"

#include <stdlib.h>
#include <string.h>

#include "iov.h"
#include "util/log.h"
#include "forensics/mpi_tag.h"
#include "packer.h"

uci_generic_dt_t *(*uci_buffer_generic_lookup)(ucp_datatype_t datatype);

static ucs_status_t uci_buffer_init(uci_buffer_t *buf, void *data, size_t count, ucp_datatype_t datatype)
{
    buf->data   = data;
    buf->count  = count;
    buf->state  = NULL;
    buf->status = UCS_OK;
    buf->form   = UCI_FORM_FUSED;

    switch (datatype & UCP_DATATYPE_CLASS_MASK) {
    case UCP_DATATYPE_IOV:
        buf->kind = UCI_BUFFER_IOV;
        return uci_iov_index(data, count, &buf->length, &buf->index);
    case UCP_DATATYPE_GENERIC:
        buf->kind    = UCI_BUFFER_GENERIC;
        buf->generic = uci_buffer_generic_lookup(datatype);
        if (buf->generic != NULL) {
            return UCS_OK;
        }
        break;
    default:
        break;
    }

    uci_error("datatype 0x%lx is not one that UCI knows: was it created before UCI was loaded?",
              (unsigned long)datatype);
    return UCS_ERR_INVALID_PARAM;
}

size_t uci_buffer_known_length_other(const void *data, size_t count, ucp_datatype_t datatype)
{
    return ((datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_IOV) ? uci_iov_length(data, count) : 0;
}

ucs_status_t uci_buffer_init_send_other(uci_buffer_t *buf, const void *data, size_t count, ucp_datatype_t datatype)
{
    ucs_status_t status = uci_buffer_init(buf, (void *)data, count, datatype);

    if ((status == UCS_OK) && (buf->kind == UCI_BUFFER_GENERIC)) {
        buf->state  = buf->generic->ops.start_pack(buf->generic->context, data, count);
        buf->length = buf->generic->ops.packed_size(buf->state);
    }
    return status;
}

ucs_status_t uci_buffer_init_recv_other(uci_buffer_t *buf, void *data, size_t count, ucp_datatype_t datatype)
{
    ucs_status_t status = uci_buffer_init(buf, data, count, datatype);

    if ((status == UCS_OK) && (buf->kind == UCI_BUFFER_GENERIC)) {
        buf->state  = buf->generic->ops.start_unpack(buf->generic->context, data, count);
        buf->length = buf->generic->ops.packed_size(buf->state);
    }
    return status;
}

static void uci_buffer_finish_state(uci_buffer_t *buf)
{
    if ((buf->kind == UCI_BUFFER_GENERIC) && (buf->state != NULL)) {
        buf->generic->ops.finish(buf->state);
        buf->state = NULL;
    }
}

void uci_buffer_finish_other(uci_buffer_t *buf)
{
    uci_buffer_finish_state(buf);
    if (buf->kind == UCI_BUFFER_IOV) {
        free(buf->index);
        buf->index = NULL;
    }
}

void *uci_buffer_direct(const uci_buffer_t *buf, size_t offset, size_t length)
{
    const ucp_dt_iov_t *iov = buf->data;
    size_t i;

    switch (buf->kind) {
    case UCI_BUFFER_CONTIG:
        return (char *)buf->data + offset;
    case UCI_BUFFER_IOV:
        i = uci_iov_find(iov, buf->count, buf->index, &offset);
        if ((i < buf->count) && (iov[i].length - offset >= length)) {
            return (char *)iov[i].buffer + offset;
        }
        return NULL;
    default:
        return NULL;
    }
}

void *uci_buffer_target(const uci_buffer_t *buf, size_t offset, size_t length, void **staging_p)
{
    void *direct = uci_buffer_direct(buf, offset, length);

    *staging_p = (direct != NULL) ? NULL : malloc(length);
    return (direct != NULL) ? direct : *staging_p;
}

/* Walk the iov entries that hold [offset, offset+length) and copy each part to a packed buffer, digesting it on the way; or, without a
 * digest, from there */
static void uci_buffer_iov_copy(const uci_buffer_t *buf, size_t offset, char *packed, size_t length,
                                const uci_digest_ops_t *digest, uci_digest_stream_t *stream)
{
    const ucp_dt_iov_t *iov = buf->data;
    size_t i, part;
    char *user;

    for (i = uci_iov_find(iov, buf->count, buf->index, &offset); (i < buf->count) && (length > 0); ++i) {
        part = uci_min(iov[i].length - offset, length);
        if (part == 0) {
            continue; /* it may be nowhere */
        }
        user = (char *)iov[i].buffer + offset;
        if (digest != NULL) {
            digest->update(stream, packed, user, part);
        } else {
            memcpy(user, packed, part);
        }
        packed += part;
        length -= part;
        offset = 0;
    }
}

uint64_t uci_buffer_read_plain(const uci_buffer_t *buf, size_t offset, void *dst, size_t length,
                               const uci_digest_ops_t *digest)
{
    uci_digest_stream_t stream;

    if (uci_likely(buf->kind == UCI_BUFFER_CONTIG)) {
        return digest->copy(dst, (const char *)buf->data + offset, length);
    }
    digest->init(&stream);
    uci_buffer_iov_copy(buf, offset, dst, length, digest, &stream);
    return digest->final(&stream);
}

ucs_status_t uci_buffer_read(uci_buffer_t *buf, size_t offset, void *dst, size_t length, const uci_digest_ops_t *digest,
                             uint64_t *value_p)
{
    ucs_status_t status;

    if (uci_likely(buf->kind != UCI_BUFFER_GENERIC)) {
        *value_p = uci_buffer_read_plain(buf, offset, dst, length, digest);
        return UCS_OK;
    }
    status = uci_packer_pack(buf, offset, dst, length);
    if (status == UCS_OK) {
        *value_p = digest->digest(dst, length);
    }
    return status;
}

/* MPICH takes a reference to a datatype with each operation, and gives it up in finish(): once more would free the datatype under its user.
 * There the one state of the operation is finished by the operation alone, and what was begun beside it is left lying: 40 bytes. */
static bool uci_buffer_finishes_once(const uci_buffer_t *buf)
{
    return (buf->kind == UCI_BUFFER_GENERIC) && (uci_mpi_here() == UCI_MPI_MPICH);
}

/* A GPU's memory is read and written at any place by the one state that there is, which can't be made again: what it is of was told for its start alone */
static bool uci_buffer_is_staged(const uci_buffer_t *buf)
{
    return (buf->kind == UCI_BUFFER_GENERIC) && buf->generic->is_staged;
}

ucs_status_t uci_buffer_read_back(uci_buffer_t *buf, void *dst, size_t length)
{
    bool staged = uci_buffer_is_staged(buf), once = staged || uci_buffer_finishes_once(buf);
    uci_buffer_t packing;
    ucs_status_t status;
    uint64_t value;

    if (!once) {
        uci_buffer_finish_state(buf);
    }
    packing = *buf;
    if ((buf->kind == UCI_BUFFER_GENERIC) && !staged) {
        packing.state = buf->generic->ops.start_pack(buf->generic->context, buf->data, buf->count);
    }
    status = uci_buffer_read(&packing, 0, dst, length, &uci_digest_table[UCI_DIGEST_NONE], &value);
    if (!once) {
        uci_buffer_finish_state(&packing);
    }
    return status;
}

void uci_buffer_rewind(uci_buffer_t *buf)
{
    if ((uci_mpi_here() == UCI_MPI_UNKNOWN) && !uci_buffer_is_staged(buf)) {
        uci_buffer_finish_state(buf);
        buf->state = buf->generic->ops.start_pack(buf->generic->context, buf->data, buf->count);
    }
}

void uci_buffer_renew(uci_buffer_t *buf)
{
    if ((buf->kind == UCI_BUFFER_GENERIC) && !uci_buffer_finishes_once(buf) && !uci_buffer_is_staged(buf)) {
        uci_buffer_finish_state(buf);
        buf->state = buf->generic->ops.start_unpack(buf->generic->context, buf->data, buf->count);
    }
    buf->status = UCS_OK;
}

void uci_buffer_store(uci_buffer_t *buf, size_t offset, const void *src, size_t length)
{
    ucs_status_t status;

    if ((length == 0) && (buf->kind != UCI_BUFFER_GENERIC)) {
        return; /* the buffer may be NULL. An unpacker is told of nothing, too, as by UCX: it may refuse */
    }
    switch (buf->kind) {
    case UCI_BUFFER_CONTIG:
        memcpy((char *)buf->data + offset, src, length);
        break;
    case UCI_BUFFER_IOV:
        uci_buffer_iov_copy(buf, offset, (char *)src, length, NULL, NULL);
        break;
    default:
        status = uci_packer_unpack(buf, offset, src, length);
        if (buf->status == UCS_OK) {
            buf->status = status;
        }
        break;
    }
}

uint64_t uci_buffer_write(uci_buffer_t *buf, size_t offset, const void *src, size_t length,
                          const uci_digest_ops_t *digest, uint64_t expected)
{
    uint64_t value;

    if (uci_likely(buf->kind == UCI_BUFFER_CONTIG)) {
        return uci_likely(buf->form == UCI_FORM_FUSED)
                       ? digest->copy((char *)buf->data + offset, src, length)
                       : uci_digest_copy_as(digest, buf->form, (char *)buf->data + offset, src, length);
    }

    value = digest->digest(src, length);
    if (value == expected) {
        uci_buffer_store(buf, offset, src, length);
    }
    return value;
}
