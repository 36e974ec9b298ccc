/* SPDX-License-Identifier: BSD-3-Clause */
#include "signed.h"

#include <ctype.h>
#include <stdio.h>

#include "live/stats.h"

__thread uci_signature_next_t uci_signed_next;
const uci_signature_ops_t *uci_signed_ops;

/* ---------------------------------------------------------- what travels */

void uci_signed_append(char *end, const uci_signature_t *signature)
{
    uci_trailer_t mixed = {.hash = signature->hash, .unit = signature->unit};

    if (uci_signature_code(signature->word) == UCI_SIGNATURE_MIXED) {
        snprintf(mixed.text, sizeof(mixed.text), "%s", signature->text);
        memcpy(end, &mixed, sizeof(mixed));
        end += sizeof(mixed);
    }
    memcpy(end, &signature->word, sizeof(signature->word));
}

/* A peer's text goes into the log */
static void uci_signed_clean(char *text, size_t size)
{
    size_t i;

    text[size - 1] = '\0';
    for (i = 0; text[i] != '\0'; ++i) {
        if (!isprint((unsigned char)text[i]) || (text[i] == '"') || (text[i] == '\\')) {
            text[i] = '?';
        }
    }
}

void uci_signed_read_untold(uci_sent_types_t *types)
{
    types->mixed = (uci_trailer_t){.text = "types that it does not tell"};
}

static void uci_signed_read(const char *end, unsigned kind, uci_sent_types_t *types)
{
    if ((kind & 0xf0) == UCI_FRAME_SIGNED_MIXED) {
        memcpy(&types->mixed, end, sizeof(types->mixed));
        uci_signed_clean(types->mixed.text, sizeof(types->mixed.text));
        end += sizeof(types->mixed);
    } else {
        uci_signed_read_untold(types);
    }
    memcpy(&types->word, end, sizeof(types->word));
}

uci_frame_hdr_t uci_signed_hdr(const uci_frame_hdr_t *hdr)
{
    uci_frame_hdr_t plain = *hdr;

    plain.kind   = (uint8_t)uci_frame_kind(hdr->kind);
    plain.length = (uint16_t)(hdr->length - uci_frame_trailer(hdr->kind));
    return plain;
}

bool uci_signed_open(uci_worker_t *worker, const uci_frame_hdr_t *hdr, const char *payload, uci_signed_frame_t *opened)
{
    const uci_digest_ops_t *digest = uci_digest_by_id(hdr->digest);
    char *copy                     = opened->small;

    opened->memory = NULL;
    if (hdr->length > sizeof(opened->small)) {
        opened->memory = uci_frame_get(&worker->frames, hdr->length);
        if (opened->memory == NULL) {
            return false; /* as good as damaged: it is asked for again */
        }
        copy = opened->memory->wire;
    }
    if (uci_unlikely(digest->copy(copy, payload, hdr->length) != hdr->value)) {
        uci_signed_close(worker, opened);
        return false;
    }
    opened->hdr     = uci_signed_hdr(hdr);
    opened->payload = copy;
    uci_signed_read(copy + opened->hdr.length, hdr->kind, &opened->types);
    opened->hdr.value = digest->digest(copy, opened->hdr.length);
    return true;
}

void uci_signed_close(uci_worker_t *worker, uci_signed_frame_t *opened)
{
    if (opened->memory != NULL) {
        uci_frame_put(&worker->frames, opened->memory);
    }
}

/* --------------------------------------------------------- of a receive */

void uci_signed_drop(uci_request_t *req)
{
    req->flags &= ~(uint32_t)UCI_REQUEST_SIGNED;
    if (uci_signature_code(req->signature.word) == UCI_SIGNATURE_MIXED) {
        uci_signed_ops->release(req->signature.type);
    }
}

void uci_signed_end(uci_request_t *req, ucs_status_t status)
{
    if (req->flags & UCI_REQUEST_SIGNED) {
        if (status != UCS_ERR_CANCELED) {
            UCI_STATS_INC(signatures_missing);
        }
        uci_signed_drop(req);
    }
}

ucs_status_t uci_signed_fill(uci_frame_t *frame, uci_buffer_t *buffer, const uci_digest_ops_t *digest,
                             const uci_signature_t *signature, uint64_t *value_p)
{
    char *payload = uci_frame_payload(frame);
    ucs_status_t status;

    if (uci_likely(signature == NULL)) {
        return uci_buffer_read(buffer, 0, payload, buffer->length, digest, value_p);
    }
    status = uci_buffer_read(buffer, 0, payload, buffer->length, &uci_digest_table[UCI_DIGEST_NONE], value_p);
    if (status == UCS_OK) {
        uci_signed_append(payload + buffer->length, signature);
        *value_p = digest->digest(payload, frame->total - sizeof(uci_frame_hdr_t));
    }
    return status;
}
