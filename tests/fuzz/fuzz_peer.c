/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What ucp_ep_print_info() prints, and the mark in front of an address.
 */
#include "../../pipeline/base/peer.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    const uint8_t *data;
    size_t size;
} fuzz_print;

static void fake_print_info(ucp_ep_h ep, FILE *stream)
{
    fwrite(fuzz_print.data, 1, fuzz_print.size, stream);
}

/* As UCX before 1.14, which has to be read */
static ucs_status_t fake_query(ucp_ep_h ep, ucp_ep_attr_t *attr)
{
    return UCS_OK;
}

static void try_lanes(const uint8_t *data, size_t size)
{
    uci_transports_t found;

    fuzz_print.data       = data;
    fuzz_print.size       = size;
    uci_ucp.ep_print_info = fake_print_info;
    uci_ucp.ep_query      = fake_query;
    uci_transports_query(NULL, &found);
    if ((strlen(found.list) >= sizeof(found.list)) || (strlen(found.interface) >= sizeof(found.interface))) {
        abort();
    }
}

/* An address of exactly these bytes; the first one says whether the mark is sealed */
static void try_mark(const uint8_t *data, size_t size)
{
    uci_mark_t *mark = malloc(size);
    uci_peer_t *peer;

    memcpy(mark, data, size);
    if ((size >= sizeof(*mark)) && (mark->pid & 1)) {
        mark->ucx_header = UCI_MARK_UCX_HEADER;
        mark->ucx_end    = UCI_MARK_UCX_END;
        mark->magic      = UCI_MARK_MAGIC;
        mark->protocol   = UCI_PROTOCOL_VERSION;
        uci_mark_finish(mark);
    }
    if (size >= 16) { /* uci_mark_is_present() says why not less */
        uci_mark_is_present(mark);
    }
    if ((size >= sizeof(*mark)) && (uci_mark_check(mark) == UCS_OK)) {
        peer         = calloc(1, sizeof(*peer));
        peer->worker = calloc(1, sizeof(*peer->worker));
        uci_peer_set_mark(peer, mark);
        uci_peer_name(peer);
        free(peer->worker);
        free(peer);
    }
    free(mark);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (uci_settings.digest == NULL) {
        uci_log_level = UCI_LOG_FATAL;
        uci_digest_init();
        uci_settings.digest = uci_digest_by_id(UCI_DIGEST_XXH3);
    }
    if (size > 1) {
        ((data[0] & 1) ? try_lanes : try_mark)(data + 1, size - 1);
    }
    return 0;
}
