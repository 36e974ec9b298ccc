/* SPDX-License-Identifier: BSD-3-Clause */
#include "inject_out.h"

#include <stdlib.h>

uci_inject_out_t *uci_inject_out_create(const void *header, size_t header_length, const void *data, size_t length,
                                        const ucp_request_param_t *param)
{
    uci_inject_out_t *out = malloc(sizeof(*out) + header_length);

    if (out == NULL) {
        return NULL;
    }
    out->cb            = param->cb.send;
    out->user_data     = param->user_data;
    out->data          = data;
    out->length        = length;
    out->copy          = NULL;
    out->hit           = false;
    out->faults        = 0;
    out->header_length = header_length;
    if (header_length > 0) {
        memcpy(&out->hdr, header, header_length);
    }
    return out;
}

void uci_inject_out_destroy(uci_inject_out_t *out)
{
    free(out->copy);
    free(out);
}

bool uci_inject_out_copy(uci_inject_out_t *out)
{
    if (out->copy == NULL) {
        out->copy = malloc(uci_max(out->length, 1ul));
        if (out->copy == NULL) {
            return false;
        }
        memcpy(out->copy, out->data, out->length);
        out->data = out->copy;
    }
    return true;
}
