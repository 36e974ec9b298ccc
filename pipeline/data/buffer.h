/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A user's buffer of any UCX datatype, read and written by offset in its packed form.
 */
#ifndef UCI_BUFFER_H_
#define UCI_BUFFER_H_

#include "ucp/ucp_api.h"
#include "digest/digest.h"

typedef enum { UCI_BUFFER_CONTIG, UCI_BUFFER_IOV, UCI_BUFFER_GENERIC } uci_buffer_kind_t;

/** A generic datatype as its creator described it; kept by the plugin since UCX does not tell. */
typedef struct uci_generic_dt {
    ucp_generic_dt_ops_t ops;
    void *context;
    uint8_t pack_way, unpack_way; /**< uci_packer_way_t; any thread's */
    bool is_staged;               /**< it is stage.c's, which sets this */
} uci_generic_dt_t;

typedef struct uci_buffer {
    uci_buffer_kind_t kind;
    void *data;    /**< contig: bytes; iov: ucp_dt_iov_t[count] */
    size_t count;  /**< of iov entries */
    size_t length; /**< packed bytes */
    size_t *index; /**< of an iov (iov.h) */
    uci_generic_dt_t *generic;
    void *state;         /**< of the generic datatype; NULL once finished */
    ucs_status_t status; /**< first error that unpacking gave; of packing each call tells */
    uci_form_t form;     /**< how bytes are copied into it, if it is contiguous: the receiver's choice by size */
} uci_buffer_t;

/** How the plugin finds a generic datatype's description; set by it before the first operation. */
extern uci_generic_dt_t *(*uci_buffer_generic_lookup)(ucp_datatype_t datatype);

/** The datatype of an operation: bytes, if it names none. */
UCI_INLINE ucp_datatype_t uci_buffer_datatype(const ucp_request_param_t *param)
{
    return (param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) ? param->datatype : ucp_dt_make_contig(1);
}

UCI_INLINE bool uci_buffer_is_contig(ucp_datatype_t datatype)
{
    return (datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_CONTIG;
}

UCI_INLINE size_t uci_buffer_contig_length(ucp_datatype_t datatype, size_t count)
{
    return count * (size_t)(datatype >> UCP_DATATYPE_SHIFT);
}

/** The cases of the functions below that are not contiguous. */
size_t uci_buffer_known_length_other(const void *data, size_t count, ucp_datatype_t datatype);
ucs_status_t uci_buffer_init_send_other(uci_buffer_t *buf, const void *data, size_t count, ucp_datatype_t datatype);
ucs_status_t uci_buffer_init_recv_other(uci_buffer_t *buf, void *data, size_t count, ucp_datatype_t datatype);
void uci_buffer_finish_other(uci_buffer_t *buf);

/** @return packed bytes of an operation's buffer, as far as they can be told without beginning to pack: 0 for a generic datatype. */
UCI_INLINE size_t uci_buffer_known_length(const void *data, size_t count, const ucp_request_param_t *param)
{
    ucp_datatype_t datatype = uci_buffer_datatype(param);

    return uci_likely(uci_buffer_is_contig(datatype)) ? uci_buffer_contig_length(datatype, count)
                                                      : uci_buffer_known_length_other(data, count, datatype);
}

UCI_INLINE void uci_buffer_init_contig(uci_buffer_t *buf, void *data, size_t length)
{
    buf->kind   = UCI_BUFFER_CONTIG;
    buf->data   = data;
    buf->length = length;
    buf->status = UCS_OK;
    buf->form   = UCI_FORM_FUSED;
}

/** Describe a buffer to be sent / received into, until uci_buffer_finish(). Generic: starts packing / unpacking.
 *  @return UCS_OK; UCS_ERR_INVALID_PARAM for an unknown datatype, or UCS_ERR_NO_MEMORY (both logged). */
UCI_INLINE ucs_status_t uci_buffer_init_send(uci_buffer_t *buf, const void *data, size_t count, ucp_datatype_t datatype)
{
    if (uci_likely(uci_buffer_is_contig(datatype))) {
        uci_buffer_init_contig(buf, (void *)data, uci_buffer_contig_length(datatype, count));
        return UCS_OK;
    }
    return uci_buffer_init_send_other(buf, data, count, datatype);
}

UCI_INLINE ucs_status_t uci_buffer_init_recv(uci_buffer_t *buf, void *data, size_t count, ucp_datatype_t datatype)
{
    if (uci_likely(uci_buffer_is_contig(datatype))) {
        uci_buffer_init_contig(buf, data, uci_buffer_contig_length(datatype, count));
        return UCS_OK;
    }
    return uci_buffer_init_recv_other(buf, data, count, datatype);
}

UCI_INLINE void uci_buffer_finish(uci_buffer_t *buf)
{
    if (uci_unlikely(buf->kind != UCI_BUFFER_CONTIG)) {
        uci_buffer_finish_other(buf);
    }
}

/** @return the bytes at @a offset if @a length of them are contiguous in memory, else NULL. */
void *uci_buffer_direct(const uci_buffer_t *buf, size_t offset, size_t length);

/**
 * Where @a length bytes that belong at @a offset can be written by somebody else: in the buffer if they are contiguous there,
 * else in new memory.
 * @param staging_p  NULL, or that memory: the caller brings its bytes into the buffer (uci_buffer_store(), _write()), and frees it.
 * @return NULL if there is no memory.
 */
void *uci_buffer_target(const uci_buffer_t *buf, size_t offset, size_t length, void **staging_p);

/**
 * Copy packed bytes out of the buffer, with their digest: of what was read there, but for generic datatypes, whose is of what they
 * have packed into @a dst, which must be memory of our own then. A generic datatype is read from an offset where one of
 * its elements begins, best as a whole: packers need not split elements.
 * @return UCS_OK; what a generic datatype's packer did wrong (logged). Others never fail.
 */
ucs_status_t uci_buffer_read(uci_buffer_t *buf, size_t offset, void *dst, size_t length, const uci_digest_ops_t *digest,
                             uint64_t *value_p);

/** The same of what is contiguous, or an iov: it can't fail. @return the digest. */
uint64_t uci_buffer_read_plain(const uci_buffer_t *buf, size_t offset, void *dst, size_t length,
                               const uci_digest_ops_t *digest);

/** Copy packed bytes out of a buffer that has been received into, from its beginning on. What a generic datatype still has to unpack lands
 *  before, and nothing more can be stored until uci_buffer_renew(). @return as uci_buffer_read(). */
ucs_status_t uci_buffer_read_back(uci_buffer_t *buf, void *dst, size_t length);

/** A generic datatype of which something has been packed, to be packed from its start again: a program's own packer may only go forward, and
 *  begins anew. Those of the MPIs go back, and MPICH lets go of the datatype when a state is finished. */
void uci_buffer_rewind(uci_buffer_t *buf);

/** The buffer of a receive as it was when the receive was posted: store into it once more. */
void uci_buffer_renew(uci_buffer_t *buf);

/** Copy packed bytes into the buffer; an error of unpacking is kept in its status. */
void uci_buffer_store(uci_buffer_t *buf, size_t offset, const void *src, size_t length);

/**
 * Verify while moving: @return the digest of @a length bytes at @a src, which are then stored. Into a generic
 * datatype only bytes whose digest is @a expected are unpacked, since unpacking can not be undone; contiguous bytes
 * are stored in any case, to be overwritten by the repair.
 */
uint64_t uci_buffer_write(uci_buffer_t *buf, size_t offset, const void *src, size_t length,
                          const uci_digest_ops_t *digest, uint64_t expected);

#endif
