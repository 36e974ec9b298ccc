/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What the tests know of UCI's own protocol: names for what is on the wire, which messages say the same again, and in what state the
 * operation is that one of them is about. All of it for people to read, and for a wire to be fair; nothing here is judged by it.
 */
#ifndef UCI_TESTS_RANDOM_PROTOCOL_H_
#define UCI_TESTS_RANDOM_PROTOCOL_H_

#include "fake_ucx.h"

#define PROTOCOL_TYPES  32
#define PROTOCOL_STATES 48

/** What kind of message it is: below PROTOCOL_TYPES. */
unsigned protocol_type(const fake_message_t *message);
const char *protocol_type_name(unsigned type);

/** Equal for messages that repeat each other. */
uint64_t protocol_key(const fake_message_t *message);

/** In one line. */
void protocol_describe(const fake_message_t *message, char *text, size_t size);

/** State of what it is about at the worker where it has just arrived: below PROTOCOL_STATES. */
unsigned protocol_state(const fake_message_t *message);
const char *protocol_state_name(unsigned state);

#endif
