/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault/fault.h"
#include "inject/inject.h"
#include "live/live.h"
#include "util/log.h"
#include "util/process.h"
#include "rebind.h"
#include "seal/seal.h"
#include "settings/settings.h"
#include "live/stats.h"
#include "version.h"

uci_handles_t uci_contexts;
uci_handles_t uci_workers;
uci_handles_t uci_eps;
uci_handles_t uci_socks;
uci_handles_t uci_listeners;
uci_handles_t uci_closing;
uci_handles_t uci_raw_data;
uci_handles_t uci_datatypes;
uci_handles_t uci_rkeys;
uci_handles_t uci_rkey_buffers;
uci_handles_t uci_addresses;
bool uci_plugin_is_ready;

static pid_t uci_plugin_pid; /* whose counters these are */

static pthread_mutex_t uci_plugin_lock = PTHREAD_MUTEX_INITIALIZER;

/* The next definition after ours; MPI may have been loaded out of our scope (RTLD_LOCAL): then libucp is mapped,
 * since somebody has just called it, but only a look at the file itself finds it */
static void *uci_plugin_find(const char *name)
{
    static void *libucp;
    void *symbol = dlsym(RTLD_NEXT, name);

    if (symbol == NULL) {
        if (libucp == NULL) {
            libucp = dlopen("libucp.so.0", RTLD_NOLOAD | RTLD_LAZY);
        }
        symbol = (libucp != NULL) ? dlsym(libucp, name) : NULL;
    }
    return symbol;
}

/* A program that unloads its MPI unloads UCX with it, and may load it again: keep it, our table points into it */
static void uci_plugin_pin(void)
{
    if (dlopen("libucp.so.0", RTLD_NOLOAD | RTLD_LAZY | RTLD_NODELETE) == NULL) {
        uci_warn("libucp.so.0 is not loaded under this name: the program must not unload it (%s)", dlerror());
    }
}

static void uci_plugin_find_functions(void)
{
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
#define UCI_PLUGIN_FUNCTION(_name) {"ucp_" #_name, offsetof(uci_ucp_t, _name)},
            UCI_UCP_FUNCTIONS(UCI_PLUGIN_FUNCTION)
#undef UCI_PLUGIN_FUNCTION
    };
    void *symbol;
    size_t i;

    for (i = 0; i < uci_array_size(functions); ++i) {
        symbol = uci_plugin_find(functions[i].name);
        if (symbol == NULL) {
            uci_fatal("UCX has no function %s: UCI needs UCX 1.13 or newer, and libucp.so.0 loaded by the program",
                      functions[i].name);
        }
        memcpy((char *)&uci_ucp + functions[i].offset, &symbol, sizeof(symbol));
    }

    symbol = uci_plugin_find("ucs_status_string");
    memcpy(&uci_ucp.status_string, &symbol, sizeof(symbol));
}

/* A child that was forked off has our counters, but none of the messages are its own */
static void uci_plugin_report(void)
{
    if (uci_plugin_is_ready && (getpid() == uci_plugin_pid)) {
        uci_stats_report(uci_settings.stats);
    }
}

static void uci_plugin_at_exit(void)
{
    uci_live_end(UCI_LIVE_ENDED);
    uci_plugin_report();
}

static void uci_plugin_at_abort(void)
{
    uci_live_end(UCI_LIVE_ABORTED);
    uci_plugin_report();
}

/* The copy in front calls us where it means UCX. Without settings everything passes through, as with UCI_MODE=off, but for its
 * refusals and its statistics: those are of the other copy */
static bool uci_plugin_is_second(void)
{
    const char *own, *other = uci_rebind_copy_in_front(&own);

    if (other != NULL) {
        uci_error("UCI stays out of this process: %s: another copy of it is in this process already: %s", own, other);
    }
    return other != NULL;
}

void uci_plugin_unprotected(const char *what)
{
    uci_settings_read(); /* as a module that can't be attached we have not read them yet; errors are logged */
    if (uci_settings.require) {
        uci_fatal("%s is not protected by UCI: %s; it stops here (UCI_REQUIRE=on)", uci_process_name(), what);
    }
}

/* Twins compare digests of what is received */
static void uci_plugin_check_twins(void)
{
    const char *wrong = NULL;

    if (uci_settings.mode == UCI_MODE_OFF) {
        wrong = "UCI_MODE=off";
    } else if (uci_settings.digest->id == UCI_DIGEST_NONE) {
        wrong = "UCI_DIGEST=none";
    }
    if ((uci_settings.twins.folder != NULL) && (wrong != NULL)) {
        uci_fatal("twins can't be compared with %s: take it away, or UCI_TWINS", wrong);
    }
}

/* A fault that is asked for and can't come would look like one that did no harm. The twins of a process have the same settings, so that
 * only a number that none of them has is wrong. */
static void uci_plugin_check_fault(unsigned ranks)
{
    const uci_fault_spec_t *fault = &uci_settings.fault;
    unsigned twins                = uci_settings.twins.of;

    if ((fault->rate == 0) || (uci_process_rank() > 0)) {
        return;
    }
    if ((ranks > 0) && (uci_max(fault->peer, fault->rank) >= (int64_t)ranks)) {
        uci_warn("UCI_FAULT damages nothing: %s=%ld, but the ranks of this job are 0 to %u",
                 (fault->peer >= (int64_t)ranks) ? "peer" : "rank", (long)uci_max(fault->peer, fault->rank), ranks - 1);
    }
    if (fault->twin >= (int64_t)twins) {
        uci_warn("UCI_FAULT damages nothing: twin=%ld, but this process %s", (long)fault->twin,
                 (twins == 0)   ? "has no twins (UCI_TWINS)"
                 : (twins == 2) ? "belongs to twins 0 and 1"
                                : "belongs to twins 0 to 2");
    }
    if ((uci_settings.mode == UCI_MODE_OFF) && !(fault->targets & (1u << UCI_FAULT_PAYLOAD))) {
        uci_warn("UCI_FAULT damages nothing: with UCI_MODE=off there is only the target payload");
    }
}

/* What was asked for is not left out */
static void uci_plugin_seal(void)
{
    if (uci_seal_init() != UCI_OK) {
        uci_fatal("UCI_SEAL=%s can't be done, and nothing is sent without it: see the line above",
                  uci_seal_mode_names[uci_settings.seal]);
    }
}

/* A path that would take messages past the seal is not taken */
static void uci_plugin_check_seal(void)
{
    const char *path = (uci_settings.path == UCI_PATH_GET)      ? "get"
                       : (uci_settings.path == UCI_PATH_DIRECT) ? "direct"
                                                                : NULL;

    if ((uci_settings.seal != UCI_SEAL_OFF) && (path != NULL) && (uci_process_rank() <= 0)) {
        uci_warn("UCI_PATH=%s: not for messages that are sealed (UCI_SEAL, UCI_SEAL_SCOPE); they take path %s", path,
                 (uci_settings.path == UCI_PATH_GET) ? "bounce" : "stream");
    }
}

static void uci_plugin_check_settings(void)
{
    unsigned ranks = uci_process_job_size();

    uci_plugin_check_twins();

    if (uci_settings.mode == UCI_MODE_OFF) {
        uci_plugin_unprotected("UCI_MODE=off");
    }
    if (uci_settings.digest->id == UCI_DIGEST_NONE) {
        uci_plugin_unprotected("UCI_DIGEST=none checks nothing");
    }
    if ((uci_process_rank() <= 0) && uci_stats_is_shared(uci_settings.stats)) {
        uci_warn(
                "the %u ranks of this job write to one file, UCI_STATS=%s, and only the statistics of one will be left: put %%h and %%p, "
                "or %%r, into its name",
                ranks, uci_settings.stats);
    }
    uci_plugin_check_fault(ranks);
    uci_plugin_check_seal();
}

/* One line for the whole job, whatever the log level: somebody has asked for it */
static void uci_plugin_print_banner(void)
{
    unsigned ranks = uci_process_job_size();
    char text[64]  = "";

    if (!uci_settings.banner || (uci_process_rank() > 0)) {
        return;
    }
    if (ranks > 0) {
        snprintf(text, sizeof(text), "%u rank%s, ", ranks, (ranks > 1) ? "s" : "");
    }
    dprintf(STDERR_FILENO, "UCI %s %s: %smode %s, digest %s, UCX %s, %s\n", UCI_VERSION,
            (uci_settings.mode == UCI_MODE_OFF) ? "off" : "on", text, uci_mode_names[uci_settings.mode],
            uci_settings.digest->name, uci_ucp.get_version_string(), uci_module_how());
}

static void uci_plugin_init_locked(void)
{
    uci_plugin_find_functions();
    if (uci_plugin_is_second()) {
        return;
    }
    uci_plugin_pin();
    if (uci_settings_read() != UCI_OK) {
        uci_fatal("UCI can't start with these settings; `uci_info -cf` lists all of them");
    }
    uci_plugin_check_settings();
    uci_plugin_seal();
    uci_fault_enabled = uci_fault_init(&uci_settings.fault, uci_process_rank(),
                                       (uci_settings.twins.of > 0) ? (int64_t)uci_settings.twins.twin : -1);
    uci_inject_install();
    uci_stats_set_info(uci_settings.digest->name, uci_mode_names[uci_settings.mode], uci_ucp.get_version_string());
    uci_log_at_abort(uci_plugin_at_abort);
    atexit(uci_plugin_at_exit);
    uci_info("UCI %s (%s), %s, UCX %s, mode %s, digest %s", UCI_VERSION, UCI_REVISION, uci_module_how(),
             uci_ucp.get_version_string(), uci_mode_names[uci_settings.mode], uci_settings.digest->name);
    uci_plugin_print_banner();
}

void uci_plugin_claim(void)
{
    if (uci_plugin_pid != getpid()) {
        if (uci_plugin_pid != 0) { /* a fork has none of its parent's keys */
            uci_seal_cleanup();
            uci_plugin_seal();
        }
        uci_stats_reset();
        uci_plugin_pid = getpid();
        if (uci_settings.live != NULL) { /* another copy of UCI is in front, and has read them */
            uci_stats_open_live(uci_settings.live);
        }
    }
}

void uci_plugin_init(void)
{
    pthread_mutex_lock(&uci_plugin_lock);
    if (!uci_plugin_is_ready) {
        uci_plugin_init_locked();
        uci_plugin_claim();
        __atomic_store_n(&uci_plugin_is_ready, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&uci_plugin_lock);
}
