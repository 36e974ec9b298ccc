/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An object that uses UCX, linked in several ways by run_attach.sh. It calls by name and through initialized pointers.
 */
#include <ucp/api/ucp.h>

#include <string.h>

int is_marked(void);

static const struct {
    ucs_status_t (*get_address)(ucp_worker_h, ucp_address_t **, size_t *);
    void (*release_address)(ucp_worker_h, ucp_address_t *);
} table = {ucp_worker_get_address, ucp_worker_release_address};

/** @return whether the address of a worker begins with UCI's mark (docs/design.md); -1 if UCX fails. */
int is_marked(void)
{
    ucp_params_t params               = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_worker_params_t worker_params = {.field_mask = 0};
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t length;
    int marked = -1;

    if (ucp_init(&params, NULL, &context) != UCS_OK) {
        return -1;
    }
    if (ucp_worker_create(context, &worker_params, &worker) == UCS_OK) {
        if (table.get_address(worker, &address, &length) == UCS_OK) {
            marked = (length > 60) && (memcmp((const char *)address + 12, "UCI1", 4) == 0);
            table.release_address(worker, address);
        }
        ucp_worker_destroy(worker);
    }
    ucp_cleanup(context);
    return marked;
}
