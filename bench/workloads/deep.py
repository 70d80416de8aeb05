"""Deep Python: a recursion of 24 functions that ends in one that computes. It runs until it is ended."""


def leaf(seed):
    total = seed
    for number in range(2000):
        total = (total * 31 + number) & 0xFFFFFFFF
    return total


def middle(seed, depth):
    if depth == 1:
        return leaf(seed) + leaf(seed + 1)
    return middle(seed + depth, depth - 1) ^ depth


def outer():
    total = 0
    while True:
        total ^= middle(total, 24)


outer()
