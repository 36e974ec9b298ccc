#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Sum the UCI_STATS files of one job's processes and check conditions on the sums.

usage: stats.py [--processes N] [--value EXPRESSION] FOLDER [CONDITION...]

Each file in FOLDER is the JSON object of one process. A CONDITION is an expression over the summed counters, such as
"repaired_chunks == mismatched_chunks"; a counter that no file has is an error, so that a misspelt or vanished name
cannot pass. Prints one line of the counters that matter; exit status 1 and a line for each condition that fails.
"""
import argparse
import ast
import json
import pathlib
import sys

SHOWN = [('received', 'messages_received'), ('eager', 'eager_messages'), ('rndv', 'rendezvous_messages'),
         ('chunks', 'chunks_verified'), ('faults', 'faults_injected'), ('unseen', 'faults_unseen'), ('mismatched', 'mismatched_chunks'),
         ('repaired', 'repaired_chunks'), ('unrepaired', 'unrepaired_chunks'), ('headers', 'mismatched_headers'),
         ('control', 'mismatched_control'), ('dropped', 'log_dropped')]


class Counters(dict):
    """Names for eval(): only counters."""
    def __missing__(self, name):
        raise NameError(f"no counter '{name}' in the statistics")


def load(folder):
    """The counters of each process; a file that is not whole is an error."""
    processes = []
    for path in sorted(pathlib.Path(folder).glob('*.json')):
        try:
            processes.append(json.loads(path.read_text()))
        except ValueError as error:
            sys.exit(f'{path.name}: not JSON: {error}')
    return processes


def add_up(processes):
    sums = Counters()
    for counters in processes:
        for name, value in counters.items():
            if isinstance(value, int) and not isinstance(value, bool) and name not in ('pid', 'rank'):
                sums[name] = sums.get(name, 0) + value
    return sums


def evaluate(expression, sums):
    ast.parse(expression, mode='eval')
    return eval(expression, {'__builtins__': {}}, sums)  # the conditions are our own scripts'


def failed_conditions(conditions, sums):
    for condition in conditions:
        try:
            if not evaluate(condition, sums):
                names = sorted({node.id for node in ast.walk(ast.parse(condition)) if isinstance(node, ast.Name)})
                yield f'not true: {condition} (' + ', '.join(f'{name} {sums[name]}' for name in names) + ')'
        except NameError as error:
            yield str(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('--processes', type=int, default=1, help='at least so many must have written statistics')
    parser.add_argument('--value', metavar='EXPRESSION', help='print only what this is')
    parser.add_argument('conditions', nargs='*')
    arguments = parser.parse_args()

    processes = load(arguments.folder)
    sums = add_up(processes)
    if arguments.value:
        print(evaluate(arguments.value, sums))
        return 0
    wrong = list(failed_conditions(arguments.conditions, sums))
    if len(processes) < arguments.processes:
        wrong.insert(0, f'{len(processes)} of {arguments.processes} processes wrote statistics: UCI was not in all of them')
    print(' '.join(f'{label} {sums[name]}' for label, name in SHOWN if sums.get(name)))
    print('\n'.join(wrong), end='\n' if wrong else '')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
