/* SPDX-License-Identifier: BSD-3-Clause */
#include "check_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define UCI_CHECK_RSH_WORDS 64

/* @return false: too many words. @a words keep pointers into @a text, which is cut. */
static bool uci_check_split(char *text, const char *host, const char *program, char **words)
{
    char *rest   = NULL, *word;
    size_t count = 0;

    for (word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        if (count == UCI_CHECK_RSH_WORDS - 4) {
            return false;
        }
        words[count++] = word;
    }
    words[count++] = (char *)host;
    words[count++] = (char *)program;
    words[count++] = "serve";
    words[count]   = NULL;
    return count > 3;
}

static void uci_check_become(char *const *words, int in, int out)
{
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    execvp(words[0], words);
    uci_check_complain("failed to start %s: %s", words[0], strerror(errno));
    _exit(127);
}

static void uci_check_pipe_use(uci_check_pipe_t *pipe, int in, int out, pid_t pid)
{
    *pipe = (uci_check_pipe_t){.in = in, .out = out, .pid = pid};
    signal(SIGPIPE, SIG_IGN); /* an error is told by write() */
    fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
    fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
}

bool uci_check_pipe_start(uci_check_pipe_t *pipe, const char *rsh, const char *host, const char *program)
{
    char *text   = strdup(rsh), *words[UCI_CHECK_RSH_WORDS];
    int there[2] = {-1, -1}, here[2] = {-1, -1};
    pid_t pid = -1;

    if ((text == NULL) || !uci_check_split(text, host, program, words) || (host[0] == '-') || (host[0] == '\0')) {
        uci_check_complain("can't start anything at '%s' by '%s'", host, rsh);
    } else if ((pipe2(there, O_CLOEXEC) != 0) || (pipe2(here, O_CLOEXEC) != 0) || ((pid = fork()) < 0)) {
        uci_check_complain("failed to start %s: %s", words[0], strerror(errno));
    } else if (pid == 0) {
        uci_check_become(words, there[0], here[1]);
    }
    free(text);
    close(there[0]);
    close(here[1]);
    if (pid < 0) {
        close(there[1]);
        close(here[0]);
        return false;
    }
    uci_check_pipe_use(pipe, here[0], there[1], pid);
    return true;
}

void uci_check_pipe_serve(uci_check_pipe_t *pipe)
{
    uci_check_pipe_use(pipe, STDIN_FILENO, STDOUT_FILENO, 0);
}

void uci_check_pipe_close(uci_check_pipe_t *pipe)
{
    close(pipe->out);
    close(pipe->in);
    if (pipe->pid > 0) {
        waitpid(pipe->pid, NULL, 0);
    }
}

/* One message on its way, its length in front */
typedef struct uci_check_flow {
    uint32_t length;
    uint8_t *bytes;
    size_t done; /* of length and bytes */
} uci_check_flow_t;

static bool uci_check_flow_is_over(const uci_check_flow_t *flow)
{
    return (flow->done >= sizeof(flow->length)) && (flow->done == sizeof(flow->length) + flow->length);
}

/* Move as much as goes without waiting. @return false: the other side is gone, or an error (errno; 0: end). */
static bool uci_check_flow_move(uci_check_flow_t *flow, int fd, bool is_out)
{
    bool in_head = (flow->done < sizeof(flow->length));
    uint8_t *at  = in_head ? (uint8_t *)&flow->length + flow->done : flow->bytes + flow->done - sizeof(flow->length);
    size_t left  = (in_head ? 0 : flow->length) + sizeof(flow->length) - flow->done;
    ssize_t ret  = is_out ? write(fd, at, left) : read(fd, at, left);

    if (ret > 0) {
        flow->done += (size_t)ret;
        return true;
    }
    if ((ret < 0) && ((errno == EAGAIN) || (errno == EINTR))) {
        return true;
    }
    errno = (ret == 0) ? 0 : errno;
    return false;
}

static uci_status_t uci_check_pipe_lost(void)
{
    uci_check_complain("the other side has ended%s%s: what it said is above; is there a uci_check of this version?",
                       (errno == 0) ? "" : ": ", (errno == 0) ? "" : strerror(errno));
    return UCI_ERR_IO;
}

static uci_status_t uci_check_pipe_step(uci_check_pipe_t *pipe, uci_check_flow_t *out, uci_check_flow_t *in,
                                        size_t in_max)
{
    struct pollfd fds[2] = {{.fd = uci_check_flow_is_over(in) ? -1 : pipe->in, .events = POLLIN},
                            {.fd = uci_check_flow_is_over(out) ? -1 : pipe->out, .events = POLLOUT}};

    if (poll(fds, 2, -1) < 0) {
        return (errno == EINTR) ? UCI_OK : uci_check_pipe_lost();
    }
    if ((fds[1].revents != 0) && !uci_check_flow_move(out, pipe->out, true)) {
        return uci_check_pipe_lost();
    }
    if ((fds[0].revents != 0) && !uci_check_flow_move(in, pipe->in, false)) {
        return uci_check_pipe_lost();
    }
    if ((in->done >= sizeof(in->length)) && (in->length > in_max)) {
        uci_check_complain(
                "a message of the other side is too long: it is no uci_check, or its shell prints something");
        return UCI_ERR_CORRUPT;
    }
    return UCI_OK;
}

uci_status_t uci_check_pipe_swap(void *arg, const void *out, size_t out_length, void *in, size_t in_max,
                                 size_t *in_length_p)
{
    uci_check_pipe_t *pipe = arg;
    uci_check_flow_t sent = {.length = (uint32_t)out_length, .bytes = (uint8_t *)out}, received = {.bytes = in};
    uci_status_t status = UCI_OK;

    while ((status == UCI_OK) && (!uci_check_flow_is_over(&sent) || !uci_check_flow_is_over(&received))) {
        status = uci_check_pipe_step(pipe, &sent, &received, in_max);
    }
    pipe->moved.sent += sent.done;
    pipe->moved.received += received.done;
    ++pipe->moved.rounds;
    *in_length_p = received.length;
    return status;
}
