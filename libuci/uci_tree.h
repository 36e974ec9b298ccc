/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * libuci, inside: what a tree is.
 */
#ifndef UCI_TREE_H_
#define UCI_TREE_H_

#pragma GCC visibility push(default) /* what uci.h declares is exported, and nothing else */
#include "uci.h"
#pragma GCC visibility pop
#include "tree/merkle_exchange.h"

struct uci_tree {
    uci_merkle_side_t side;
};

/** Make a tree of @a side, whose nodes it owns from then on, and which are gone after an error. */
uci_status_t uci_tree_new(const uci_merkle_side_t *side, uci_tree_t **tree_p);

#endif
