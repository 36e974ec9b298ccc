/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Greetings as they may arrive by an endpoint made by socket address: any bytes, or some with a check, and a mark, that are made right. The
 * first byte of the input says which, whose end it is, and how far that one is.
 */
#include "../../pipeline/conn/sock.c"

#include "base/worker_alloc.h"
#include "link/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned fuzz_sent, fuzz_settled;

static ucs_status_ptr_t fake_am_send(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                     const void *buffer, size_t count, const ucp_request_param_t *param)
{
    const uci_greeting_t *greeting = buffer;

    if ((id == UCI_GREETING_AM_ID) && (uci_sock_check(greeting, count) != NULL)) {
        abort(); /* what is said is right */
    }
    ++fuzz_sent;
    return NULL;
}

static ucs_status_ptr_t fake_flush(ucp_ep_h ep, const ucp_request_param_t *param)
{
    return NULL;
}

static void fake_print_info(ucp_ep_h ep, FILE *stream)
{
}

static ucs_status_t fake_query(ucp_ep_h ep, ucp_ep_attr_t *attr)
{
    return UCS_OK;
}

static void on_settled(uci_sock_t *sock)
{
    ++fuzz_settled;
    if ((sock->state == UCI_SOCK_KNOWN) != (sock->ep != NULL)) {
        abort();
    }
}

static uci_worker_t *make_worker(char *address, size_t length)
{
    static uci_context_t context;
    static const uci_worker_calls_t calls;
    uci_worker_t *worker = uci_worker_alloc((ucp_worker_h)address, &context, &calls);

    worker->uid          = 4711;
    worker->access.owner = uci_thread_self();
    worker->self.address = (ucp_address_t *)address;
    worker->self.length  = length;
    (void)uci_mark_init(&worker->self.mark, worker->uid);
    worker->self.mark.eager_max = 8192;
    uci_conn_worker_init(&worker->conn);
    uci_control_worker_init(&worker->talk, sizeof(uci_control_t) + UCI_CONTROL_POOLED);
    uci_stats_join(&worker->stats, worker->uid);
    return worker;
}

static void free_worker(uci_worker_t *worker)
{
    uci_sock_cleanup(worker);
    uci_stats_leave(&worker->stats);
    uci_control_worker_cleanup(&worker->talk);
    uci_worker_free(worker);
}

/* What only who has built it can know */
static void make_right(uint8_t *bytes, size_t size, uint8_t how)
{
    uci_greeting_t *greeting = (uci_greeting_t *)(void *)bytes;
    uci_mark_t *mark         = (uci_mark_t *)(void *)(greeting + 1);

    if ((how & 1) && (size >= sizeof(*greeting))) {
        if ((how & 2) && (size > sizeof(*greeting) + sizeof(*mark))) {
            mark->ucx_header     = UCI_MARK_UCX_HEADER;
            mark->ucx_end        = UCI_MARK_UCX_END;
            mark->magic          = UCI_MARK_MAGIC;
            mark->address_length = (uint32_t)(size - sizeof(*greeting) - sizeof(*mark));
            uci_mark_finish(mark);
        }
        greeting->magic  = UCI_GREETING_MAGIC;
        greeting->length = (uint32_t)(size - sizeof(*greeting));
        greeting->check  = uci_sock_greeting_check(greeting);
    }
}

static void hear(const uint8_t *data, size_t size, uint8_t how)
{
    static char address[32], end;
    ucp_am_recv_param_t param = {.recv_attr = UCP_AM_RECV_ATTR_FIELD_REPLY_EP, .reply_ep = (ucp_ep_h)&end};
    uci_worker_t *worker      = make_worker(address, sizeof(address));
    uci_sock_t *sock = uci_sock_create(worker, param.reply_ep, (how & 4) != 0, (how & 8) == 0, "fuzz", on_settled);
    uint8_t *bytes   = malloc(size + 1);
    unsigned i;

    memcpy(bytes, data, size);
    make_right(bytes, size, how);
    for (i = 0; (sock != NULL) && (i < 3); ++i) {
        (void)uci_sock_recv(worker, NULL, 0, bytes, size, &param);
        if (how & 16) {
            uci_sock_fail(sock, UCS_ERR_CONNECTION_RESET);
        }
        (void)uci_sock_progress(worker);
        (void)uci_sock_due(worker);
    }
    free(bytes);
    free_worker(worker);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (uci_settings.digest == NULL) {
        uci_log_level = UCI_LOG_FATAL;
        uci_digest_init();
        uci_settings.digest       = uci_digest_by_id(UCI_DIGEST_XXH3);
        uci_settings.connect_wait = 3600;
        uci_ucp.am_send_nbx       = fake_am_send;
        uci_ucp.ep_flush_nbx      = fake_flush;
        uci_ucp.ep_print_info     = fake_print_info;
        uci_ucp.ep_query          = fake_query;
    }
    if (size > 1) {
        hear(data + 1, size - 1, data[0]);
    }
    return 0;
}
