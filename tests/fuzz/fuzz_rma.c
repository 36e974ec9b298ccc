/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided operations, their answers, and packed keys as they may arrive: any bytes, or some that name the region that there is. The first byte
 * of the input says which. The region is a heap block: what reaches outside of it is a find of ASan's.
 */
#include "../../pipeline/rma/region.c"

#include "base/worker_alloc.h"
#include "link/control.h"
#include "rma/execute.h"

#define FUZZ_REGION 300u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fake_print_info(ucp_ep_h ep, FILE *stream)
{
}

static ucs_status_t fake_query(ucp_ep_h ep, ucp_ep_attr_t *attr)
{
    return UCS_OK;
}

static uci_worker_t *make_worker(uci_context_t *context)
{
    static const uci_worker_calls_t calls;
    static char handle;
    uci_worker_t *worker = uci_worker_alloc((ucp_worker_h)(void *)&handle, context, &calls);

    worker->uid          = 4711;
    worker->access.owner = uci_thread_self();
    uci_rma_worker_init(&worker->rma);
    uci_control_worker_init(&worker->talk, sizeof(uci_control_t) + UCI_CONTROL_POOLED);
    uci_stats_join(&worker->stats, worker->uid);
    return worker;
}

/* Of what comes, the fields that make an operation one of this region's */
static void make_right(uci_rma_header_t *what, const uci_rma_regions_t *regions, const char *memory, uint64_t number)
{
    what->number  = number + (what->number % 3);
    what->owner   = regions->owner;
    what->region  = 1 + (what->region % 2);
    what->address = (uint64_t)(uintptr_t)memory + (what->address % (FUZZ_REGION + 8));
    what->length %= FUZZ_REGION + 8;
    what->kind %= UCI_RMA_KIND_LAST;
    what->op %= UCI_RMA_OP_LAST;
    what->fetch &= 1;
    what->fence &= 1;
}

static void operate(uci_peer_t *peer, const uci_rma_regions_t *regions, const char *memory, const uint8_t *data,
                    size_t size, bool right)
{
    ucp_am_recv_param_t param = {.recv_attr = UCP_AM_RECV_ATTR_FLAG_DATA};
    size_t length             = size - sizeof(uci_rma_header_t);
    uci_rma_header_t what;
    char *bytes;

    memcpy(&what, data, sizeof(what));
    if (right) {
        make_right(&what, regions, memory, peer->rma.arrived);
        length = (what.kind == UCI_RMA_PUT)   ? what.length
                 : (what.kind == UCI_RMA_GET) ? 0
                                              : uci_rma_operands((uci_rma_op_t)what.op, what.length);
    }
    bytes = calloc(1, length + 1);
    memcpy(bytes, data + sizeof(what), uci_min(length, size - sizeof(what)));
    (void)uci_rma_arrived(peer, &what, sizeof(what), bytes, length, &param);
    free(bytes);
}

static void hear(uint8_t how, uci_peer_t *peer, const uci_rma_regions_t *regions, const char *memory,
                 const uint8_t *data, size_t size)
{
    ucp_am_recv_param_t param = {.recv_attr = UCP_AM_RECV_ATTR_FLAG_DATA};
    char *header              = malloc(size);

    memcpy(header, data, size);
    if (how == 0) {
        (void)uci_rma_reply_arrived(peer, header, size, header, size, &param);
    } else if (how == 1) {
        (void)uci_rma_done_arrived(peer, header, size, NULL, 0, &param);
    } else if (size >= sizeof(uci_rma_header_t)) {
        operate(peer, regions, memory, data, size, how == 2);
    }
    free(header);
}

static void unpack(const uint8_t *data, size_t size)
{
    uci_rma_packed_t packed;
    uci_rma_key_t *key;
    char *copy = malloc(size);

    memcpy(copy, data, size);
    if ((size >= sizeof(uint64_t)) && (uci_rma_key_room(copy) > UCI_RMA_KEY_ROOM)) {
        abort();
    }
    if (uci_rma_key_find(copy, size, &packed)) {
        key = uci_rma_key_unpack(&packed);
        if ((key != NULL) && (key->packed.check != uci_rma_check(&packed))) {
            abort();
        }
        free(key);
    }
    free(copy);
}

static void run(const uint8_t *data, size_t size)
{
    uci_context_t context = {.rma = uci_rma_regions_create()};
    uci_worker_t *worker  = make_worker(&context);
    uci_peer_t *peer      = uci_worker_peer(worker, 4712);
    char *memory          = calloc(1, FUZZ_REGION);
    size_t part;
    uint8_t how;

    uci_rma_region_add(context.rma, (ucp_mem_h)(uintptr_t)0x1000, memory, FUZZ_REGION);
    while (size > 2) {
        how  = data[0] % 5;
        part = uci_min((size_t)data[1] + 1, size - 2);
        if (how == 4) {
            unpack(data + 2, part);
        } else {
            hear(how, peer, context.rma, memory, data + 2, part);
        }
        data += 2 + part;
        size -= 2 + part;
    }
    uci_rma_tell(worker);
    uci_rma_cleanup(peer);
    free(memory);
    uci_stats_leave(&worker->stats);
    uci_control_worker_cleanup(&worker->talk);
    uci_worker_free(worker);
    uci_rma_regions_destroy(context.rma);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (uci_settings.digest == NULL) {
        uci_log_level = UCI_LOG_FATAL;
        uci_digest_init();
        uci_settings.digest   = uci_digest_by_id(UCI_DIGEST_XXH3);
        uci_ucp.ep_print_info = fake_print_info;
        uci_ucp.ep_query      = fake_query;
    }
    run(data, size);
    return 0;
}
