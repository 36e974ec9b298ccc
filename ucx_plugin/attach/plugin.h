/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the hooks share: finding UCX's functions, the process-wide state, and the side tables.
 *
 * The library also lands in shells, launchers and daemons: nothing happens before the first ucp call, and libucp
 * is never pulled in. Each hook begins with UCI_HOOK(), whose usual cost is one test.
 */
#ifndef UCI_PLUGIN_H_
#define UCI_PLUGIN_H_

#include "handles.h"
#include "base/request.h"
#include "ucp/ucp_api.h"
#include "turn/worker.h"

struct uci_sock;

#define UCI_EXPORT __attribute__((visibility("default")))

extern uci_handles_t uci_contexts; /* ucp_context_h -> uci_context_t */
extern uci_handles_t uci_workers;  /* ucp_worker_h  -> uci_worker_t */
extern uci_handles_t uci_eps;      /* ucp_ep_h      -> uci_ep_t */
extern uci_handles_t
        uci_socks; /* ucp_ep_h      -> uci_sock_t: those made by socket address, also when they are in uci_eps */
extern uci_handles_t uci_closing;   /* ucp_ep_h      -> uci_ep_t that the program has closed: it may fail meanwhile */
extern uci_handles_t uci_raw_data;  /* data of an active message of UCX's that the program may keep -> uci_worker_t */
extern uci_handles_t uci_listeners; /* ucp_listener_h -> uci_listener_t */
extern uci_handles_t uci_rkeys;     /* ucp_rkey_h -> uci_rma_key_t */
extern uci_handles_t uci_rkey_buffers; /* packed keys that UCI has made: themselves */
extern uci_handles_t uci_datatypes;    /* ucp_datatype_t -> uci_generic_dt_t */
extern uci_handles_t uci_addresses;    /* marked address handed to the user -> UCX's own address */

extern bool uci_plugin_is_ready;

/** Find UCX's functions, read the settings, once. Aborts with a message if UCX can't be found or a setting is bad. */
void uci_plugin_init(void);

/** A context is made: from now on the counters are those of this process, though it be a fork of one that had some. */
void uci_plugin_claim(void);

/** @a what (a clause) is not protected in this process, though UCI is here. With UCI_REQUIRE=on it ends here (logged). */
void uci_plugin_unprotected(const char *what);

/** How we got in: "preloaded", or "as a UCX module, ...". */
const char *uci_module_how(void);

/** A context has been made: UCX may have installed its memory hooks, which change the same slots as a module does. */
void uci_module_refresh(void);

/** What the hook of this name does. */
ucs_status_t uci_plugin_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep_p);

/** A context as a program would make it to send and receive tag messages, with UCI's part; for UCI's own use. @return NULL (logged). */
uci_context_t *uci_plugin_context_open(void);
void uci_plugin_context_close(uci_context_t *context);

/** What the hooks of these names do. Not called by name: as a UCX module we would get UCX's own. */
ucs_status_t uci_plugin_dt_create(const ucp_generic_dt_ops_t *ops, void *context, ucp_datatype_t *datatype_p);
void uci_plugin_dt_destroy(ucp_datatype_t datatype);

#define UCI_HOOK() \
    do { \
        if (uci_unlikely(!__atomic_load_n(&uci_plugin_is_ready, __ATOMIC_ACQUIRE))) { \
            uci_plugin_init(); \
        } \
    } while (0)

/** Look up a handle; NULL: pass the call through. */
UCI_INLINE uci_worker_t *uci_plugin_worker(ucp_worker_h worker)
{
    return uci_handles_find_first(&uci_workers, worker);
}

UCI_INLINE uci_ep_t *uci_plugin_ep(ucp_ep_h ep)
{
    return uci_handles_find(&uci_eps, ep);
}

/** One made by socket address, whose other side is not known yet, or has no UCI (conn/sock.h); or NULL. Look for uci_plugin_ep() first: of
 *  those both know. */
UCI_INLINE struct uci_sock *uci_plugin_sock(ucp_ep_h ep)
{
    return uci_handles_find(&uci_socks, ep);
}

/** UCX may call the program from inside of this worker's progress, and we would not know (siblings.h). */
UCI_INLINE void uci_plugin_set_foreign(uci_worker_t *worker)
{
    uci_worker_enter(worker);
    uci_worker_set_foreign(worker);
    uci_worker_leave(worker);
}

/** The user's memory for this operation's request may hold one of ours no more: UCX puts its own there. */
UCI_INLINE void uci_plugin_clear_marker(const ucp_request_param_t *param)
{
    if ((param->op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST) && (uci_contexts.slots != NULL)) {
        uci_request_clear_marker(param->request);
    }
}

#endif
