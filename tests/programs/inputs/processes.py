"""multiprocessing by fork while other threads allocate, by spawn, and through shared queues."""
import concurrent.futures
import multiprocessing
import threading


def count_primes(limit):
    sieve = bytearray([1]) * (limit + 1)
    for n in range(2, int(limit ** 0.5) + 1):
        if sieve[n]:
            sieve[n * n::n] = bytes(len(sieve[n * n::n]))
    return sum(sieve) - 2


def answer(queue, n):
    queue.put((n, [str(i) * 10 for i in range(n * 100)]))


def main():
    stop = threading.Event()

    def noise():
        while not stop.is_set():
            [bytes(700 * n) for n in range(200)]

    threads = [threading.Thread(target=noise) for _ in range(2)]
    [thread.start() for thread in threads]
    with multiprocessing.get_context("fork").Pool(4) as pool:
        print(sum(pool.map(count_primes, range(1000, 41000, 500))))
    queue = multiprocessing.Queue()
    children = [multiprocessing.Process(target=answer, args=(queue, n)) for n in range(20)]
    [child.start() for child in children]
    print(sum(len(words) for _, words in (queue.get() for _ in children)))
    [child.join() for child in children]
    print([child.exitcode for child in children])
    stop.set()
    [thread.join() for thread in threads]
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=spawn) as pool:
        print(list(pool.map(count_primes, (10000, 100000))))


if __name__ == "__main__":
    main()
