"""Knows its own stacks: each leaf is called by one way alone, and says which, innermost function first."""
import asyncio
import functools
import json
import sys
import threading
import time

known = {}
# Two rounds: the recorder may still read the interpreter's tables in the first.
rounds = 2
seconds = float(sys.argv[2]) / 7 / rounds


def say():
    frame, stack = sys._getframe(1), []
    leaf = frame.f_globals["__name__"] + "." + frame.f_code.co_qualname
    while frame:
        name = frame.f_globals["__name__"] + "." + frame.f_code.co_qualname
        stack.append([name, frame.f_lineno])
        frame = frame.f_back
    known[leaf] = stack




def recursion_leaf():
    say()
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for i in range(1000):
            total += i * i
    return total


def recursion(depth):
    if depth:
        return recursion(depth - 1)
    return recursion_leaf()


def sorted_leaf(key):
    if key == 0:
        say()
    total = 0
    for i in range(1000):
        total += i * key
    return total


def callbacks():
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sorted(range(50), key=sorted_leaf)


def reduce_leaf(a, b):
    if b == 1:
        say()
    total = 0
    for i in range(1000):
        total += i * b
    return a + total


def reductions():
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        functools.reduce(reduce_leaf, range(50))


def generator_leaf(n):
    if n == 0:
        say()
    total = 0
    for i in range(1000):
        total += i * n
    return total


def inner_generator(n):
    for i in range(n):
        yield generator_leaf(i)


def outer_generator(n):
    yield from inner_generator(n)


def generators():
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in outer_generator(50):
            pass


class Worker:
    def method_leaf(self):
        say()
        end, total = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            for i in range(1000):
                total += i * i
        return total

    @classmethod
    def start(cls):
        return cls().method_leaf()


def thread_leaf():
    say()
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for i in range(1000):
            total += i * i
    return total


def in_thread():
    return (lambda: thread_leaf())()


async def coroutine_leaf():
    say()
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for i in range(1000):
            total += i * i
    return total


async def coroutines():
    await asyncio.sleep(0.001)
    await coroutine_leaf()


def main():
    for _ in range(rounds):
        recursion(20)
        callbacks()
        reductions()
        generators()
        Worker.start()
        thread = threading.Thread(target=in_thread)
        thread.start()
        thread.join()
        asyncio.run(coroutines())


main()
with open(sys.argv[1], "w") as out:
    json.dump(known, out)
