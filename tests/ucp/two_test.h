/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Two processes that run the same tests at the same time, one worker each, connected to each other.
 */
#ifndef UCI_TESTS_UCP_TWO_TEST_H_
#define UCI_TESTS_UCP_TWO_TEST_H_

#include "ucp_test.h"

/** Which of the two is this one, 0 or 1? The second says nothing but what goes wrong. */
extern unsigned two_side;

/** Fork, and run the tests in both. @return what main returns. */
int two_main(int argc, char **argv, const ut_test_t *tests, size_t count);

/** One worker can't stand for two processes. */
bool two_is_possible(void);

/** Wait until the other is here too, with progress of @a worker if there is one. */
void two_meet(ucp_worker_h worker);

/** A worker with an endpoint to the other process's, whose errors are handled so. @return what ucp_ep_create() does: not every transport has it. */
ucs_status_t two_connect_as(ut_side_t *here, uint64_t features, ucp_err_handling_mode_t mode);

/** The same; errors are not handled. */
void two_connect(ut_side_t *here, uint64_t features);

#endif
