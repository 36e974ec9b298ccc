/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp_segment.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/log.h"
#include "util/types.h"
#include "ucx_conf.h"

#define UCI_TCP_SEGMENT_VARIABLE "UCX_TCP_TX_SEG_SIZE"
#define UCI_TCP_SEGMENT_SIZE     "64k"                                       /* what UCX's receivers take by default */
#define UCI_TCP_SEGMENT_KEPT     "uCX_TCP_TX_SEG_SIZE=" UCI_TCP_SEGMENT_SIZE /* a capital U away from that */

/* "UCX_TCP_TX_SEG_SIZE=8k", or RX, also with the prefix of an MPI: "UCX_MPI_TCP_RX_SEG_SIZE = 8k" */
static bool uci_tcp_segment_is_set_by(const char *line)
{
    return (strncmp(line, "UCX_", 4) == 0) &&
           ((strstr(line, "TCP_TX_SEG_SIZE") != NULL) || (strstr(line, "TCP_RX_SEG_SIZE") != NULL));
}

static bool uci_tcp_segment_in_environment(void)
{
    char **variable;

    for (variable = environ; (variable != NULL) && (*variable != NULL); ++variable) {
        if (uci_tcp_segment_is_set_by(*variable)) {
            return true;
        }
    }
    return false;
}

/* @return NULL: somebody has cleared the environment */
static char *uci_tcp_segment_find_kept(void)
{
    char **variable;

    for (variable = environ; (variable != NULL) && (*variable != NULL); ++variable) {
        if (strcmp(*variable, UCI_TCP_SEGMENT_KEPT) == 0) {
            return *variable;
        }
    }
    return NULL;
}

/* While there are no other threads. It outlives this library, as the environment does */
static __attribute__((constructor)) void uci_tcp_segment_keep(void)
{
    char *kept;

    if (uci_tcp_segment_in_environment() || (uci_tcp_segment_find_kept() != NULL)) {
        return;
    }
    kept = strdup(UCI_TCP_SEGMENT_KEPT);
    if ((kept != NULL) && (putenv(kept) != 0)) {
        free(kept);
    }
} /* NOLINT(clang-analyzer-unix.Malloc): it is the environment's */

static bool uci_tcp_segment_is_in_line(const char *path, const char *line, void *arg)
{
    return uci_tcp_segment_is_set_by(line);
}

static bool uci_tcp_segment_in_files(void)
{
    Dl_info info;

    return uci_ucx_conf_for_each_line(
            (dladdr((const void *)(uintptr_t)uci_ucp.init_version, &info) != 0) ? info.dli_fname : "",
            uci_tcp_segment_is_in_line, NULL);
}

/* ucp_context_print_info() has a line for each resource, as "#  resource 1 :  md 1  dev 1  flags -- tcp/lo" */
static bool uci_tcp_segment_has_tcp(ucp_context_h ucp)
{
    char *text    = NULL;
    size_t length = 0;
    FILE *stream  = open_memstream(&text, &length);
    bool found;

    if (stream == NULL) {
        return false;
    }
    uci_ucp.context_print_info(ucp, stream);
    fclose(stream);
    found = (text != NULL) && (strstr(text, " tcp/") != NULL);
    free(text);
    return found;
}

void uci_tcp_segment_widen(ucp_context_h ucp)
{
    char *kept = uci_tcp_segment_find_kept();

    if ((kept != NULL) && !uci_tcp_segment_in_environment() && uci_tcp_segment_has_tcp(ucp) &&
        !uci_tcp_segment_in_files()) {
        uci_debug("%s=%s: it was not set, and UCX's default of 8 KiB cuts frames into pieces", UCI_TCP_SEGMENT_VARIABLE,
                  UCI_TCP_SEGMENT_SIZE);
        __atomic_store_n(kept, 'U', __ATOMIC_RELAXED);
    }
}
