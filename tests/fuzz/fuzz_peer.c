/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What ucp_ep_print_info() prints, and the mark in front of an address.
 */
#include "../../pipeline/peer.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_lanes(const uint8_t *data, size_t size)
{
    char *text     = malloc(size + 1), *line, *rest;
    char list[128] = "", interface[UCI_NETIF_NAME_SIZE] = "";

    memcpy(text, data, size);
    text[size] = '\0';
    for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        uci_peer_parse_lane(line, list, sizeof(list), interface);
        if ((strlen(list) >= sizeof(list)) || (strlen(interface) >= sizeof(interface))) {
            abort();
        }
    }
    free(text);
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
        uci_mark_seal(mark);
    }
    if (size >= 11) { /* the shortest address that UCX makes */
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
