/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Peers with whom all is over go, but for their numbers (base/resting.h): both sides have said BYE, or the program has closed by force, or has never
 * had an endpoint to one that is gone; no endpoint of the program's leads there, nothing is under way, UCX holds nothing that names them, and no message of theirs is here. Looked for only now and then, among all
 * peers, when at least half of them may have ended: what that costs is shared by as many. Sealed ones stay, with keys whose counters must not
 * begin anew; and so do all in a program that is compared with its twins.
 */
#ifndef UCI_REST_H_
#define UCI_REST_H_

#include "base/peer_table.h"

/** Where no caller has a peer in its hands. */
void uci_rest_progress(uci_worker_t *worker);

#endif
