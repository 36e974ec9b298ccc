/* SPDX-License-Identifier: BSD-3-Clause */
#include "mark.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "digest/digest.h"
#include "frame.h"
#include "live/live.h"
#include "util/log.h"
#include "util/process.h"
#include "util/process_id.h"
#include "seal/seal.h"
#include "settings/settings.h"
#include "version.h"

/* Room for a name; it lives until the next 3 calls of this thread */
char *uci_mark_name_buffer(size_t *size_p)
{
    static __thread char names[4][sizeof(((uci_mark_t *)NULL)->host) + 40];
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

static ucs_status_t uci_mark_init_seal(uci_mark_t *mark)
{
    if (uci_seal_is_inherited()) {
        uci_error(
                "process %d was forked, and has none of its parent's keys (UCI_SEAL): it can't have a worker of a context from before the "
                "fork; give it a context of its own, by ucp_init()",
                (int)getpid());
        return UCS_ERR_UNSUPPORTED;
    }
    mark->seal    = (uint8_t)uci_settings.seal;
    mark->cipher  = (uint8_t)uci_seal_cipher();
    mark->scope   = (uint8_t)uci_settings.seal_scope;
    mark->machine = uci_process_machine();
    return (uci_seal_random(mark->random) == UCI_OK) ? UCS_OK : UCS_ERR_IO_ERROR;
}

ucs_status_t uci_mark_init(uci_mark_t *mark, uint64_t uid)
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
    return uci_seal_is_on() ? uci_mark_init_seal(mark) : UCS_OK;
}

void uci_mark_finish(uci_mark_t *mark)
{
    mark->check = uci_mark_digest(mark);
}

bool uci_mark_is_present(const void *address)
{
    const uci_mark_t *mark = address;

    /* byte by byte: the address may be shorter than a mark. The shortest of UCX's, without devices, has 11 bytes and the same first 10; then 5 bytes
     * behind it are read, which belong to whatever malloc gives out */
    return (mark->ucx_header == UCI_MARK_UCX_HEADER) && (mark->ucx_end == UCI_MARK_UCX_END) &&
           (mark->magic == UCI_MARK_MAGIC);
}

uint64_t uci_mark_uid(const uci_mark_t *mark)
{
    uint64_t uid;

    memcpy(&uid, mark->ucx_uid, sizeof(uid));
    return uid;
}

bool uci_mark_is_near(const uci_mark_t *one, const uci_mark_t *other)
{
    return (one->machine != 0) && (one->machine == other->machine);
}

void uci_mark_put(void *marked, const uci_mark_t *mark, const void *address, size_t length)
{
    uci_mark_t own = *mark;

    own.address_length = (uint32_t)length;
    if (own.seal !=
        UCI_SEAL_OFF) { /* without memory for that there is no MAC, and those who are given the address refuse it, and say so */
        (void)uci_seal_mark_auth(&own, offsetof(uci_mark_t, mac), address, length, own.mac);
    }
    uci_mark_finish(&own);
    memcpy(marked, &own, sizeof(own));
    memcpy((char *)marked + sizeof(own), address, length);
}

/* How far it reaches says the mark itself, which may be a lie: no further than any address does, nor into what can't be read */
static bool uci_mark_has_mac(const uci_mark_t *mark)
{
    return (mark->address_length <= UCI_WIRE_ADDRESS_MAX) && uci_process_is_readable(mark + 1, mark->address_length) &&
           uci_seal_mark_is_authentic(mark, offsetof(uci_mark_t, mac), mark + 1, mark->address_length, mark->mac);
}

bool uci_mark_is_authentic(const uci_mark_t *mark, size_t length)
{
    return (length > sizeof(*mark)) && uci_mark_is_present(mark) && (mark->protocol == UCI_PROTOCOL_VERSION) &&
           (mark->check == uci_mark_digest(mark)) && (mark->address_length == length - sizeof(*mark)) &&
           uci_mark_has_mac(mark);
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

static const char *uci_mark_value_name(const char *const *names, unsigned value)
{
    while ((value > 0) && (*names != NULL)) {
        ++names;
        --value;
    }
    return (*names != NULL) ? *names : "unknown";
}

/* The file of UCI in a process: preloaded, or UCX's module */
static bool uci_mark_find_library(uint32_t pid, char *path, size_t size)
{
    return uci_process_find_library(pid, "libucx_integrity", path, size) ||
           uci_process_find_library(pid, "libucs_uci", path, size);
}

/* What a peer runs, as far as it can be seen from here: in its live file, or its maps */
static void uci_mark_describe_library(const uci_mark_t *mark, char *text, size_t size)
{
    bool is_here = strcmp(mark->host, uci_process_host()) == 0;

    if (!uci_live_find_peer(mark->host, mark->pid, text, size) &&
        !(is_here && uci_mark_find_library(mark->pid, text, size))) {
        snprintf(text, size,
                 "what its own line says (here too, if UCI_LIVE is a folder that all hosts share, as under uci_run)");
    }
}

/* @param mark  of whom; NULL: nobody knows who it is */
__attribute__((format(printf, 2, 3), cold)) static ucs_status_t uci_mark_refuse(const uci_mark_t *mark,
                                                                                const char *format, ...)
{
    char why[512], theirs[PATH_MAX + 64] = "";
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    if (mark != NULL) {
        uci_mark_describe_library(mark, theirs, sizeof(theirs));
    }
    uci_error("%s refuses %s: %s; here UCI " UCI_VERSION " (" UCI_REVISION ") of %s%s%s", uci_process_name(),
              (mark != NULL) ? uci_mark_name(mark) : "a peer", why, uci_process_library(),
              (theirs[0] != '\0') ? ", there " : "", theirs);
    return UCS_ERR_UNSUPPORTED;
}

/* @return false (logged): it has another value of @a setting than we have */
static bool uci_mark_is_alike(const uci_mark_t *mark, const char *setting, const char *const *names, unsigned theirs,
                              unsigned ours)
{
    if (theirs == ours) {
        return true;
    }
    uci_mark_refuse(mark, "it runs with %s=%s, this one with %s=%s; set the same for all ranks of the job", setting,
                    uci_mark_value_name(names, theirs), setting, uci_mark_value_name(names, ours));
    return false;
}

/* Who does not seal as we do can't be understood, and would not be believed */
static ucs_status_t uci_mark_check_seal(const uci_mark_t *mark)
{
    unsigned ours = uci_seal_is_on() ? (unsigned)uci_settings.seal : UCI_SEAL_OFF;

    if (!uci_mark_is_alike(mark, "UCI_SEAL", uci_seal_mode_names, mark->seal, ours)) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (ours == UCI_SEAL_OFF) {
        return UCS_OK;
    }
    if (!uci_mark_is_alike(mark, "UCI_SEAL_CIPHER", uci_seal_cipher_names, mark->cipher, uci_seal_cipher()) ||
        !uci_mark_is_alike(mark, "UCI_SEAL_SCOPE", uci_seal_scope_names, mark->scope, uci_settings.seal_scope)) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (!uci_mark_has_mac(mark)) {
        return uci_mark_refuse(
                mark,
                "its address is not authentic; it has another key (UCI_KEY_FILE must be the same for all ranks of the job), "
                "or somebody has forged or changed the address");
    }
    return UCS_OK;
}

void uci_mark_refuse_on(const uci_mark_t *mark)
{
    bool is_known = (mark->protocol == UCI_PROTOCOL_VERSION) && (uci_mark_wrong(mark) == NULL);

    uci_mark_refuse(is_known ? mark : NULL,
                    "it runs with UCI on, this process with UCI_MODE=off; set the same mode for all ranks of the job");
}

ucs_status_t uci_mark_check(const uci_mark_t *mark)
{
    if (!uci_mark_is_present(mark)) {
        return uci_mark_refuse(
                NULL,
                "it runs without UCI, or with UCI_MODE=off (its address carries no mark), so its messages could not "
                "be verified; start all ranks of the job with the same libucx_integrity.so and UCI_MODE, or none");
    }
    if (mark->protocol != UCI_PROTOCOL_VERSION) { /* who it is lies in the same place in all protocols so far */
        return uci_mark_refuse(
                (uci_mark_wrong(mark) == NULL) ? mark : NULL,
                "it speaks protocol version %u of UCI, this one speaks %u; start all ranks with the same build",
                mark->protocol, UCI_PROTOCOL_VERSION);
    }
    if (mark->check != uci_mark_digest(mark)) {
        return uci_mark_refuse(NULL, "the mark in its address is damaged");
    }
    if (uci_mark_wrong(mark) != NULL) {
        return uci_mark_refuse(NULL, "the mark in its address says %s", uci_mark_wrong(mark));
    }
    if (mark->mode != (uint8_t)uci_settings.mode) {
        return uci_mark_refuse(
                mark, "it runs with UCI_MODE=%s, this one with UCI_MODE=%s; set the same for all ranks of the job",
                (mark->mode < UCI_MODE_LAST) ? uci_mode_names[mark->mode] : "unknown",
                uci_mode_names[uci_settings.mode]);
    }
    if (uci_mark_check_seal(mark) != UCS_OK) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (!(mark->digests & (1u << uci_settings.digest->id))) {
        return uci_mark_refuse(mark, "that build can't verify digest %s (UCI_DIGEST)", uci_settings.digest->name);
    }
    return UCS_OK;
}
