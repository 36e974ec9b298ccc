/* SPDX-License-Identifier: BSD-3-Clause */
#include "ucx_config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/parse_size.h"

/* UCX's choice where the user leaves it to UCX ("auto"): on shared memory and tcp about 8 KiB [measured with
 * 1.13.1], and UCX_RNDV_SEND_NBR_THRESH for sends with FAST_CMPL */
#define UCI_UCX_EAGER_AUTO      (8ul << 10)
#define UCI_UCX_EAGER_FAST_AUTO (256ul << 10)

/* One at a time looks at a configuration, or makes a context of it: threads may share one, which UCX only reads, and we change for that time */
static pthread_mutex_t uci_ucx_config_lock = PTHREAD_MUTEX_INITIALIZER;

/* A value such as "auto", "inf", "8kb", "intra:1k,inter:auto" (the largest counts). @a is_set_p: no part of it is left to UCX */
static size_t uci_ucx_config_size(const char *value, size_t automatic, bool *is_set_p)
{
    char text[128], *item, *rest, *colon;
    size_t size, max = 0;

    *is_set_p = true;
    snprintf(text, sizeof(text), "%s", value);
    for (item = strtok_r(text, ", \n", &rest); item != NULL; item = strtok_r(NULL, ", \n", &rest)) {
        colon = strchr(item, ':');
        item  = (colon != NULL) ? colon + 1 : item;
        if (strcasecmp(item, "inf") == 0) {
            size = SIZE_MAX;
        } else if (strcasecmp(item, "auto") == 0) {
            size      = automatic;
            *is_set_p = false;
        } else if (uci_parse_size(item, false, &size) != UCI_OK) {
            continue;
        }
        max = uci_max(max, size);
    }
    return max;
}

/* Print the configuration, as ucx_info -c does: the public way to learn a value */
static char *uci_ucx_config_text(const ucp_config_t *config)
{
    ucp_config_t *own = NULL;
    char *text        = NULL;
    size_t length;
    FILE *stream;

    if ((config == NULL) && (uci_ucp.config_read(NULL, NULL, &own) != UCS_OK)) {
        return NULL;
    }
    stream = open_memstream(&text, &length);
    if (stream != NULL) {
        uci_ucp.config_print((config != NULL) ? config : own, stream, NULL, UCS_CONFIG_PRINT_CONFIG);
        fclose(stream);
    }
    if (own != NULL) {
        uci_ucp.config_release(own);
    }
    return text;
}

/* Copy the value of a line "UCX_...NAME=value" */
static bool uci_ucx_config_get(const char *text, const char *name, char *value, size_t size)
{
    const char *line = strstr(text, name);

    if (line == NULL) {
        return false;
    }
    line += strlen(name);
    snprintf(value, size, "%.*s", (int)strcspn(line, "\n"), line);
    return true;
}

void uci_ucx_config_read_thresholds(const char *text, uci_ucx_thresholds_t *thresholds_p)
{
    char value[128];
    bool is_set;

    *thresholds_p = (uci_ucx_thresholds_t){.eager = UCI_UCX_EAGER_AUTO, .eager_fast = UCI_UCX_EAGER_FAST_AUTO};
    if (uci_ucx_config_get(text, "_RNDV_SEND_NBR_THRESH=", value, sizeof(value))) {
        thresholds_p->eager_fast = uci_ucx_config_size(value, UCI_UCX_EAGER_FAST_AUTO, &is_set);
    }
    if (uci_ucx_config_get(text, "_RNDV_THRESH=", value, sizeof(value))) {
        /* a size that the user sets counts for all sends */
        thresholds_p->eager      = uci_ucx_config_size(value, UCI_UCX_EAGER_AUTO, &thresholds_p->is_set);
        thresholds_p->eager_fast = uci_ucx_config_size(value, thresholds_p->eager_fast, &thresholds_p->is_set);
    }
}

void uci_ucx_config_thresholds(const ucp_config_t *config, uci_ucx_thresholds_t *thresholds_p)
{
    char *text;

    pthread_mutex_lock(&uci_ucx_config_lock);
    text = uci_ucx_config_text(config);
    pthread_mutex_unlock(&uci_ucx_config_lock);
    uci_ucx_config_read_thresholds((text != NULL) ? text : "", thresholds_p);
    free(text);
}

/* -------------------------------------------------------------- memory */

#define UCI_UCX_ALLOC_DEFAULT "md:sysv,md:posix,huge,thp,md:*,mmap,heap"
#define UCI_UCX_ALLOC_MAPPED  "md:sysv,md:posix,huge,md:*,mmap"

static bool uci_ucx_config_allocates_in_heap(const ucp_config_t *config)
{
    char value[128] = "";
    char *text;

    if (strncmp(uci_ucp.get_version_string(), "1.13.", strlen("1.13.")) != 0) {
        return false;
    }
    text = uci_ucx_config_text(config);
    if (text != NULL) {
        (void)uci_ucx_config_get(text, "_ALLOC_PRIO=", value, sizeof(value));
    }
    free(text);
    return strcmp(value, UCI_UCX_ALLOC_DEFAULT) == 0;
}

static ucs_status_t uci_ucx_config_init_mapped(unsigned api_major_version, unsigned api_minor_version,
                                               const ucp_params_t *params, const ucp_config_t *config,
                                               ucp_context_h *context_p)
{
    ucp_config_t *own = NULL, *changed;
    ucs_status_t status;

    if (!uci_ucx_config_allocates_in_heap(config) ||
        ((config == NULL) && (uci_ucp.config_read(NULL, NULL, &own) != UCS_OK))) {
        return uci_ucp.init_version(api_major_version, api_minor_version, params, config, context_p);
    }
    changed = (own != NULL) ? own : (ucp_config_t *)config; /* the caller's, for as long as this takes */
    (void)uci_ucp.config_modify(changed, "ALLOC_PRIO", UCI_UCX_ALLOC_MAPPED);
    status = uci_ucp.init_version(api_major_version, api_minor_version, params, changed, context_p);
    if (own != NULL) {
        uci_ucp.config_release(own);
    } else {
        (void)uci_ucp.config_modify(changed, "ALLOC_PRIO", UCI_UCX_ALLOC_DEFAULT);
    }
    return status;
}

ucs_status_t uci_ucx_config_init(unsigned api_major_version, unsigned api_minor_version, const ucp_params_t *params,
                                 const ucp_config_t *config, ucp_context_h *context_p)
{
    ucs_status_t status;

    pthread_mutex_lock(&uci_ucx_config_lock);
    status = uci_ucx_config_init_mapped(api_major_version, api_minor_version, params, config, context_p);
    pthread_mutex_unlock(&uci_ucx_config_lock);
    return status;
}
