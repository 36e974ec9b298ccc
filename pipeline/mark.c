/* SPDX-License-Identifier: BSD-3-Clause */
#include "mark.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "digest.h"
#include "frame.h"
#include "log.h"
#include "process.h"
#include "settings.h"

/* Room for a name; it lives until the next 3 calls of this thread */
char *uci_mark_name_buffer(size_t *size_p)
{
    static __thread char names[4][64];
    static __thread unsigned next;

    *size_p = sizeof(names[0]);
    return names[next++ % uci_array_size(names)];
}

const char *uci_mark_name(const uci_mark_t *mark)
{
    size_t size;
    char *name = uci_mark_name_buffer(&size);

    if (mark->rank >= 0) {
        snprintf(name, size, "rank %d (%s:%u)", mark->rank, mark->host, mark->pid);
    } else {
        snprintf(name, size, "%s:%u", mark->host, mark->pid);
    }
    return name;
}

static uint32_t uci_mark_digest(const uci_mark_t *mark)
{
    return (uint32_t)XXH3_64bits(mark, offsetof(uci_mark_t, check));
}

void uci_mark_init(uci_mark_t *mark, uint64_t uid)
{
    memset(mark, 0, sizeof(*mark));
    mark->ucx_header = UCI_MARK_UCX_HEADER;
    memcpy(mark->ucx_uid, &uid, sizeof(uid));
    mark->ucx_end  = UCI_MARK_UCX_END;
    mark->protocol = UCI_PROTOCOL_VERSION;
    mark->mode     = (uint8_t)uci_settings.mode;
    mark->magic    = UCI_MARK_MAGIC;
    mark->digests  = uci_digest_set();
    mark->rank     = uci_process_rank();
    mark->pid      = (uint32_t)getpid();
    snprintf(mark->host, sizeof(mark->host), "%s", uci_process_host());
}

void uci_mark_seal(uci_mark_t *mark)
{
    mark->check = uci_mark_digest(mark);
}

bool uci_mark_is_present(const void *address)
{
    const uci_mark_t *mark = address;

    /* byte by byte: the address may be shorter than a mark */
    return (mark->ucx_header == UCI_MARK_UCX_HEADER) && (mark->ucx_end == UCI_MARK_UCX_END) &&
           (mark->magic == UCI_MARK_MAGIC);
}

uint64_t uci_mark_uid(const uci_mark_t *mark)
{
    uint64_t uid;

    memcpy(&uid, mark->ucx_uid, sizeof(uid));
    return uid;
}

void uci_mark_put(void *marked, const uci_mark_t *mark, const void *address, size_t length)
{
    memcpy(marked, mark, sizeof(*mark));
    memcpy((char *)marked + sizeof(*mark), address, length);
}

void *uci_mark_address(const uci_mark_t *mark, const void *address, size_t *length_p)
{
    size_t length = sizeof(*mark) + *length_p;
    void *marked  = malloc(length);

    if (marked == NULL) {
        uci_error("failed to allocate %zu bytes for an address", length);
        return NULL;
    }
    uci_mark_put(marked, mark, address, *length_p);
    *length_p = length;
    return marked;
}

/* Its host goes into lines of the log and records as it is */
static const char *uci_mark_wrong(const uci_mark_t *mark)
{
    const char *c = mark->host;

    if (memchr(mark->host, '\0', sizeof(mark->host)) == NULL) {
        return "a host's name without an end";
    }
    while (isgraph((unsigned char)*c) && (*c != '"') && (*c != '\\')) {
        ++c;
    }
    return (*c == '\0') ? NULL : "a host's name of other characters than those have";
}

ucs_status_t uci_mark_check(const uci_mark_t *mark)
{
    if (!uci_mark_is_present(mark)) {
        uci_error("%s refuses a peer: it runs without UCI (its address carries no mark), so its messages could "
                  "not be verified; start all ranks of the job with the same libucx_integrity.so, or none",
                  uci_process_name());
        return UCS_ERR_UNSUPPORTED;
    }
    if (mark->protocol != UCI_PROTOCOL_VERSION) {
        uci_error("%s refuses a peer: it speaks protocol version %u of UCI, this one speaks %u; start all ranks "
                  "with the same build",
                  uci_process_name(), mark->protocol, UCI_PROTOCOL_VERSION);
        return UCS_ERR_UNSUPPORTED;
    }
    if (mark->check != uci_mark_digest(mark)) {
        uci_error("%s refuses a peer: the mark in its address is damaged", uci_process_name());
        return UCS_ERR_UNSUPPORTED;
    }
    if (uci_mark_wrong(mark) != NULL) {
        uci_error("%s refuses a peer: the mark in its address says %s", uci_process_name(), uci_mark_wrong(mark));
        return UCS_ERR_UNSUPPORTED;
    }
    if (mark->mode != (uint8_t)uci_settings.mode) {
        uci_error("%s refuses %s: it runs with UCI_MODE=%s, this one with UCI_MODE=%s; set the same for all ranks of "
                  "the job",
                  uci_process_name(), uci_mark_name(mark),
                  (mark->mode < UCI_MODE_LAST) ? uci_mode_names[mark->mode] : "unknown",
                  uci_mode_names[uci_settings.mode]);
        return UCS_ERR_UNSUPPORTED;
    }
    if (!(mark->digests & (1u << uci_settings.digest->id))) {
        uci_error("%s refuses %s: that build can't verify digest %s (UCI_DIGEST)", uci_process_name(),
                  uci_mark_name(mark), uci_settings.digest->name);
        return UCS_ERR_UNSUPPORTED;
    }
    return UCS_OK;
}
