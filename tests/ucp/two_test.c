/* SPDX-License-Identifier: BSD-3-Clause */
#include "two_test.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TWO_ADDRESS_MAX = 4096 };

/* Memory of both processes */
typedef struct two {
    unsigned barriers[2];
    char address[2][TWO_ADDRESS_MAX];
} two_t;

unsigned two_side;

static two_t *two;

bool two_is_possible(void)
{
    const char *tls = getenv("UCX_TLS");

    return (tls == NULL) || (strcmp(tls, "self") != 0);
}

void two_meet(ucp_worker_h worker)
{
    unsigned mine = __atomic_add_fetch(&two->barriers[two_side], 1, __ATOMIC_SEQ_CST);

    ut_clock_start();
    while (__atomic_load_n(&two->barriers[!two_side], __ATOMIC_SEQ_CST) < mine) {
        if (worker != NULL) {
            ucp_worker_progress(worker);
        }
        sched_yield();
        ut_clock_check("the other process");
    }
}

ucs_status_t two_connect_as(ut_side_t *here, uint64_t features, ucp_err_handling_mode_t mode)
{
    uint64_t handled       = (mode != UCP_ERR_HANDLING_MODE_NONE) ? UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE : 0;
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | handled,
                              .address    = (ucp_address_t *)two->address[!two_side],
                              .err_mode   = mode};
    ucp_address_t *address;
    size_t length;

    here->context = ut_context_create(features);
    here->worker  = ut_worker_create(here->context);
    UT_REQUIRE(ucp_worker_get_address(here->worker, &address, &length) == UCS_OK, "ucp_worker_get_address");
    UT_REQUIRE(length <= TWO_ADDRESS_MAX, "an address of %zu bytes", length);
    memcpy(two->address[two_side], address, length);
    ucp_worker_release_address(here->worker, address);
    two_meet(NULL);
    return ucp_ep_create(here->worker, &params, &here->ep);
}

void two_connect(ut_side_t *here, uint64_t features)
{
    UT_REQUIRE(two_connect_as(here, features, UCP_ERR_HANDLING_MODE_NONE) == UCS_OK, "ucp_ep_create");
}

int two_main(int argc, char **argv, const ut_test_t *tests, size_t count)
{
    int status, ret;
    pid_t child;

    two = mmap(NULL, sizeof(*two), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    UT_REQUIRE(two != MAP_FAILED, "mmap: %m");
    child = fork();
    UT_REQUIRE(child >= 0, "fork: %m");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        two_side = 1;
        UT_REQUIRE(freopen("/dev/null", "w", stdout) != NULL, "freopen: %m");
        return ut_main(argc, argv, tests, count);
    }
    ret = ut_main(argc, argv, tests, count);
    UT_REQUIRE(waitpid(child, &status, 0) == child, "waitpid: %m");
    return (WIFEXITED(status) && (WEXITSTATUS(status) == 0)) ? ret : 1;
}
